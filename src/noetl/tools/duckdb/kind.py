from collections.abc import Iterable, Iterator
from typing import Annotated, Any

from msgspec import Meta

from noetl.dsl.document.kinds import Fault, Kind
from noetl.model.json import Json
from noetl.tools.duckdb.text import names_in
from noetl.tools.host.input_rules import Inputs, Size, literal_text
from noetl.tools.sql.sql_inputs import DEFAULTS, RESULT, SPELLINGS, SqlInputs, SqlSpec, check_sql_inputs


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


class DuckdbSpec(SqlSpec, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The knobs of a DuckDB task."""

    memory: Annotated[
        Size | None,
        Meta(description="Most memory of the database from here on, such as `2GB`; more goes to the disk."),
    ] = None
    threads: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="Threads of the database from here on. Default: one for each core."),
    ] = None


def check(inputs: Inputs, _spec: Inputs) -> Iterator[Fault]:
    """Statements, or rows and where they go; and a database that is a file."""
    database = literal_text(inputs.get("database"))
    if database is not None and "://" in database:
        yield Fault(
            "a database is a file of this machine", key="database", hint="`ATTACH` others in a command"
        )
    yield from check_sql_inputs(inputs)


def labels_in_sql(inputs: Inputs) -> Iterable[str]:
    """The names in the SQL: some may be labels."""
    return {name for key in ("command", "query", "commands") for name in _names(inputs.get(key))}


def _names(sql: Json) -> Iterable[str]:
    texts = sql if isinstance(sql, list) else [sql]
    return {name for text in texts if isinstance(text, str) for name in names_in(text)}


EXAMPLE = """\
name: by_city
kind: duckdb
query: SELECT city, sum(total) AS total FROM orders WHERE total >= $least GROUP BY city
tables: { orders: "{{ workload.orders }}" }
params: { least: 10 }
"""

KIND = Kind(
    name="duckdb",
    summary="Runs SQL in DuckDB over files and the results of other tasks.",
    result=RESULT,
    helpers={"duckdb": "`type`, `statement`, `line` and `message` of an error."},
    example=EXAMPLE,
    inputs=DuckdbInputs,
    spec=DuckdbSpec,
    defaults=DEFAULTS,
    spellings=SPELLINGS,
    check=check,
    reads_labels=labels_in_sql,
    takes_references=frozenset({"tables", "rows", "labels", "args"}),
    reads=frozenset(),
    extra="duckdb",
    implementation="noetl.tools.duckdb.tool:DuckdbTool",
)
