"""A server engine and a worker in one loop: the worker says what the test wants it to say."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import msgspec
from msgspec import Raw

from noetl.engine.catalog.catalog_playbooks import CatalogPlaybooks
from noetl.engine.catalog.playbook_record import PlaybookSource
from noetl.engine.history.lookup import decode_rows
from noetl.engine.history.read import read_history
from noetl.events.bodies import EventBody, StepDone
from noetl.events.codec import FORMAT, encode
from noetl.events.event import Event
from noetl.events.event_kind import KIND_NUMBERS
from noetl.kernel.pipeline.waits import child_id
from noetl.ports.catalog import CatalogEntry
from noetl.ports.control import (
    PROTOCOL,
    Ack,
    CheckNeeds,
    Message,
    NeedsChecked,
    News,
    Register,
    Registered,
    Rejected,
    Release,
    RunCommand,
    RunLease,
    RunReport,
    Work,
    WorkerReport,
)
from noetl.ports.store import (
    Append,
    ExecutionRecord,
    OutboxMessage,
    Row,
    StoreBusy,
    StoreError,
    Timer,
    Verdict,
)
from noetl.server.plane.sessions import WorkerSession
from noetl.server.server_engine import ServerEngine
from noetl.stores.ownership import Owners
from noetl.stores.sqlite.store import SqliteStore
from tests.plane.raw_worker import lease_of
from tests.playbooks import document_of

PATIENCE = 30.0


class ForgetfulStore(SqliteStore):
    """Writes, and loses the next answer if it is told to; is busy for the next reads, as many as it is told.

    `meanwhile` is called, once, when there is something to write and before it is.
    """

    meanwhile: Callable[[], Awaitable[None]] | None = None
    loses_answer = False
    busy_reads = 0
    busy_timers = 0
    timer_reads = 0

    async def commit(self, appends: Sequence[Append]) -> list[Verdict]:
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            await meanwhile()
        verdicts = await super().commit(appends)
        if self.loses_answer:
            self.loses_answer = False
            raise StoreError("the answer was lost")
        return verdicts

    async def execution(self, execution_id: str) -> ExecutionRecord | None:
        self._read()
        return await super().execution(execution_id)

    async def timers(self, *, until: int | None = None, limit: int = 1_000) -> list[Timer]:
        self.timer_reads += 1
        if self.busy_timers:
            self.busy_timers -= 1
            raise StoreBusy("somebody else has it")
        return await super().timers(until=until, limit=limit)

    async def outbox(self, **page: int) -> list[OutboxMessage]:
        self._read()
        return await super().outbox(**page)

    def _read(self) -> None:
        if self.busy_reads:
            self.busy_reads -= 1
            raise StoreBusy("somebody else has it")


class HandServer:
    """A server engine whose durable events can be waited for."""

    def __init__(self, store: ForgetfulStore, engine: ServerEngine) -> None:
        self.store = store
        self.engine = engine
        self.playbooks = cast("CatalogPlaybooks", engine.playbooks)

    async def start(self, workflow: str, **options: Any) -> str:
        source = PlaybookSource(document_of(workflow), "playbook.yaml", "/nowhere/playbook.yaml")
        await self.playbooks.fetch_children(self.playbooks.read(source))
        begun = await self.engine.begin(source, **options)
        await self.engine.when_recorded(begun.execution_id)
        self.engine.forget_end(begun.execution_id)
        return begun.execution_id

    async def register_playbook(self, path: str, workflow: str, at: int) -> int:
        text = document_of(workflow)
        entry = CatalogEntry(
            path=path,
            hash=str(at),
            label="",
            dialect="",
            source=text,
            canonical=text,
            created_at=at,
            created_by="",
        )
        return (await self.store.put_catalog_entry(entry)).version

    async def events(self, execution_id: str) -> list[Event]:
        return list(decode_rows(execution_id, await self.store.read(execution_id)))

    async def names(self, execution_id: str) -> list[str]:
        return [type(event.body).__name__ for event in await self.events(execution_id)]

    async def wait_for(self, execution_id: str, name: str, count: int = 1) -> Event:
        """Returns when there are so many of these events; the last of them."""

        async def look() -> Event:
            async for _ in self.store.changes():
                events = [
                    event for event in await self.events(execution_id) if type(event.body).__name__ == name
                ]
                if len(events) >= count:
                    return events[count - 1]
            raise AssertionError("the store was closed")

        return await asyncio.wait_for(look(), PATIENCE)

    async def child_of(self, execution_id: str, run: str) -> str:
        """The child that the task starts at which a run stands."""
        state = (await read_history(self.store, execution_id)).state
        return child_id(state.runs[run], state.runs[run].frames[0])

    async def append_elsewhere(self, execution_id: str, body: EventBody) -> None:
        """Writes to an execution past the engine that has it."""
        version = len(await self.store.read(execution_id))
        row = Row(version + 1, 1, KIND_NUMBERS[type(body)], FORMAT, encode(body), last=True)
        await self.store.commit([Append(execution_id=execution_id, expected_version=version, rows=[row])])


@asynccontextmanager
async def hand_server(
    folder: Path, *, max_pages: int = 0, watch: Callable[..., None] | None = None, **options: Any
) -> AsyncIterator[HandServer]:
    store = ForgetfulStore.at(folder / "store.db", inline="nothing", max_pages=max_pages)
    try:
        async with ServerEngine(
            store,
            playbooks=CatalogPlaybooks(store, folder),
            owners=Owners(folder / "owners.lock"),
            watch=watch,
            **options,
        ) as engine:
            yield HandServer(cast("ForgetfulStore", store), engine)
    finally:
        await store.close()


class RegistrationRefused(Exception):
    """The server does not take the worker."""


class HandWorker:
    """One session. What comes is kept until it is asked for."""

    def __init__(self, server: HandServer) -> None:
        self._plane = server.engine.plane
        self._commands: list[RunCommand] = []
        self._acks: list[Ack] = []
        self._news: list[News] = []
        self._questions: list[CheckNeeds] = []
        self._number = 0

    @property
    def session(self) -> str:
        """Its id."""
        return self._session.id

    async def register(
        self, session: str = "", held: Sequence[RunLease] = (), slots: int = 1, connection: int = 0
    ) -> str:
        opened, refused = await self._ask(session, held, slots, connection)
        if opened is None:
            raise RegistrationRefused(refused)
        self._session = opened
        return opened.id

    async def connect(
        self, session: str, held: Sequence[RunLease] = (), slots: int = 1
    ) -> WorkerSession | None:
        return (await self._ask(session, held, slots, 0))[0]

    async def _ask(
        self, session: str, held: Sequence[RunLease], slots: int, connection: int
    ) -> tuple[WorkerSession | None, Registered | Rejected]:
        about = Register(
            protocol=PROTOCOL,
            session=session,
            worker="hand",
            kinds=("noop", "python"),
            pools=("default",),
            slots=slots,
            held=tuple(held),
            connection=connection,
        )
        return await self._plane.register(about)

    async def leave(self) -> None:
        """Gives back what it has, and is gone."""
        await self._plane.answer(self._session, Release(runs=(), leaving=True))
        self._plane.disconnected(self._session, self._session.outgoing)

    async def _receive(self) -> None:
        for message in await asyncio.wait_for(self._session.outgoing.take(), PATIENCE):
            match message:
                case Ack():
                    self._acks.append(message)
                    self._commands += message.commands
                case Work():
                    self._commands += message.commands
                case News():
                    self._news.append(message)
                case CheckNeeds():
                    self._questions.append(message)
                case _:
                    raise AssertionError(message)

    async def answer_question(self) -> None:
        """The next one about credentials: they can be had."""
        while not self._questions:
            await self._receive()
        question = self._questions.pop(0)
        await self._plane.answer(self._session, NeedsChecked(playbook=question.playbook, pool=question.pool))

    async def command(self) -> RunCommand:
        while not self._commands:
            await self._receive()
        return self._commands.pop(0)

    async def news(self) -> News:
        while not self._news:
            await self._receive()
        return self._news.pop(0)

    def unread(self) -> list[Message | RunCommand]:
        """What has come and was not asked for."""
        return [*self._commands, *self._acks, *self._news, *self._session.outgoing.take_now()]

    async def send(self, lease: RunLease, start: int, *bodies: EventBody, done: bool = False) -> None:
        self._number += 1
        events = tuple((KIND_NUMBERS[type(body)], FORMAT, Raw(encode(body))) for body in bodies)
        report = RunReport(
            execution=lease.execution, run=lease.run, fence=lease.fence, start=start, events=events, done=done
        )
        await self._plane.answer(self._session, WorkerReport(no=self._number, reports=(report,)))

    async def verdict(self) -> str:
        while not self._acks:
            await self._receive()
        (verdict,) = self._acks.pop(0).verdicts
        return verdict

    async def report(self, lease: RunLease, start: int, *bodies: EventBody, done: bool = False) -> str:
        await self.send(lease, start, *bodies, done=done)
        return await self.verdict()

    async def end(self, command: RunCommand, **result: Any) -> str:
        """Reports that the run is done."""
        lease, start = lease_of(command), msgspec.json.decode(command.run)["state"]["reported"]
        return await self.report(lease, start, StepDone(run=lease.run, result=result or None), done=True)
