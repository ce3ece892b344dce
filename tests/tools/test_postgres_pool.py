"""The connections that a worker keeps to PostgreSQL."""

import asyncio

import psycopg
import pytest

from noetl.tools.postgres.tool import PostgresTool
from noetl.tools.sql import connection_pool
from tests.tools.sql_calls import postgres_at

OPEN = "SELECT count(*) FROM pg_stat_activity WHERE application_name = %s"


def connections(dsn: str, name: str) -> int:
    with psycopg.connect(dsn) as connection:
        row = connection.execute(OPEN, [name]).fetchone()
        assert row is not None
        return int(row[0])


@pytest.mark.parametrize("least", [0, 1])
def test_what_nobody_uses_is_closed_but_for_the_least(
    dsn: str, least: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_pool, "IDLE_SECONDS", 0.05)
    name = f"keeping_{least}"
    db = postgres_at(f"{dsn}&application_name={name}")

    async def open_connections() -> int:
        tool = PostgresTool()
        call = db.call(query="SELECT pg_sleep(0.01)", spec={"pool": {"min": least, "max": 3}})
        try:
            await asyncio.gather(*(tool.run(call) for _ in range(3)))
            while (count := await asyncio.to_thread(connections, dsn, name)) > least:
                pass
            assert (await tool.run(call)).error is None
            return count
        finally:
            await tool.close()

    assert asyncio.run(open_connections()) == least
    while connections(dsn, name):
        pass


def test_a_connection_does_the_same_again_and_again(dsn: str) -> None:
    db = postgres_at(dsn)
    db.run("CREATE TABLE t (a int, b text[])")
    rows = [{"a": 1, "b": ["x"]}]
    calls = [
        db.call(rows=rows, into="t"),
        db.call(rows=rows, command="INSERT INTO t VALUES (:a, :b)"),
        db.call(command="INSERT INTO t VALUES (%s, %s); SELECT count(*) AS n FROM t", params=[1, ["y"]]),
    ]
    outcomes = db.outcomes(*calls * 20)
    assert [outcome.error for outcome in outcomes if outcome.error] == []
    assert outcomes[-1].result["rows"] == [{"n": 60}]


def test_pools_differ_by_server_and_size(dsn: str) -> None:
    name = "apart"
    db = postgres_at(f"{dsn}&application_name={name}")

    async def open_connections() -> int:
        tool = PostgresTool()
        try:
            for size in ({"max": 1}, {"max": 2}, {"max": 1}):
                assert (await tool.run(db.call(query="SELECT 1", spec={"pool": size}))).error is None
            return await asyncio.to_thread(connections, dsn, name)
        finally:
            await tool.close()

    assert asyncio.run(open_connections()) == 2
