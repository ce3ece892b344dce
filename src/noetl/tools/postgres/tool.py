"""Runs the kind `postgres`."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import psycopg

from noetl.model.outcome import Outcome
from noetl.ports.tool import Call
from noetl.tools.host.tool_attempt import as_outcome, error_outcome
from noetl.tools.postgres.auth import conninfo_of
from noetl.tools.postgres.failure import OK, postgres_failure, postgres_timeout
from noetl.tools.postgres.kind import PostgresInputs
from noetl.tools.postgres.pool import PostgresConnection, PostgresDriver
from noetl.tools.postgres.session import PostgresSession
from noetl.tools.sql.connection_pool import SqlConnectionPools
from noetl.tools.sql.sql_inputs import PooledSqlSpec, check_server_inputs
from noetl.tools.sql.sql_task import decode_sql_task
from noetl.tools.sql.statement_result import sql_outcome


class PostgresTool:
    """SQL over one pool of connections for each server and size."""

    def __init__(self) -> None:
        self._pools: SqlConnectionPools[PostgresConnection] = SqlConnectionPools()

    async def run(self, call: Call) -> Outcome:
        return await as_outcome(self._attempt(call))

    async def close(self) -> None:
        await self._pools.close()

    async def _attempt(self, call: Call) -> Outcome:
        inputs, spec = decode_sql_task(call, PostgresInputs, PooledSqlSpec, check_server_inputs)
        conninfo = conninfo_of(inputs)
        pool = self._pools.pool(conninfo, spec.pool, partial(PostgresDriver, conninfo))
        session = PostgresSession(call, inputs, spec)
        try:
            async with asyncio.timeout(call.timeout), pool.connection() as connection:
                with _log_notices(connection, call):
                    results = await session.run_on(connection)
        except psycopg.Error as error:
            if self._pools.closed:
                return error_outcome("cancelled", "the worker is ending")
            return postgres_failure(error, session.current, connected=session.connected)
        except UnicodeError as error:
            return error_outcome("input", f"a value cannot be sent to the server: {error}")
        except TimeoutError:
            return postgres_timeout(call, session.current)
        return sql_outcome(call, results, session.warnings, pg=dict(OK))


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
