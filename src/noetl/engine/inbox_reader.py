"""What other processes asked of executions that run here: read from their inboxes, and done."""

from collections.abc import Sequence

from noetl.engine.execution import LiveExecution
from noetl.engine.inbox import RemoteCommand, decode_command
from noetl.engine.retry import with_children
from noetl.engine.service import AlreadyRunning, Service
from noetl.events.event import Event
from noetl.kernel.errors import Refused
from noetl.kernel.net.commands import Redrive, Retry

MOST_ANSWERED = 10_000
"""Messages that are remembered because their answers may not be written yet."""


class InboxReader:
    """Submits the commands in the inboxes of a store's executions, each once.

    A message lies there until what it led to is written, in the same commit. One that leads to nothing is
    taken away: whoever sent it sees from the execution that it had nothing to change.
    """

    def __init__(self, service: Service) -> None:
        self._service = service
        self._answered: set[int] = set()

    async def read(self, execution_ids: Sequence[str] | None) -> None:
        """Does what was asked of these executions; None: of all that this process has. Raises StoreError."""
        service = self._service
        if service.shared is not None and execution_ids is None:
            # Taken, so that no other server does the same; what is not answered comes again.
            messages = await service.shared.take_inbox()
            if len(self._answered) > MOST_ANSWERED:
                self._answered.clear()
        else:
            messages = await service.store.inbox(execution_ids)
            self._answered &= {message.id for message in messages}
        for message in messages:
            live = await service.load(message.execution_id)
            if live is not None and message.id in self._answered:
                continue  # it lies there until the answer is written
            if live is None and execution_ids is None and not await self._has_ended(message.execution_id):
                continue  # another process has it, and reads this
            command = decode_command(message.body)
            if live is not None and command is not None and await self._submit(live, command, message.id):
                live.answers.append(message.id)
            elif message.id not in self._answered:
                await service.store.take([message])

    async def _submit(self, live: LiveExecution, command: RemoteCommand, message: int) -> list[Event]:
        """What it led to; nothing where it is refused, or was submitted meanwhile."""
        service = self._service
        try:
            if isinstance(command, Retry | Redrive):
                with service.pinned(live.execution_id):
                    command = await with_children(service, live.state, command)
                if message in self._answered or service.registry.get(live.execution_id) is not live:
                    return []
            events = live.submit(command)
        except (Refused, AlreadyRunning):
            return []
        if events:
            self._answered.add(message)
        return events

    async def _has_ended(self, execution_id: str) -> bool:
        record = await self._service.store.execution(execution_id)
        return record is None or bool(record.ended_at)
