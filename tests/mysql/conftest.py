"""These tests need a MariaDB: `scripts/test` installs one as root on Debian; `--no-mariadb` leaves them out."""

import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from noetl.tools.mysql.tool import MysqlTool
from tests.mysql.mariadb import MariadbServer, mariadb_server
from tests.tools.sql_calls import SqlDatabase

collect_ignore_glob = ["test_*.py"] if os.environ.get("NOETL_TEST_MARIADB") == "no" else []

_numbers = count(1)


@pytest.fixture(scope="session")
def mariadb() -> Iterator[MariadbServer]:
    """The server of this process."""
    with mariadb_server() as server:
        yield server


@pytest.fixture
def mysql_dsn(mariadb: MariadbServer) -> Iterator[str]:
    """An address whose tables no other test sees."""
    name = f"test_{next(_numbers)}"
    admin = SqlDatabase(MysqlTool, Path(), dsn=mariadb.dsn())
    admin.run(f"CREATE DATABASE {name}")
    yield mariadb.dsn(name)
    admin.run(f"DROP DATABASE {name}")


@pytest.fixture
def db(mysql_dsn: str) -> SqlDatabase:
    return SqlDatabase(MysqlTool, Path(), dsn=mysql_dsn)
