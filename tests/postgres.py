"""A PostgreSQL for each process of a session of tests, and a schema of its own for each test."""

from collections.abc import Iterator
from itertools import count

import psycopg
import pytest

from bench.postgres_server import PostgresServer, postgres_server

_numbers = count(1)


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """The server of this process."""
    with postgres_server() as server:
        yield server


@pytest.fixture
def dsn(postgres: PostgresServer) -> Iterator[str]:
    """An address whose tables no other test sees."""
    schema = f"test_{next(_numbers)}"
    with psycopg.connect(postgres.dsn(), autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {schema}")
        yield postgres.dsn(options=f"-csearch_path={schema}")
        connection.execute(f"DROP SCHEMA {schema} CASCADE")
