"""The connections that a worker keeps to MySQL."""

import asyncio

import pytest

from noetl.tools.mysql.auth import mysql_target
from noetl.tools.mysql.kind import MysqlInputs
from noetl.tools.mysql.pool import MysqlDriver
from noetl.tools.mysql.tool import MysqlTool
from noetl.tools.sql import connection_pool
from tests.tools.sql_calls import SqlDatabase


def connections(db: SqlDatabase, ids: set[int]) -> int:
    """How many of these the server still has."""
    return len(ids & {row["Id"] for row in db.rows("SHOW PROCESSLIST")})


@pytest.mark.parametrize("least", [0, 1])
def test_what_nobody_uses_is_closed_but_for_the_least(
    db: SqlDatabase, least: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_pool, "IDLE_SECONDS", 0.05)

    async def open_connections() -> set[int]:
        tool = MysqlTool()
        call = db.call(
            query="SELECT SLEEP(0.05), connection_id() AS id", spec={"pool": {"min": least, "max": 3}}
        )
        try:
            outcomes = await asyncio.gather(*(tool.run(call) for _ in range(3)))
            ids = {outcome.result["rows"][0]["id"] for outcome in outcomes}
            assert len(ids) == 3
            while await asyncio.to_thread(connections, db, ids) > least:
                pass
            assert (await tool.run(call)).error is None
            return ids
        finally:
            await tool.close()

    ids = asyncio.run(open_connections())
    while connections(db, ids):
        pass


def test_a_connection_does_the_same_again_and_again(db: SqlDatabase) -> None:
    db.run("CREATE TABLE t (a int, b text)")
    rows = [{"a": 1, "b": ["x"]}]
    calls = [
        db.call(rows=rows, into="t"),
        db.call(rows=rows, command="INSERT INTO t VALUES (:a, :b)"),
        db.call(command="INSERT INTO t VALUES (%s, %s); SELECT count(*) AS n FROM t", params=[1, ["y"]]),
    ]
    outcomes = db.outcomes(*calls * 10)
    assert [outcome.error for outcome in outcomes if outcome.error] == []
    assert outcomes[-1].result["rows"] == [{"n": 30}]


def test_a_connection_with_rows_that_nobody_read_is_not_used_again(mysql_dsn: str) -> None:
    async def read_one_part() -> tuple[bool, bool]:
        driver = MysqlDriver(mysql_target(MysqlInputs(dsn=mysql_dsn)))
        connection = await driver.connect()
        stream = connection.stream("SELECT seq FROM seq_1_to_1000000")
        await anext(stream)
        await anext(stream)
        await stream.aclose()
        states = connection.is_open, await driver.clean(connection)
        await driver.close(connection)
        return states

    assert asyncio.run(read_one_part()) == (True, False)
