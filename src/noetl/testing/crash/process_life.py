"""Lives of a process that runs a playbook on the same files, one after the other."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TypeAlias

from msgspec import Struct

from noetl.dsl.document.playbook import Playbook
from noetl.engine.catalog.playbook_record import PlaybookSource
from noetl.engine.catalog.playbooks import PlaybookDocument, Playbooks
from noetl.engine.history.lookup import decode_rows
from noetl.engine.inbox import RemoteCommand, encode_command
from noetl.events.event import Event
from noetl.kernel.plan import Plan
from noetl.kernel.state.execution_state import ExecutionState
from noetl.loader import load
from noetl.local import Local
from noetl.ports.store import ExecutionQuery, ExecutionRecord
from noetl.stores.home_folder import Home
from noetl.stores.sqlite.store import SqliteStore
from noetl.testing.crash.effect_tool import EFFECT_KIND, effect_tools
from noetl.testing.crash.fuse import Fuse, FusedResults, FusedStore, MortalOwners
from noetl.tools.host.worker_tools import Tools

PATIENCE = 30.0
"""Seconds after which a life is said to hang."""
OnEvent: TypeAlias = Callable[[str, Event], None]
"""Gets each event, with the id of its execution, when it is said to be durable."""


class SurvivingFiles:
    """What survives a crash: the store and the results, the log of effects, the files of the playbook."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.effects = folder / "effects.jsonl"
        self.sent = folder / "sent"
        self.home = Home(folder / ".noetl")

    @classmethod
    def create(cls, folder: Path, files: Mapping[str, str], store: bytes = b"") -> "SurvivingFiles":
        """A new one with these files and this store; without one there is no home yet."""
        created = cls(folder)
        folder.mkdir()
        if store:
            created.home.make()
            created.home.store.write_bytes(store)
        for name, text in files.items():
            (folder / name).write_text(text, "utf-8")
        return created


def empty_store(path: Path) -> bytes:
    """A store in which nothing has happened: copying it is faster than making one each time."""

    async def make() -> None:
        await SqliteStore.at(path).close()

    asyncio.run(make())
    return path.read_bytes()


class CrashPlaybooks(Playbooks):
    """Those with the tool that counts. What a text is compiled to is the same in every life."""

    def __init__(self) -> None:
        super().__init__(allow_kinds=[EFFECT_KIND])

    def _examine(self, source: PlaybookSource) -> PlaybookDocument:
        return PlaybookDocument(source, Plan(_compile_once(source.text)))


@cache
def _compile_once(text: str) -> Playbook:
    """Compiling takes longer than most lives, and a scenario has hundreds."""
    return load(text, allow_kinds=[EFFECT_KIND])


class ProcessLife:
    """What somebody does with one process: begin or go on, and see it through."""

    local: Local

    def __init__(
        self,
        files: SurvivingFiles,
        source: PlaybookSource,
        observer: SqliteStore,
        on_event: OnEvent,
    ) -> None:
        self.files = files
        self.source = source
        self._observer = observer
        self._on_event = on_event
        self._new_events = asyncio.Event()

    async def begin(self, number: int = 0) -> str:
        """Goes on with the execution if the store has it, else starts it."""
        roots = await self.roots()
        if len(roots) > number:
            return await self.local.resume(roots[number].execution_id)
        return await self.local.start(self.source)

    async def roots(self) -> list[ExecutionRecord]:
        """The executions that no other one started, the oldest first."""
        page = await self._observer.executions()
        return [record for record in reversed(page.executions) if not record.parent]

    async def children(self, execution_id: str) -> list[ExecutionRecord]:
        """The executions that this one started."""
        return (await self._observer.executions(ExecutionQuery(parent=execution_id))).executions

    async def wait_for_end(self, execution_id: str) -> ExecutionState:
        return await self.local.wait_for_end(execution_id)

    async def has_event(self, execution_id: str, kind: type, times: int = 1) -> bool:
        rows = await self._observer.read(execution_id, limit=100_000)
        return sum(isinstance(event.body, kind) for event in decode_rows(execution_id, rows)) >= times

    async def first_seq_of(self, execution_id: str, kind: type) -> int:
        """The number of the first such event."""
        rows = await self._observer.read(execution_id, limit=100_000)
        return next(event.seq for event in decode_rows(execution_id, rows) if isinstance(event.body, kind))

    async def wait_for(self, execution_id: str, kind: type) -> None:
        """Waits until such an event is durable."""
        while not await self.has_event(execution_id, kind):
            self._new_events.clear()
            await self._new_events.wait()

    async def send_once(self, execution_id: str, command: RemoteCommand) -> None:
        """Asks something as another process would, which does not die with this one: once in all lives."""
        if not self.files.sent.exists():
            self.files.sent.touch()
            # Shielded: what this process drives is cancelled when it dies, what the other one asks is not.
            await asyncio.shield(self._observer.send(execution_id, encode_command(command)))

    def on_events(self, execution_id: str, events: Sequence[Event], _: ExecutionState) -> None:
        for event in events:
            self._on_event(execution_id, event)
        self._new_events.set()


Drive: TypeAlias = Callable[[ProcessLife], Awaitable[None]]


async def run_to_end(life: ProcessLife) -> None:
    """Begins or goes on, and waits for the end."""
    await life.wait_for_end(await life.begin())


class Scenario(Struct, frozen=True, kw_only=True):
    """A playbook whose outcome does not depend on chance, and what people do with it.

    `drive` is called in every life; it finds out from the store what was done before. `files` lie beside
    the playbook. `tools` get the file in which each effect is to leave a line (`Effect`), and the fuse: once
    it is dead they do nothing any more.
    """

    name: str
    text: str
    files: Mapping[str, str] = {}
    drive: Drive = run_to_end
    tools: Callable[[Path, Fuse], Tools] = effect_tools

    def source(self, files: SurvivingFiles) -> PlaybookSource:
        return PlaybookSource(self.text, "playbook.yaml", str(files.folder / "playbook.yaml"))


def ignore_event(_: str, __: Event) -> None:
    """Nobody listens."""


async def run_life(
    files: SurvivingFiles, scenario: Scenario, fuse: Fuse, on_event: OnEvent = ignore_event
) -> None:
    """One life, until the scenario is over or the fuse blows. Raises TimeoutError if it hangs."""
    files.home.make()
    store = FusedStore.at_path(files.home.store, fuse)
    observer = SqliteStore.at(files.home.store)
    owners = MortalOwners(files.home.owners)
    death = asyncio.get_running_loop().create_future()
    fuse.on_death = lambda: death.set_result(None)
    life = ProcessLife(files, scenario.source(files), observer, on_event)
    local = life.local = Local(
        store,
        owners=owners,
        playbooks=CrashPlaybooks(),
        watch=life.on_events,
        results=FusedResults(files.home.results, fuse),
        tools=scenario.tools(files.effects, fuse),
    )
    try:
        async with local:
            driving = asyncio.ensure_future(scenario.drive(life))
            ends: list[asyncio.Future[None]] = [driving, death]
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED, timeout=PATIENCE)
            if not fuse.dead and driving.done():
                driving.result()
                return
            # The system frees a dead process's locks before the next one starts.
            owners.die()
            driving.cancel()
            await asyncio.gather(driving, return_exceptions=True)
            if not fuse.dead:
                raise TimeoutError(f"{scenario.name} does not end")
    finally:
        await store.close()
        await observer.close()
