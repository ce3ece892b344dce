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


class PostgresInputs(SqlInputs, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """SQL for a PostgreSQL server."""

    dsn: Annotated[str | None, Meta(description="Connection string `postgresql://…`, instead of `auth`.")] = (
        None
    )


EXAMPLE = """\
name: open_orders
kind: postgres
auth: { dsn: postgresql://shop@db.example.com/shop }
command: SELECT id, total FROM orders WHERE status = %(status)s
params: { status: open }
"""

KIND = Kind(
    name="postgres",
    summary="Runs SQL on PostgreSQL, with bound parameters.",
    result=RESULT,
    helpers={
        "pg": "`sqlstate`, also as `code`, with `message`, `constraint` and `detail`; `00000` on success."
    },
    example=EXAMPLE,
    inputs=PostgresInputs,
    spec=PooledSqlSpec,
    defaults=DEFAULTS,
    spellings=SPELLINGS,
    check=check_server_inputs,
    takes_references=frozenset({"rows", "args"}),
    reads=frozenset(),
    extra="postgres",
    implementation="noetl.tools.postgres.tool:PostgresTool",
)
