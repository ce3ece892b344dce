"""The connections that a worker keeps to one PostgreSQL server."""

import logging
import select
from contextlib import suppress
from typing import Any, TypeAlias

import psycopg
from psycopg.generators import fetch
from psycopg.pq import ExecStatus, TransactionStatus

from noetl.tools.postgres.types import ADAPTERS

_CANCEL_SECONDS = 2.0
"""Seconds for a server to hear that a query is to end."""

# Without a handler, Python prints the driver's warnings on stderr; what they warn of, outcomes say.
logging.getLogger("psycopg").addHandler(logging.NullHandler())

PostgresConnection: TypeAlias = psycopg.AsyncConnection[tuple[Any, ...]]


class StreamCursor(psycopg.AsyncRawCursor[tuple[Any, ...]]):
    """Streams what any statement gives, also one that gives no rows; afterwards it says what became of it.

    It overrides the driver's own step, with names of its insides, which `test_postgres_driver` pins: the
    driver's `stream` refuses statements without rows, so that each had to be parsed to know which they are,
    or run by `execute`, which holds all rows in memory.
    """

    def _stream_fetchone_gen(self, first: bool) -> Any:  # noqa: FBT001 - as the driver calls it
        result = yield from fetch(self._pgconn)
        if result is None or result.status not in (ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK):
            return self._take_rows(result, first=first)
        while (yield from fetch(self._pgconn)):
            pass  # until the server is ready, as the connection could not be used before
        self._set_results([result])
        return None

    def _take_rows(self, result: Any, *, first: bool) -> Any:
        if result is None:
            return None
        if result.status not in (ExecStatus.SINGLE_TUPLE, ExecStatus.TUPLES_CHUNK):
            self._raise_for_result(result)
        self.pgresult = result
        self._tx.set_pgresult(result, set_loaders=first)
        if first:
            self._make_row = self._make_row_maker()
        return result


class PostgresDriver:
    """How a pool makes, cleans and closes connections, which are in autocommit mode.

    Not `psycopg_pool`: that connects in the background, so that a task would learn of a wrong password by a
    timeout only, and its end waits for the queries that run instead of cancelling them.
    """

    def __init__(self, conninfo: str) -> None:
        self._conninfo = conninfo

    async def connect(self) -> PostgresConnection:
        # What the driver prepares by itself would be forgotten with the session, and the driver not know it.
        connection = await psycopg.AsyncConnection.connect(
            self._conninfo,
            autocommit=True,
            prepare_threshold=None,
            context=ADAPTERS,
            cursor_factory=StreamCursor,
        )
        await _iso_dates(connection)
        return connection

    def is_open(self, connection: PostgresConnection) -> bool:
        return not connection.closed and not _has_input(connection)

    async def clean(self, connection: PostgresConnection) -> bool:
        try:
            if connection.info.transaction_status in (TransactionStatus.INTRANS, TransactionStatus.INERROR):
                await connection.rollback()
            # One that is still at work was cut off: nobody knows what comes next on it.
            if connection.info.transaction_status != TransactionStatus.IDLE:
                return False
            await connection.execute("DISCARD ALL")
            await _iso_dates(connection)
        except psycopg.Error:
            return False
        return True

    async def close(self, connection: PostgresConnection) -> None:
        if connection.info.transaction_status == TransactionStatus.ACTIVE:
            with suppress(psycopg.Error):
                await connection.cancel_safe(timeout=_CANCEL_SECONDS)
        await connection.close()


def _has_input(connection: PostgresConnection) -> bool:
    """Whether something came in that nobody asked for: the last words of a server that has hung up."""
    # `SELECT 1` would cost each task a round trip, and `select` takes no descriptor above 1023.
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return bool(poll.poll(0))


async def _iso_dates(connection: PostgresConnection) -> None:
    """Has the server write dates as the rest of the tool reads them, whatever its settings are."""
    if not (connection.info.parameter_status("DateStyle") or "").startswith("ISO"):
        await connection.execute("SET datestyle = ISO")
