"""Runs playbooks in this process, on a real store in a temporary folder."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

from noetl.engine.catalog.playbook_record import PlaybookSource
from noetl.engine.history.lookup import decode_rows
from noetl.events.event import Event
from noetl.kernel.state.execution_state import ExecutionState
from noetl.local import Local
from noetl.stores.home_folder import Home
from noetl.stores.ownership import Owners
from noetl.stores.sqlite.store import SqliteStore

T = TypeVar("T")

HEAD = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: p, path: p}\n"


def source(text: str, file: str = "") -> PlaybookSource:
    return PlaybookSource(
        text if text.startswith("apiVersion") else HEAD + text, file or "playbook.yaml", file
    )


class Bench:
    """A home and what is done with it. Each `with_local` is a process of its own, as far as the store knows."""

    def __init__(self, folder: Path) -> None:
        self.home = Home(folder / ".noetl")
        self.home.make()
        self.seen: list[tuple[str, Event]] = []

    def watch(self, execution_id: str, events: Any, _: ExecutionState) -> None:
        self.seen += [(execution_id, event) for event in events]

    def with_local(self, work: Callable[[Local], Awaitable[T]], **options: Any) -> T:
        async def open_and_work() -> T:
            store = SqliteStore.at(self.home.store)
            try:
                async with Local(
                    store, owners=Owners(self.home.owners), watch=self.watch, **options
                ) as local:
                    return await work(local)
            finally:
                await store.close()

        return asyncio.run(open_and_work())

    def run(self, text: str, **request: Any) -> ExecutionState:
        async def work(local: Local) -> ExecutionState:
            return await local.wait_for_end(await local.start(source(text), **request))

        return self.with_local(work)

    def resume(self, execution_id: str) -> ExecutionState:
        async def work(local: Local) -> ExecutionState:
            return await local.wait_for_end(await local.resume(execution_id))

        return self.with_local(work)

    def events(self, execution_id: str) -> list[Event]:
        async def read() -> list[Event]:
            store = SqliteStore.at(self.home.store)
            try:
                return decode_rows(execution_id, await store.read(execution_id, limit=100_000))
            finally:
                await store.close()

        return asyncio.run(read())

    def names(self, execution_id: str) -> list[str]:
        return [type(event.body).__name__ for event in self.events(execution_id)]
