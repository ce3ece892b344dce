"""The schema of a store: made if there is none, brought up to date when asked for, and its partitions."""

import asyncio
from collections.abc import Sequence

import asyncpg

from noetl.ports.store import StoreError, StoreUnusable
from noetl.stores.postgres.address import DatabaseAddress
from noetl.stores.postgres.database_connections import Connection
from noetl.stores.postgres.failures import DATABASE_ERRORS, POOLER, store_failure
from noetl.stores.postgres.partitions import LOCK_SECONDS, EventPartitions, weeks_to_come
from noetl.stores.postgres.queries import READ, WRITE, current_schema, number_parameters, schema_migrations
from noetl.stores.postgres.view_schema import ViewSchema

POSTGRES_SCHEMA_VERSION = len(schema_migrations())
"""The version that stores have when they are open."""
OLDEST_SERVER = 14
"""The first version of PostgreSQL that detaches partitions while others use the table."""
_LOCK = "SELECT pg_advisory_xact_lock(hashtext('noetl store'), hashtext($1))"
# From the catalog itself: what `to_regclass` says may be as old as the transaction, and another process may
# have made it while this one waited for the lock.
_TABLES = """
SELECT count(*) FILTER (WHERE relname = 'store') > 0, count(*) > 0
FROM pg_class JOIN pg_namespace ON relnamespace = pg_namespace.oid WHERE nspname = $1
"""
_NO_SCHEMA = "SELECT NOT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1)"


class PostgresSchema:
    """What a store object knows about the schema that it works in."""

    def __init__(self, address: DatabaseAddress) -> None:
        self._address = address
        self.ready = False
        """Whether the database was reached, and there is a store of the right form."""
        self._turn = asyncio.Lock()
        self.shift = 0
        """What is added to the number of a transaction: see schema.sql."""

    async def prepare(self, connection: Connection) -> None:
        """The first time: looks what there is, and makes a store where there is none.

        Raises StoreUnusable where there is something else, or another version; StoreError.
        """
        if self.ready:
            return
        async with self._turn:
            if self.ready:
                return
            try:
                await self._look(connection)
            except DATABASE_ERRORS as error:
                raise self.failure(error) from error
            self.ready = True

    def failure(self, error: Exception) -> StoreError:
        """What callers hear of it."""
        return store_failure(self._address.label, error, opening=not self.ready)

    async def _look(self, connection: Connection) -> None:
        await self._refuse_what_cannot_hold_a_store(connection)
        version = await self.read_version(connection)
        if version not in (0, POSTGRES_SCHEMA_VERSION):
            raise self._wrong_version(version)
        if await connection.fetchval("SELECT pg_is_in_recovery()"):
            await self._look_at_standby(connection, version)
            return
        if version == 0:
            await self.migrate(connection)
        now = await connection.fetchval(READ["clock"])
        await self._make_partitions(EventPartitions(connection), weeks_to_come(now))
        await self._continue_numbers(connection)
        self.shift = (await connection.fetchrow(READ["store"]))["xact_shift"]

    async def _look_at_standby(self, connection: Connection, version: int) -> None:
        """What is missing there comes from the primary, or not at all: it cannot be written to."""
        if version == 0:
            message = f"{self._address.label} is a standby, and has no store"
            raise StoreUnusable(message, "`noetl store migrate` makes one in its primary")
        self.shift = (await connection.fetchrow(READ["store"]))["xact_shift"]

    async def _refuse_what_cannot_hold_a_store(self, connection: Connection) -> None:
        if connection.get_server_version().major < OLDEST_SERVER:
            message = (
                f"{self._address.label} is PostgreSQL {await connection.fetchval('SHOW server_version')}"
            )
            raise StoreUnusable(message, f"NoETL needs {OLDEST_SERVER} or newer")
        encoding = await connection.fetchval("SHOW server_encoding")
        if encoding != "UTF8":
            message = f"{self._address.label} has the encoding {encoding}"
            raise StoreUnusable(message, "`createdb --encoding UTF8 --template template0 NAME` makes one")
        # A pooler gives connections numbers of its own. Two that it keeps apart have two processes behind.
        if await connection.fetchval("SELECT pg_backend_pid()") == connection.get_server_pid():
            return
        other = await asyncpg.connect(self._address.dsn)
        try:
            processes = [await link.fetchval("SELECT pg_backend_pid()") for link in (connection, other)]
        finally:
            other.terminate()
        if processes[0] == processes[1]:
            message = f"{self._address.label} is a pool that changes connections with each transaction"
            raise StoreUnusable(message, POOLER)

    async def _make_partitions(self, partitions: EventPartitions, weeks: Sequence[int]) -> None:
        try:
            await partitions.make(weeks)
        except asyncpg.LockNotAvailableError:
            # The next one who opens the store makes those that come.
            if weeks[0] not in await partitions.weeks():
                raise

    async def read_version(self, connection: Connection) -> int:
        """That of the schema as it is; 0 if there is no store. Raises StoreUnusable."""
        schema = self._address.schema
        is_store, has_tables = await connection.fetchrow(_TABLES, schema)
        if not is_store and has_tables:
            message = f"{self._address.label}: the schema {schema} belongs to another program"
            raise StoreUnusable(message, "?schema=NAME in the URL names another one")
        return int((await connection.fetchrow(READ["store"]))["version"]) if is_store else 0

    def _wrong_version(self, version: int) -> StoreUnusable:
        if version > POSTGRES_SCHEMA_VERSION:
            message = (
                f"{self._address.label} was written by a newer NoETL: schema {version}, this one knows "
                f"{POSTGRES_SCHEMA_VERSION}"
            )
            return StoreUnusable(message, "upgrade NoETL, or choose another store")
        message = (
            f"{self._address.label} has an older form: schema {version}, this NoETL wants "
            f"{POSTGRES_SCHEMA_VERSION}"
        )
        return StoreUnusable(message, "`noetl store migrate --store URL` brings it up to date")

    async def migrate(self, connection: Connection, scripts: Sequence[str] | None = None) -> tuple[int, int]:
        """Brings the schema up to date, or makes it; its version before (0: there was none) and after.

        One transaction: what fails changes nothing. It waits at most `LOCK_SECONDS` for what others hold.
        """
        steps = schema_migrations() if scripts is None else scripts
        async with connection.transaction():
            await self.lock(connection)
            # Looked at again: another process may have made it while this one waited for the lock.
            before = await self.read_version(connection)
            if before > len(steps):
                raise self._wrong_version(before)
            if before < len(steps):
                await self._run_steps(connection, steps if scripts or before else [current_schema()], before)
                row = await connection.fetchrow(READ["store"])
                query = number_parameters(WRITE["put_version"])
                values = {"version": len(steps), "shift": row["xact_shift"] if row else 0}
                await connection.execute(query.text, *query.arguments(values))
        return before, len(steps)

    async def lock(self, connection: Connection) -> None:
        """Nobody else changes the schema until the transaction ends. Waits at most `LOCK_SECONDS`."""
        await connection.execute(f"SET LOCAL lock_timeout = '{LOCK_SECONDS}s'")
        await connection.execute(_LOCK, self._address.schema)

    async def _run_steps(self, connection: Connection, steps: Sequence[str], before: int) -> None:
        # Asked first: who may write in a schema that is there may not need the right to make one.
        if not before and await connection.fetchval(_NO_SCHEMA, self._address.schema):
            await connection.execute(f"CREATE SCHEMA {self._address.schema}")
        # A view holds on to the columns that it shows.
        views = ViewSchema(connection, self._address.schema)
        has_views = await views.drop()
        for step in steps[before:]:
            await connection.execute(step)
        if has_views:
            await views.make()

    async def _continue_numbers(self, connection: Connection) -> None:
        """Where a dump was restored, transactions have lower numbers than what stands in it."""
        highest, following = await connection.fetchrow(READ["highest_xact"])
        shift = (await connection.fetchrow(READ["store"]))["xact_shift"]
        if highest < following + shift:
            return
        async with connection.transaction():
            await connection.execute(_LOCK, self._address.schema)
            highest, following = await connection.fetchrow(READ["highest_xact"])
            shift = (await connection.fetchrow(READ["store"]))["xact_shift"]
            if highest >= following + shift:
                query = number_parameters(WRITE["put_shift"])
                await connection.execute(query.text, highest + 1 - following)
