from typing import Annotated

from msgspec import Meta

from noetl.dsl.document.kinds import Kind
from noetl.tools.sql.sql_inputs import (
    DEFAULTS,
    RESULT,
    SPELLINGS,
    PooledSqlSpec,
    SqlInputs,
    check_server_inputs,
)


class SnowflakeInputs(SqlInputs, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """SQL for a Snowflake account."""

    dsn: Annotated[
        str | None,
        Meta(description="Address `snowflake://user@account/database?warehouse=…`, instead of `auth`."),
    ] = None


EXAMPLE = """\
name: open_orders
kind: snowflake
auth: { account: org-shop, user: etl, database: shop, schema: public, warehouse: small }
command: SELECT id, total FROM orders WHERE status = :status
params: { status: open }
"""

KIND = Kind(
    name="snowflake",
    summary="Runs SQL on Snowflake, with bound parameters.",
    result=RESULT,
    helpers={
        "snowflake": "`code`, the number of the error, `sqlstate`, `query_id` of the last statement and "
        "`message`; 0 and `00000` on success."
    },
    example=EXAMPLE,
    inputs=SnowflakeInputs,
    spec=PooledSqlSpec,
    defaults=DEFAULTS,
    spellings=SPELLINGS,
    check=check_server_inputs,
    takes_references=frozenset({"rows", "args"}),
    reads=frozenset(),
    extra="snowflake",
    implementation="noetl.tools.snowflake.tool:SnowflakeTool",
)
