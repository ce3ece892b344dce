"""Lists and searches of a server: in a thread and with a connection of their own, and not for too long."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from time import monotonic
from typing import Concatenate, ParamSpec, TypeVar

import apsw

from noetl.ports.store import StoreError, StoreSlow
from noetl.stores.sqlite.connection import ErrorTranslation, open_reader

P = ParamSpec("P")
T = TypeVar("T")

SEARCH_SECONDS = 2.0
_STEPS = 2_000
"""Instructions of SQLite's machine between two looks at the clock: well under a millisecond."""


class SearchThread:
    """Asks one question after the other; the time that one waits for its turn counts as well."""

    def __init__(self, filename: str, seconds: float = SEARCH_SECONDS) -> None:
        self._filename = filename
        self._seconds = seconds
        self._deadline = 0.0
        self._connection: apsw.Connection | None = None
        self._thread = ThreadPoolExecutor(1, "noetl-search")

    async def ask(
        self, read: Callable[Concatenate[apsw.Connection, P], T], *args: P.args, **named: P.kwargs
    ) -> T:
        """Raises StoreSlow, StoreError."""
        deadline = monotonic() + self._seconds

        def work() -> T:
            return self._read(deadline, lambda connection: read(connection, *args, **named))

        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def _read(self, deadline: float, read: Callable[[apsw.Connection], T]) -> T:
        self._deadline = deadline
        try:
            if self._is_late():
                raise self._too_slow()
            with ErrorTranslation(self._filename):
                return read(self._open())
        except StoreError as error:
            # SQLite says only that it was interrupted.
            if isinstance(error.__cause__, apsw.InterruptError):
                raise self._too_slow() from None
            raise

    def _open(self) -> apsw.Connection:
        if self._connection is None:
            self._connection = open_reader(self._filename)
            self._connection.set_progress_handler(self._is_late, _STEPS)
        return self._connection

    def _is_late(self) -> bool:
        return monotonic() >= self._deadline

    def _too_slow(self) -> StoreSlow:
        message = f"the search took longer than {self._seconds:g} s and was given up"
        return StoreSlow(message, "narrow it: a path, a status, or a shorter time (since, until)")

    async def close(self) -> None:
        """After what is being asked. A second call does nothing."""
        await asyncio.to_thread(self._thread.shutdown)
        if self._connection is not None:
            self._connection.close()
            self._connection = None
