from collections.abc import Iterator
from typing import Annotated

from msgspec import Meta

from noetl.dsl.document.kinds import Fault, Kind
from noetl.tools.host.input_rules import Inputs, at_most_one
from noetl.tools.sql.sql_inputs import DEFAULTS, RESULT, SPELLINGS, SqlInputs, SqlSpec, check_sql_inputs


class SqliteInputs(SqlInputs, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """SQL for a SQLite file."""

    database: Annotated[
        str | None,
        Meta(
            description="Database file, relative to the playbook. Default: one in memory for each execution."
        ),
    ] = None


def check(inputs: Inputs, _spec: Inputs) -> Iterator[Fault]:
    """SQL, and at most one database."""
    yield from at_most_one(inputs, "database", "auth", hint="a credential names the file itself")
    yield from check_sql_inputs(inputs)


EXAMPLE = """\
name: open_orders
kind: sqlite
database: shop.db
command: SELECT id, total FROM orders WHERE status = :status
params: { status: open }
"""

KIND = Kind(
    name="sqlite",
    summary="Runs SQL on a SQLite file, with bound parameters.",
    result=RESULT,
    helpers={"sqlite": "`code`, such as `SQLITE_CONSTRAINT_UNIQUE`, and `message` of an error."},
    example=EXAMPLE,
    inputs=SqliteInputs,
    spec=SqlSpec,
    defaults=DEFAULTS,
    spellings=SPELLINGS,
    check=check,
    takes_references=frozenset({"rows", "args"}),
    reads=frozenset(),
    implementation="noetl.tools.sqlite.tool:SqliteTool",
)
