"""A store in PostgreSQL behind PgBouncer itself."""

from itertools import count
from pathlib import Path

import pytest

from bench.postgres_server import PostgresServer
from noetl.ports.store import StoreUnusable
from noetl.stores.postgres.address import DatabaseAddress
from noetl.stores.postgres.store import PostgresStore
from noetl.testing.store.store_fixtures import begin_execution
from tests.pgbouncer.pooler import pooler
from tests.stores.postgres_link import with_stores

_numbers = count(1)


def address_of(server: PostgresServer) -> DatabaseAddress:
    return DatabaseAddress.parse(server.dsn(port="6432", schema=f"pooled_{next(_numbers)}"))


@pytest.mark.parametrize("mode", ["transaction", "statement"])
def test_a_pool_that_changes_connections_is_refused_with_what_to_do(
    postgres: PostgresServer, public_folder: Path, mode: str
) -> None:
    with pooler(postgres, public_folder, mode) as pool:
        with pytest.raises(StoreUnusable, match="changes connections") as refused:
            with_stores(address_of(pool), PostgresStore.feed_end)
        assert "pool_mode = session" in refused.value.hint


def test_a_pool_that_keeps_connections_is_as_good_as_none(
    postgres: PostgresServer, public_folder: Path
) -> None:
    with pooler(postgres, public_folder, "session") as pool:
        with_stores(address_of(pool), lambda store: begin_execution(store, "a"))
