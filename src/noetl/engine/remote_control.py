"""What other processes ask of an execution: through the inbox of its owner, or at once if it has none."""

import asyncio
from typing import Literal

from noetl.engine.catalog.playbooks import PlaybookDocument, Playbooks
from noetl.engine.children import Children
from noetl.engine.inbox import RemoteCommand, encode_command
from noetl.engine.retry import reopen_execution
from noetl.engine.service import AlreadyRunning, Service
from noetl.events.event import Event
from noetl.kernel.errors import Refused
from noetl.kernel.net.commands import Cancel, Pause, Resume
from noetl.ports.results import ResultStore
from noetl.ports.store import ExecutionUnknown, Store
from noetl.stores.ownership import Owners

PATIENCE = 5.0
"""Seconds that the owner has for reading its inbox."""


class RemoteControl:
    """Commands for the executions of one store, whoever runs them."""

    def __init__(self, store: Store, owners: Owners, results: ResultStore, playbooks: Playbooks) -> None:
        self._store = store
        self._owners = owners
        self._results = results
        self._playbooks = playbooks

    async def send(self, execution_id: str, command: RemoteCommand) -> Literal["done", "sent"]:
        """`done`: it is recorded. `sent`: its owner has not read it yet, and will.

        Raises ExecutionUnknown, Refused, StoreError.
        """
        record = await self._store.execution(execution_id)
        if record is not None:
            owned = self._owners.owner(execution_id) is not None
            refuse_if_so_already(command, record.status, owned=owned)
        while self._owners.owner(execution_id) is None:
            try:
                await self.apply_here(execution_id, command)
            except AlreadyRunning:
                continue  # somebody took it up in between
            return "done"
        record = await self._store.execution(execution_id)
        if record is None:
            raise ExecutionUnknown(f"there is no execution {execution_id}")
        if record.ended_at:
            raise Refused(f"the execution is {record.status}")
        message = await self._store.send(execution_id, encode_command(command))
        try:
            async with asyncio.timeout(PATIENCE):
                async for _ in self._store.changes():
                    if message.id not in {pending.id for pending in await self._store.inbox([execution_id])}:
                        return "done"
        except TimeoutError:
            if self._owners.owner(execution_id) is None:
                await self._store.take([message])
                return await self.send(execution_id, command)
        return "sent"

    async def apply_here(self, execution_id: str, command: RemoteCommand) -> list[Event]:
        """Decides it here, where nobody owns the execution; nothing runs. What it led to.

        Raises AlreadyRunning, ExecutionUnknown, Refused, StoreError.
        """
        service, children = self._service()
        live = await service.open(execution_id)
        service.registry.add(live)
        try:
            service.void_leases(live)
            if isinstance(command, Cancel):
                await children.resumed(live)
            events = live.submit(command)
            await service.commit_log.flush()
            return events
        finally:
            await service.close()

    async def retry_here(
        self, execution_id: str, *, by: str, repaired: PlaybookDocument | None
    ) -> list[Event]:
        """Opens a failed execution again, with a repaired document if there is one; nothing runs.

        What it led to. Raises as `apply_here`.
        """
        service, _ = self._service()
        live = await reopen_execution(service, execution_id, by=by, repaired=repaired)
        service.registry.add(live)
        try:
            events = list(live.pending)
            await service.commit_log.flush()
            return events
        finally:
            await service.close()

    def _service(self) -> tuple[Service, Children]:
        service = Service(self._store, self._playbooks, self._owners, results=self._results)
        children = Children(service)
        service.subscribe(children)
        return service, children


def refuse_if_so_already(command: RemoteCommand, status: str, *, owned: bool) -> None:
    """The kernel takes what was done already for done; who asks for it has something else in mind."""
    if isinstance(command, Pause) and status == "paused":
        raise Refused("the execution is paused already")
    if isinstance(command, Resume) and status == "running" and owned:
        raise Refused("the execution is running, and was not paused")
