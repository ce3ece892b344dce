"""Runs the kind `snowflake`."""

import asyncio
from functools import partial

from snowflake.connector.errors import Error

from noetl.model.outcome import Outcome
from noetl.ports.tool import Call
from noetl.tools.host.tool_attempt import as_outcome, error_outcome
from noetl.tools.snowflake.auth import snowflake_target
from noetl.tools.snowflake.failure import snowflake_failure, snowflake_success, snowflake_timeout
from noetl.tools.snowflake.kind import SnowflakeInputs
from noetl.tools.snowflake.pool import SnowflakeDriver, SnowflakeSession
from noetl.tools.snowflake.session import SnowflakeAttempt
from noetl.tools.sql.connection_pool import SqlConnectionPools
from noetl.tools.sql.sql_inputs import PooledSqlSpec, check_server_inputs
from noetl.tools.sql.sql_task import decode_sql_task
from noetl.tools.sql.statement_result import sql_outcome


class SnowflakeTool:
    """SQL over one pool of sessions for each account, user and size."""

    def __init__(self) -> None:
        self._pools: SqlConnectionPools[SnowflakeSession] = SqlConnectionPools()

    async def run(self, call: Call) -> Outcome:
        return await as_outcome(self._attempt(call))

    async def close(self) -> None:
        await self._pools.close()

    async def _attempt(self, call: Call) -> Outcome:
        inputs, spec = decode_sql_task(call, SnowflakeInputs, PooledSqlSpec, check_server_inputs)
        target = snowflake_target(inputs)
        pool = self._pools.pool(target, spec.pool, partial(SnowflakeDriver, target))
        attempt: SnowflakeAttempt | None = None
        try:
            async with asyncio.timeout(call.timeout), pool.connection() as session:
                attempt = SnowflakeAttempt(call, inputs, spec, session)
                results = await attempt.run()
        except Error as error:
            if self._pools.closed:
                return error_outcome("cancelled", "the worker is ending")
            bound = attempt.current if attempt else None
            return snowflake_failure(error, bound, connected=attempt is not None)
        except UnicodeError as error:
            return error_outcome("input", f"a value cannot be sent to the server: {error}")
        except TimeoutError:
            return snowflake_timeout(call, attempt.current if attempt else None)
        return sql_outcome(call, results, attempt.warnings, snowflake=snowflake_success(attempt.query_id))
