"""Runs the kind `mysql`."""

import asyncio
from functools import partial

from asyncmy.errors import MySQLError

from noetl.model.outcome import Outcome
from noetl.ports.tool import Call
from noetl.tools.host.tool_attempt import as_outcome, error_outcome
from noetl.tools.mysql.auth import mysql_target
from noetl.tools.mysql.failure import OK, mysql_failure, mysql_timeout
from noetl.tools.mysql.kind import MysqlInputs
from noetl.tools.mysql.pool import MysqlConnection, MysqlDriver
from noetl.tools.mysql.session import MysqlSession
from noetl.tools.sql.connection_pool import SqlConnectionPools
from noetl.tools.sql.sql_inputs import PooledSqlSpec, check_server_inputs
from noetl.tools.sql.sql_task import decode_sql_task
from noetl.tools.sql.statement_result import sql_outcome


class MysqlTool:
    """SQL over one pool of connections for each server, user and size."""

    def __init__(self) -> None:
        self._pools: SqlConnectionPools[MysqlConnection] = SqlConnectionPools()

    async def run(self, call: Call) -> Outcome:
        return await as_outcome(self._attempt(call))

    async def close(self) -> None:
        await self._pools.close()

    async def _attempt(self, call: Call) -> Outcome:
        inputs, spec = decode_sql_task(call, MysqlInputs, PooledSqlSpec, check_server_inputs)
        target = mysql_target(inputs)
        pool = self._pools.pool(target, spec.pool, partial(MysqlDriver, target))
        session: MysqlSession | None = None
        try:
            async with asyncio.timeout(call.timeout), pool.connection() as connection:
                session = MysqlSession(call, inputs, spec, connection)
                results = await session.run()
        except MySQLError as error:
            if self._pools.closed:
                return error_outcome("cancelled", "the worker is ending")
            return mysql_failure(error, session.current if session else None)
        except UnicodeError as error:
            return error_outcome("input", f"a value cannot be sent to the server: {error}")
        except TimeoutError:
            return mysql_timeout(call, session.current if session else None)
        return sql_outcome(call, results, session.warnings, mysql=dict(OK))
