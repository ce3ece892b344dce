"""The contract that all SQL kinds share."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal, TypeAlias

from msgspec import Meta, Struct

from noetl.dsl.document.kinds import Auth, Fault, Seconds, Spelling, Sql, TaskSpec
from noetl.model.json import Json
from noetl.model.reference import MARKER
from noetl.tools.host.input_rules import Inputs, at_most_one, exactly_one, present_names

Statements: TypeAlias = Sql | Annotated[list[Sql], Meta(min_length=1)]


class SqlInputs(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Statements with their parameters, or rows to load."""

    command: Annotated[Statements | None, Meta(description="SQL to run: one text, or a list.")] = None
    query: Annotated[Statements | None, Meta(description="The same as `command`.")] = None
    commands: Annotated[Statements | None, Meta(description="The same as `command`.")] = None
    params: Annotated[
        list[Any] | dict[str, Any] | None,
        Meta(description="Values bound to placeholders: a list by position, a mapping by name."),
    ] = None
    rows: Annotated[
        list[dict[str, Any] | list[Any]] | dict[str, Any] | None,
        Meta(
            description="Rows to load `into` a table, or to run the command with, once for each: "
            "a list of mappings or lists, or the reference to an Arrow table."
        ),
    ] = None
    into: Annotated[
        str | None,
        Meta(description="Table that the `rows` go into: `schema.table`, or with columns `table (a, b)`."),
    ] = None
    auth: Annotated[
        Auth | None, Meta(description="Keychain entry or stored credential with the connection.")
    ] = None


class SqlSpec(TaskSpec, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The knobs of a SQL task."""

    transaction: Annotated[
        bool | None, Meta(description="One transaction around all statements. Default true.")
    ] = None
    fetch: Annotated[
        Literal["all", "one", "none"] | None,
        Meta(description="Rows to give back: `all` (default), only the first, or `none`."),
    ] = None


class ConnectionPool(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The connections a worker keeps open to one server."""

    min: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        Meta(description="Connections kept when nothing uses them. Default 0."),
    ] = None
    max: Annotated[
        Annotated[int, Meta(ge=1)] | None, Meta(description="Most connections at once. Default 10.")
    ] = None
    timeout: Annotated[
        Seconds | None, Meta(description="Seconds to wait for a free one; at most the attempt's own.")
    ] = None


class PooledSqlSpec(SqlSpec, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The knobs of a task on a database server."""

    pool: Annotated[
        str | ConnectionPool | None,
        Meta(description="A mapping sizes the connection pool; a name is the worker pool that runs it."),
    ] = None  # type: ignore[assignment]  # every kind has the name, these the mapping, too


DEFAULTS: dict[str, Json] = {"transaction": True, "fetch": "all"}

RESULT = (
    "`{rows, row_count, columns, statements}` of the last statement that gives rows, and "
    "`{rows, row_count, columns}` of each as `command_0`, `command_1`, …; a large table is a reference."
)

SPELLINGS: dict[str, Spelling] = {"credential": "auth"}


def check_sql_inputs(inputs: Inputs) -> Iterator[Fault]:
    """Either statements, or rows and where they go."""
    yield from at_most_one(
        inputs, "command", "query", "commands", hint="they mean the same: keep one, with a list if need be"
    )
    statements = present_names(inputs, "command", "query", "commands")
    rows, into = inputs.get("rows"), inputs.get("into")
    if rows is None:
        if into is not None:
            yield Fault("`into` needs `rows`", key="into", hint="give the rows to load, or write an INSERT")
        elif not statements:
            yield Fault("there is no SQL to run", hint="give `command`, or `rows` with `into`")
        return
    if into is None and not statements:
        yield Fault("the rows go nowhere", key="rows", hint="name a table with `into`, or give a `command`")
    if into is not None and statements:
        yield Fault(
            f"`into` cannot stand beside `{statements[0]}`",
            key="into",
            hint="rows are loaded `into` a table or run through a command; use two tasks for both",
        )
    if isinstance(rows, dict) and MARKER not in rows:
        yield Fault("`rows` is no list", key="rows", hint="give a list of mappings or lists")
    if len(statements) == 1 and isinstance(commands := inputs[statements[0]], list) and len(commands) > 1:
        yield Fault("rows run through one statement", key=statements[0], hint="use a task for each")
    if inputs.get("params") is not None:
        yield Fault("`params` cannot stand beside `rows`", key="params", hint="each row binds its own values")


def check_server_inputs(inputs: Inputs, spec: Inputs) -> Iterator[Fault]:
    """SQL, one way to reach the server, and a size that a pool can have."""
    yield from exactly_one(inputs, "auth", "dsn", hint="name a `keychain` entry with `auth`")
    yield from check_sql_inputs(inputs)
    yield from check_pool(spec)


def check_pool(spec: Inputs) -> Iterator[Fault]:
    pool = spec.get("pool")
    least, most = (pool.get("min"), pool.get("max")) if isinstance(pool, dict) else (None, None)
    if isinstance(least, int) and isinstance(most, int) and least > most:
        yield Fault("`pool.min` is more than `pool.max`", key="pool", hint="let `min` be the smaller one")
