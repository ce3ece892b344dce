from collections.abc import Iterator
from typing import Annotated, Any

from msgspec import Meta

from noetl.dsl.kinds import Fault, Kind
from noetl.tools.inputs import Inputs
from noetl.tools.sql import DEFAULTS, RESULT, SPELLINGS, SqlInputs, SqlSpec, check_sql


class DuckdbInputs(SqlInputs, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """SQL over files, attached databases and the results of other tasks."""

    database: Annotated[
        str | None,
        Meta(description="Database file. Default: one in memory for each execution and worker."),
    ] = None
    tables: Annotated[
        dict[str, Any] | None,
        Meta(description="Rows or references to query as tables, by name. Task labels need no entry."),
    ] = None


def check(inputs: Inputs, _spec: Inputs) -> Iterator[Fault]:
    """Statements, or rows and where they go."""
    return check_sql(inputs)


EXAMPLE = """\
name: by_city
kind: duckdb
query: SELECT city, sum(total) AS total FROM orders GROUP BY city
tables: { orders: "{{ workload.orders }}" }
"""

KIND = Kind(
    name="duckdb",
    summary="Runs SQL in DuckDB over files and the results of other tasks.",
    result=RESULT,
    example=EXAMPLE,
    inputs=DuckdbInputs,
    spec=SqlSpec,
    defaults=DEFAULTS,
    spellings=SPELLINGS,
    check=check,
    extra="duckdb",
)
