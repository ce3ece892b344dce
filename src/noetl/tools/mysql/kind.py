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


class MysqlInputs(SqlInputs, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """SQL for a MySQL or MariaDB server."""

    dsn: Annotated[str | None, Meta(description="Address `mysql://…`, instead of `auth`.")] = None


EXAMPLE = """\
name: open_orders
kind: mysql
auth: { dsn: mysql://shop@db.example.com/shop }
command: SELECT id, total FROM orders WHERE status = :status
params: { status: open }
"""

KIND = Kind(
    name="mysql",
    summary="Runs SQL on MySQL or MariaDB, with bound parameters.",
    result=RESULT,
    helpers={"mysql": "`code`, the number of the error, `sqlstate` and `message`; 0 and `00000` on success."},
    example=EXAMPLE,
    inputs=MysqlInputs,
    spec=PooledSqlSpec,
    defaults=DEFAULTS,
    spellings=SPELLINGS,
    check=check_server_inputs,
    takes_references=frozenset({"rows", "args"}),
    reads=frozenset(),
    extra="mysql",
    implementation="noetl.tools.mysql.tool:MysqlTool",
)
