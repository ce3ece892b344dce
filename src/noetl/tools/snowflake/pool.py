"""The sessions that a worker keeps with one Snowflake account."""

import asyncio
import logging
import os
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from typing import Any

from snowflake.connector.aio import Connection
from snowflake.connector.errors import Error

from noetl.model.outcome import ToolError
from noetl.tools.snowflake.auth import SnowflakeTarget

_CLOSE_SECONDS = 5
"""Seconds for the account to hear that a session is over."""

# Else the driver asks the metadata services of three clouds where it runs, to tell the account. It knows no
# other switch.
os.environ.setdefault("SNOWFLAKE_DISABLE_PLATFORM_DETECTION", "true")
# Without a handler, Python prints the driver's warnings on stderr; what they warn of, outcomes say.
logging.getLogger("snowflake").addHandler(logging.NullHandler())


class SnowflakeSession:
    """A session of the driver. `busy` says that it was cut off, or is closed, while a statement runs.

    `changed` says that the next task would notice what was run, `in_transaction` that one is open, `failed`
    that there was an error, after which it may be over.
    """

    def __init__(self, connection: Connection) -> None:
        self.busy = False
        self.changed = False
        self.failed = False
        self.in_transaction = False
        self._connection = connection
        self._work: asyncio.Task[Any] | None = None
        self._closed = False

    async def execute(self, text: str, values: Sequence[Any] | None = None) -> Any:
        """The cursor of a statement, which has run. Raises `Error` of the driver.

        If this is cancelled, the driver has the account abort the statement.
        """
        cursor = self._connection.cursor()
        await self._until_done(cursor.execute(text, values))
        return cursor

    async def execute_with_rows(self, text: str, rows: Sequence[Sequence[Any]]) -> int:
        """Runs a statement with the values of every row, and says how many rows it changed."""
        cursor = self._connection.cursor()
        await self._until_done(cursor.executemany(text, rows))
        return int(cursor.rowcount or 0)

    async def fetch(self, cursor: Any, size: int) -> Sequence[tuple[Any, ...]]:
        """The next rows; none at the end."""
        rows: Sequence[tuple[Any, ...]] = await self._until_done(cursor.fetchmany(size))
        return rows

    async def is_valid(self) -> bool:
        """Whether the account still knows it."""
        return bool(await self._connection.is_valid())

    async def close(self) -> None:
        """Ends it. The task that uses it is told that the worker is ending."""
        if self._work is not None:
            self._closed = True
            self._work.cancel()
        await self._connection.close(retry=False)

    async def _until_done(self, work: Coroutine[Any, Any, Any]) -> Any:
        # A task of its own: closing the session of a task that waits here shall end that, and nothing but it.
        self._work = asyncio.ensure_future(work)
        self.busy = True
        try:
            return await self._work
        except asyncio.CancelledError:
            if self._closed:
                raise ToolError("cancelled", "the worker is ending") from None
            raise
        except Exception:
            self.failed = True
            raise
        finally:
            # What was cut off is busy for ever: the account may go on with it for a moment.
            self.busy = self._work.cancelled()
            self._work = None


class SnowflakeDriver:
    """How a pool makes, cleans and closes sessions, which commit each statement."""

    def __init__(self, target: SnowflakeTarget) -> None:
        self._options: dict[str, Any] = dict(target.options)
        if "port" in self._options:
            self._options["port"] = int(self._options["port"])

    async def connect(self) -> SnowflakeSession:
        connection = Connection(
            **self._options,
            application="noetl",
            paramstyle="qmark",
            autocommit=True,
            retry_max_attempts=1,  # what to try again is for the policy of a task to say
            client_out_of_band_telemetry_enabled=False,
            enable_server_session_keep_alive_auto_detection=False,  # a session that is closed is over
            # The account aborts what runs for a worker that is gone.
            session_parameters={"CLIENT_TELEMETRY_ENABLED": False, "ABORT_DETACHED_QUERY": True},
        )
        await connection.connect()
        return SnowflakeSession(connection)

    def is_open(self, _: SnowflakeSession) -> bool:
        return True  # a session is no connection of the network: whether it is over only the account knows

    async def clean(self, session: SnowflakeSession) -> bool:
        # There is no statement that resets a session, so one that a task has changed is not used again.
        if session.busy or session.changed:
            return False
        try:
            if session.in_transaction:
                await session.execute("ROLLBACK")
                await session.execute("ALTER SESSION SET AUTOCOMMIT = TRUE")
                session.in_transaction = False
            usable = not session.failed or await session.is_valid()
            session.failed = False
        except Error:
            return False
        return usable

    async def close(self, session: SnowflakeSession) -> None:
        with suppress(Error, TimeoutError):
            async with asyncio.timeout(_CLOSE_SECONDS):
                await session.close()
