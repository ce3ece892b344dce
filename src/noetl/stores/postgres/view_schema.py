"""The schema beside that of a store that has the tables of the language as views, for who asks with SQL."""

import asyncpg

from noetl.ports.store import StoreUnusable
from noetl.stores.postgres.database_connections import Connection
from noetl.stores.table_views import VIEW_NAMES, postgres_views

_LONGEST = 63
"""Bytes that PostgreSQL keeps of a name."""
_SUFFIX = "_views"
_VIEWS = """
SELECT relname FROM pg_class JOIN pg_namespace ON relnamespace = pg_namespace.oid
WHERE nspname = $1 AND relname = ANY($2) AND relkind = 'v'
"""
_HAS_SCHEMA = "SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1)"


def views_schema(schema: str) -> str:
    return f"{schema[: _LONGEST - len(_SUFFIX)]}{_SUFFIX}"


class ViewSchema:
    """The views of the store in a schema, on a connection with a transaction."""

    def __init__(self, connection: Connection, schema: str) -> None:
        self._connection = connection
        self._schema = schema
        self._views_schema = views_schema(schema)

    async def make(self) -> None:
        """Raises StoreUnusable where somebody's own views rest on them."""
        connection, name = self._connection, self._views_schema
        await self.drop()
        # Asked first: who may write in a schema that is there may not need the right to make one.
        if not await connection.fetchval(_HAS_SCHEMA, name):
            await connection.execute(f"CREATE SCHEMA {name}")
        for statement in postgres_views(self._schema, name):
            await connection.execute(statement)

    async def drop(self) -> bool:
        """Whether there were any. Raises StoreUnusable as `make`."""
        rows = await self._connection.fetch(_VIEWS, self._views_schema, [*VIEW_NAMES])
        names = ", ".join(f"{self._views_schema}.{row['relname']}" for row in rows)
        if names:
            try:
                await self._connection.execute(f"DROP VIEW {names}")
            except asyncpg.DependentObjectsStillExistError as error:
                detail = (error.detail or str(error)).splitlines()[0]
                hint = "drop it, and make it again afterwards"
                raise StoreUnusable(
                    f"the views in {self._views_schema} have to be made anew: {detail}", hint
                ) from None
        return bool(names)
