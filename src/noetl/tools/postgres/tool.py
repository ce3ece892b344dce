"""Runs the kind `postgres`."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from noetl.model.outcome import Outcome, ToolError
from noetl.ports.tool import Call
from noetl.tools.host.tool_attempt import attempted, failure
from noetl.tools.postgres.auth import conninfo_of
from noetl.tools.postgres.failure import OK, failure_of, late
from noetl.tools.postgres.kind import ConnectionPool, PostgresInputs, PostgresSpec, check
from noetl.tools.postgres.pool import Connection, Pool, Size
from noetl.tools.postgres.session import Session
from noetl.tools.sql.sql_task import typed
from noetl.tools.sql.statement_result import outcome_of


class PostgresTool:
    """SQL over one pool of connections for each server and size."""

    def __init__(self) -> None:
        self._pools: dict[tuple[str, Size], Pool] = {}
        self._closed = False

    async def run(self, call: Call) -> Outcome:
        return await attempted(self._attempt(call))

    async def close(self) -> None:
        self._closed = True
        pools, self._pools = self._pools, {}
        await asyncio.gather(*(pool.close() for pool in pools.values()))

    async def _attempt(self, call: Call) -> Outcome:
        inputs, spec = typed(call, PostgresInputs, PostgresSpec, check)
        pool = self._pool(conninfo_of(inputs), spec.pool)
        session = Session(call, inputs, spec)
        try:
            async with asyncio.timeout(call.timeout), pool.connection() as connection:
                with _notices(connection, call):
                    answers = await session.run(connection)
        except psycopg.Error as error:
            if self._closed:
                return failure("cancelled", "the worker is ending")
            return failure_of(error, session.current, connected=session.connected)
        except UnicodeError as error:
            return failure("input", f"a value cannot be sent to the server: {error}")
        except TimeoutError:
            return late(call, session.current)
        return outcome_of(call, answers, session.warnings, pg=dict(OK))

    def _pool(self, conninfo: str, knobs: str | ConnectionPool | None) -> Pool:
        if self._closed:
            raise ToolError("cancelled", "the worker is ending")
        size = Size()
        if isinstance(knobs, ConnectionPool):
            least = knobs.min or 0
            size = Size(least, knobs.max or max(size.max, least), knobs.timeout)
        key = conninfo, size
        if key not in self._pools:
            self._pools[key] = Pool(conninfo, size)
        return self._pools[key]


@contextmanager
def _notices(connection: Connection, call: Call) -> Iterator[None]:
    """Has the server's notices in the task's log."""

    def note(diagnosis: psycopg.errors.Diagnostic) -> None:
        call.log(f"{diagnosis.severity}: {diagnosis.message_primary}")

    connection.add_notice_handler(note)
    try:
        yield
    finally:
        connection.remove_notice_handler(note)
