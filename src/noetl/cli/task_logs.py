"""What tasks printed, for commands that look at a store by themselves."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from noetl.engine.segment_log import open_task_log
from noetl.engine.task_log import LogLine, LogReader, TaskLog
from noetl.home import result_store_of
from noetl.ports.results import ResultError
from noetl.ports.store import Store
from noetl.settings import Configuration
from noetl.stores.home_folder import Home
from noetl.stores.results.result_store_urls import ResultStoreUrlWrong


@asynccontextmanager
async def open_logs(configuration: Configuration, home: Home, store: Store) -> AsyncIterator[TaskLog]:
    """The logs of a store. If they are where nothing here can reach them, reading raises ResultError."""
    try:
        results = result_store_of(configuration, home, store)
    except ResultStoreUrlWrong as error:
        yield _UnreachableLog(error)
        return
    try:
        yield open_task_log(home, results)
    finally:
        await results.close()


class _UnreachableLog:
    look_seconds = 1.0

    def __init__(self, error: ResultStoreUrlWrong) -> None:
        self._error = error

    def write(self, *_: object) -> None:
        """Who looks at a store writes nothing."""

    def tail(self, execution_id: str) -> LogReader:  # noqa: ARG002 - none can be read
        return self

    async def read(self) -> list[LogLine]:
        raise ResultError(str(self._error), self._error.hint)

    async def close(self) -> None:
        """Nothing is held."""
