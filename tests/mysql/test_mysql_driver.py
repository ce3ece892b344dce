"""The insides of the driver that the mysql tool uses."""

import inspect

import pytest
from asyncmy.connection import Connection, MySQLResult

CONNECTION = (
    "_execute_command",
    "_read_ok_packet",
    "_stream_broken",
    "next_result",
    "query",
    "show_warnings",
)
RESULT = ("_read_rowdata_packet_unbuffered", "_take_pending_rows", "fields", "has_next", "warning_count")


@pytest.mark.parametrize(("owner", "names"), [(Connection, CONNECTION), (MySQLResult, RESULT)])
def test_the_driver_has_what_is_used_of_it(owner: type, names: tuple[str, ...]) -> None:
    assert [name for name in names if not hasattr(owner, name)] == []


def test_the_driver_logs_what_the_server_warns_of_only_in_its_cursors() -> None:
    """Why the tool reads results itself."""
    module = inspect.getmodule(Connection)
    assert not hasattr(module, "logger")
