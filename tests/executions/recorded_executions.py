"""Executions in a home, as an engine would have written them: driven by a script, then stored."""

import asyncio
from collections.abc import Callable, Sequence
from functools import reduce
from pathlib import Path
from typing import Any

from noetl.engine.catalog.playbook_record import PlaybookSource, encode_source
from noetl.engine.effects import effects_of
from noetl.events.codec import FORMAT, encode
from noetl.events.event import Event
from noetl.events.event_kind import kind_of_body
from noetl.kernel.net.commands import Request
from noetl.kernel.state.execution_state import new_state
from noetl.ports.store import Append, Committed, Row, Store, merge_effects
from noetl.stores.home_folder import Home
from noetl.stores.results.file_backend import FileResults
from noetl.stores.sqlite.store import SqliteStore
from tests.kernel.driver import Driver, Script
from tests.playbooks import document_of

FIRST = "01939d2e-0000-7000-8000-00000000000"


class RecordedExecutions:
    """A home below a folder, with executions in it. Ids end with 1, 2, 3 … in the order of their starts."""

    def __init__(self, folder: Path) -> None:
        self.home = Home(folder / ".noetl")
        self.home.make()
        self._count = 0

    def begin(
        self, text: str, script: Script | None = None, *, kinds: Sequence[str] = ()
    ) -> "RecordedExecution":
        """An execution that can be driven; nothing of it is stored yet."""
        self._count += 1
        return RecordedExecution(self, text, script, f"{FIRST}{self._count}", kinds)

    def run(
        self, text: str, script: Script | None = None, *, kinds: Sequence[str] = (), **request: Any
    ) -> str:
        """One that goes as far as it can; its id."""
        execution = self.begin(text, script, kinds=kinds)
        execution.driver.run(**request)
        execution.save()
        return execution.id

    def with_store(self, work: Callable[[Store], Any]) -> Any:
        async def play() -> Any:
            store = SqliteStore.at(self.home.store)
            try:
                return await work(store)
            finally:
                await store.close()

        return asyncio.run(play())


class RecordedExecution:
    """One execution. `save` stores what has happened since the last call."""

    def __init__(
        self,
        recorded: RecordedExecutions,
        text: str,
        script: Script | None,
        execution_id: str,
        kinds: Sequence[str],
    ) -> None:
        self.id = execution_id
        self.text = document_of(text)
        self.driver = Driver(self.text, script, kinds=kinds)
        self.driver.state = new_state(self.driver.plan, execution_id)
        self._recorded = recorded
        self._saved = 0

    def start(self, **request: Any) -> "RecordedExecution":
        self.driver.submit(Request(**request))
        return self

    def save(self) -> None:
        self._recorded.with_store(self.save_in)

    async def save_in(self, store: Store) -> None:
        playbook = self.driver.plan.playbook
        await store.put_playbook(
            playbook.hash, encode_source(PlaybookSource(self.text, "playbook.yaml"), playbook)
        )
        results = FileResults(self._recorded.home.results)
        for key, data in self.driver.stored.items():
            await results.put(key, data)
        new, self._saved = self.driver.appends[self._saved :], len(self.driver.appends)
        for events in new:
            assert await store.commit([append_of(self.id, events)]) == [Committed(events[-1].seq)]


def append_of(execution_id: str, events: list[Event]) -> Append:
    """The events of one decision, as they are stored."""
    rows = [
        Row(
            event.seq,
            event.ts,
            kind_of_body(event.body).number,
            FORMAT,
            encode(event.body),
            event is events[-1],
        )
        for event in events
    ]
    effects = reduce(merge_effects, [effects_of(event.ts, event.body) for event in events])
    return Append(execution_id=execution_id, expected_version=events[0].seq - 1, rows=rows, effects=effects)
