"""Runs the kind `postgres`."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from noetl.model.outcome import Outcome, ToolError
from noetl.ports.tool import Call
from noetl.tools.host.tool_attempt import as_outcome, error_outcome
from noetl.tools.postgres.auth import conninfo_of
from noetl.tools.postgres.failure import OK, postgres_failure, postgres_timeout
from noetl.tools.postgres.kind import ConnectionPool, PostgresInputs, PostgresSpec, check
from noetl.tools.postgres.pool import PoolSize, PostgresConnection, PostgresPool
from noetl.tools.postgres.session import PostgresSession
from noetl.tools.sql.sql_task import decode_sql_task
from noetl.tools.sql.statement_result import sql_outcome


class PostgresTool:
    """SQL over one pool of connections for each server and size."""

    def __init__(self) -> None:
        self._pools: dict[tuple[str, PoolSize], PostgresPool] = {}
        self._closed = False

    async def run(self, call: Call) -> Outcome:
        return await as_outcome(self._attempt(call))

    async def close(self) -> None:
        self._closed = True
        pools, self._pools = self._pools, {}
        await asyncio.gather(*(pool.close() for pool in pools.values()))

    async def _attempt(self, call: Call) -> Outcome:
        inputs, spec = decode_sql_task(call, PostgresInputs, PostgresSpec, check)
        pool = self._pool_for(conninfo_of(inputs), spec.pool)
        session = PostgresSession(call, inputs, spec)
        try:
            async with asyncio.timeout(call.timeout), pool.connection() as connection:
                with _log_notices(connection, call):
                    results = await session.run(connection)
        except psycopg.Error as error:
            if self._closed:
                return error_outcome("cancelled", "the worker is ending")
            return postgres_failure(error, session.current, connected=session.connected)
        except UnicodeError as error:
            return error_outcome("input", f"a value cannot be sent to the server: {error}")
        except TimeoutError:
            return postgres_timeout(call, session.current)
        return sql_outcome(call, results, session.warnings, pg=dict(OK))

    def _pool_for(self, conninfo: str, knobs: str | ConnectionPool | None) -> PostgresPool:
        if self._closed:
            raise ToolError("cancelled", "the worker is ending")
        size = PoolSize()
        if isinstance(knobs, ConnectionPool):
            least = knobs.min or 0
            size = PoolSize(least, knobs.max or max(size.max, least), knobs.timeout)
        key = conninfo, size
        if key not in self._pools:
            self._pools[key] = PostgresPool(conninfo, size)
        return self._pools[key]


@contextmanager
def _log_notices(connection: PostgresConnection, call: Call) -> Iterator[None]:
    """Has the server's notices in the task's log."""

    def log_notice(diagnosis: psycopg.errors.Diagnostic) -> None:
        call.log(f"{diagnosis.severity}: {diagnosis.message_primary}")

    connection.add_notice_handler(log_notice)
    try:
        yield
    finally:
        connection.remove_notice_handler(log_notice)
