"""What other processes ask of an execution: through the inbox of its owner, or at once if it has none."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Literal, assert_never

from noetl.engine.catalog.catalog_playbooks import registered_source
from noetl.engine.catalog.playbooks import PlaybookDocument, Playbooks
from noetl.engine.children import Children
from noetl.engine.execution import LiveExecution
from noetl.engine.history.lookup import decode_rows, require_execution
from noetl.engine.history.read import read_state
from noetl.engine.inbox import RemoteCommand, encode_command
from noetl.engine.retry import redrive_execution, reopen_execution, with_children
from noetl.engine.service import AlreadyRunning, Service
from noetl.events.event import Event
from noetl.kernel.errors import Refused
from noetl.kernel.net.commands import Cancel, Pause, Redrive, Resume, Retry, Signal
from noetl.kernel.net.operations import decide_redrive, decide_retry
from noetl.kernel.net.signal_delivery import decide_signal
from noetl.ports.results import ResultStore
from noetl.ports.store import ExecutionRecord, Store
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
            owned = await self._owner(execution_id) is not None
            refuse_if_so_already(command, record.status, owned=owned)
        while await self._owner(execution_id) is None:
            try:
                await self.apply_here(execution_id, command)
            except AlreadyRunning:
                continue  # somebody took it up in between
            return "done"
        record = await require_execution(self._store, execution_id)
        if record.ended_at:
            raise Refused(f"the execution is {record.status}")
        if isinstance(command, Retry | Redrive | Signal):
            await self._require_applicable(record, command)
        message = await self._store.send(execution_id, encode_command(command))
        try:
            async with asyncio.timeout(PATIENCE):
                async for _ in self._store.changes():
                    if message.id not in {pending.id for pending in await self._store.inbox([execution_id])}:
                        return "done"
        except TimeoutError:
            if await self._owner(execution_id) is None:
                await self._store.take([message])
                return await self.send(execution_id, command)
        return "sent"

    async def reopen_elsewhere(
        self, execution_id: str, command: Retry | Redrive
    ) -> tuple[Literal["done", "sent"], list[Event]]:
        """Has its owner open a running execution again at what failed; what that led to, if it is done.

        Raises as `send`.
        """
        before = await require_execution(self._store, execution_id)
        answer = await self.send(execution_id, command)
        rows = await self._store.read(execution_id, after=before.version)
        return answer, list(decode_rows(execution_id, rows))

    async def _require_applicable(self, record: ExecutionRecord, command: Retry | Redrive | Signal) -> None:
        """Raises Refused where its owner would: whoever asks hears it, and not the owner alone."""
        document = await self._playbooks.read_stored(self._store, record.playbook)
        state = await read_state(self._store, document.plan, record.execution_id)
        match command:
            case Retry():
                decide_retry(state, command, state.last_ts)
            case Redrive():
                decide_redrive(state, command, state.last_ts)
            case Signal():
                decide_signal(state, command)
            case _:
                assert_never(command)

    async def _owner(self, execution_id: str) -> int | None:
        record = await self._store.execution(execution_id)
        return self._owners.owner(execution_id, served=record is not None and record.lives_on_server)

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
            if isinstance(command, Retry | Redrive):
                command = await with_children(service, live.state, command)
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
        return await self._record_here(partial(reopen_execution, by=by, repaired=repaired), execution_id)

    async def redrive_here(
        self, execution_id: str, *, step: str, by: str, repaired: PlaybookDocument | None
    ) -> list[Event]:
        """Has failed iterations run again, once somebody runs the execution. What it led to.

        Raises as `apply_here`.
        """
        return await self._record_here(
            partial(redrive_execution, step=step, by=by, repaired=repaired), execution_id
        )

    async def read_version(self, execution_id: str, version: int) -> PlaybookDocument:
        """Another version of its playbook, as it is registered. Raises PlaybookMissing, PlaybookInvalid."""
        record = await require_execution(self._store, execution_id)
        return self._playbooks.read(await registered_source(self._store, record.path, version, os.getcwd()))

    async def _record_here(
        self, work: Callable[[Service, str], Awaitable[LiveExecution]], execution_id: str
    ) -> list[Event]:
        service, _ = self._service()
        live = await work(service, execution_id)
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
