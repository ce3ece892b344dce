"""What an operator does with a store in a database, and should know about it."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from msgspec import Struct

from noetl.stores.postgres.address import DatabaseAddress
from noetl.stores.postgres.database_connections import Connection, PostgresConnection
from noetl.stores.postgres.database_schema import POSTGRES_SCHEMA_VERSION, PostgresSchema
from noetl.stores.postgres.failures import DATABASE_ERRORS, store_failure
from noetl.stores.postgres.partitions import EventPartitions, weeks_to_come
from noetl.stores.postgres.queries import READ
from noetl.stores.postgres.view_schema import ViewSchema, views_schema

T = TypeVar("T")


class DatabaseHealth(Struct, frozen=True):
    """A store in a database as it is now. Times are in seconds."""

    label: str
    server: str
    """The version of PostgreSQL."""
    schema_version: int
    current_version: int
    clock_ahead: float
    """By how much the clock of the database is ahead of the one that was given."""
    weeks_missing: int
    """Partitions that should be there already."""
    oldest_transaction: float
    """Since when the oldest transaction runs that holds the feed back; 0 if none does."""
    oldest_owner: str
    """Who has it: the name of the application and the user."""
    connections: int
    max_connections: int
    dead_ready_rows: int


async def migrate_schema_of(address: DatabaseAddress) -> tuple[int, int]:
    """The version before (0: there was none) and after. Raises StoreError."""
    schema = PostgresSchema(address)

    async def migrate(connection: Connection) -> tuple[int, int]:
        versions = await schema.migrate(connection)
        await schema.prepare(connection)  # with the partitions that come
        return versions

    return await _with_connection(address, migrate)


async def make_views_of(address: DatabaseAddress) -> str:
    """Makes the views of the tables of the language, or makes them anew; the schema that has them.

    Raises StoreError.
    """
    schema = PostgresSchema(address)

    async def make(connection: Connection) -> str:
        await schema.prepare(connection)
        async with connection.transaction():
            await schema.lock(connection)
            await ViewSchema(connection, address.schema).make()
        return views_schema(address.schema)

    return await _with_connection(address, make)


async def read_health_of(address: DatabaseAddress, now: int) -> DatabaseHealth:
    """`now` is the time here, in microseconds since 1970. Raises StoreError."""

    async def read(connection: Connection) -> DatabaseHealth:
        version = await PostgresSchema(address).read_version(connection)
        clock = await connection.fetchval(READ["clock"])
        row: dict[str, Any] = dict(await connection.fetchrow(READ["health"]))
        weeks = await EventPartitions(connection).weeks() if version else set(weeks_to_come(clock))
        return DatabaseHealth(
            label=address.label,
            schema_version=version,
            current_version=POSTGRES_SCHEMA_VERSION,
            clock_ahead=(clock - now) / 1e6,
            weeks_missing=len(set(weeks_to_come(clock)) - weeks),
            **row,
        )

    return await _with_connection(address, read)


async def _with_connection(address: DatabaseAddress, work: Callable[[Connection], Awaitable[T]]) -> T:
    """On a connection that looks at no schema before: what `work` finds may be of another version."""
    connection = PostgresConnection(address, _leave_as_it_is)
    try:
        return await connection.run(work)
    except DATABASE_ERRORS as error:
        raise store_failure(address.label, error, opening=True) from error
    finally:
        await connection.close()


async def _leave_as_it_is(_: Connection) -> None:
    """Nothing is prepared."""
