"""A server that speaks as Snowflake does."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from noetl.tools.snowflake.tool import SnowflakeTool
from tests.snowflake.fakesnow_environment import Fakesnow, fakesnow_server
from tests.tools.sql_calls import SqlDatabase


@pytest.fixture(scope="session")
def snow() -> Iterator[Fakesnow]:
    """The server of this process."""
    with fakesnow_server() as server:
        yield server


@pytest.fixture
def db(snow: Fakesnow) -> SqlDatabase:
    return SqlDatabase(SnowflakeTool, Path(), auth=snow.auth())
