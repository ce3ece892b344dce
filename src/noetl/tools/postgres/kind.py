from collections.abc import Iterator
from typing import Annotated

from msgspec import Meta, Struct

from noetl.dsl.document.kinds import Fault, Kind, Seconds
from noetl.tools.host.input_rules import Inputs, exactly_one
from noetl.tools.sql.sql_inputs import DEFAULTS, RESULT, SPELLINGS, SqlInputs, SqlSpec, check_sql_inputs


class PostgresInputs(SqlInputs, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """SQL for a PostgreSQL server."""

    dsn: Annotated[str | None, Meta(description="Connection string `postgresql://…`, instead of `auth`.")] = (
        None
    )


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


class PostgresSpec(SqlSpec, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The knobs of a PostgreSQL task."""

    pool: Annotated[
        str | ConnectionPool | None,
        Meta(description="A mapping sizes the connection pool; a name is the worker pool that runs it."),
    ] = None  # type: ignore[assignment]  # every kind has the name, this one the mapping, too


def check(inputs: Inputs, spec: Inputs) -> Iterator[Fault]:
    """SQL, and one way to reach the server."""
    yield from exactly_one(inputs, "auth", "dsn", hint="name a `keychain` entry with `auth`")
    yield from check_sql_inputs(inputs)
    pool = spec.get("pool")
    least, most = (pool.get("min"), pool.get("max")) if isinstance(pool, dict) else (None, None)
    if isinstance(least, int) and isinstance(most, int) and least > most:
        yield Fault("`pool.min` is more than `pool.max`", key="pool", hint="let `min` be the smaller one")


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
    spec=PostgresSpec,
    defaults=DEFAULTS,
    spellings=SPELLINGS,
    check=check,
    takes_references=frozenset({"rows", "args"}),
    reads=frozenset(),
    extra="postgres",
    implementation="noetl.tools.postgres.tool:PostgresTool",
)
