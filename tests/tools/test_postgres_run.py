"""The kind `postgres` on a real server: statements, values, transactions."""

import asyncio
from typing import Any

import psycopg
import pytest

from noetl.tools.postgres.tool import PostgresTool
from tests.tools.sql_calls import SqlDatabase, postgres_at


@pytest.fixture
def db(dsn: str) -> SqlDatabase:
    return postgres_at(dsn)


def test_a_query_gives_rows_as_mappings(db: SqlDatabase) -> None:
    outcome = db.outcome(query="SELECT 1 AS id, 'Ada' AS name UNION ALL SELECT 2, NULL ORDER BY 1")
    answer = {
        "rows": [{"id": 1, "name": "Ada"}, {"id": 2, "name": None}],
        "row_count": 2,
        "columns": ["id", "name"],
    }
    assert outcome.result == {**answer, "statements": 1, "command_0": answer}
    assert outcome.helpers == {
        "pg": {"code": "00000", "sqlstate": "00000", "message": None, "constraint": None, "detail": None}
    }


def test_the_last_statement_with_rows_is_the_result_and_each_has_its_number(db: SqlDatabase) -> None:
    result = db.run(
        """
        CREATE TABLE item (id int, name text);
        INSERT INTO item VALUES (1, 'a;b'), (2, 'c') RETURNING id;
        UPDATE item SET name = 'd' WHERE id > 0;
        """
    )
    assert (result["rows"], result["row_count"], result["columns"]) == ([{"id": 1}, {"id": 2}], 2, ["id"])
    assert result["statements"] == 3
    assert result["command_0"] == {"rows": [], "row_count": 0, "columns": []}
    assert result["command_1"]["rows"] == [{"id": 1}, {"id": 2}]
    assert result["command_2"] == {"rows": [], "row_count": 2, "columns": []}


def test_without_rows_the_count_is_what_the_last_statement_changed(db: SqlDatabase) -> None:
    result = db.run(commands=["CREATE TABLE t (a int)", "INSERT INTO t SELECT generate_series(1, 7)"])
    assert (result["rows"], result["row_count"], result["columns"]) == ([], 7, [])


def test_an_empty_result_has_its_columns(db: SqlDatabase) -> None:
    result = db.run("SELECT 1 AS a, 2 AS b WHERE false")
    assert (result["rows"], result["row_count"], result["columns"]) == ([], 0, ["a", "b"])


def test_two_columns_of_one_name_are_both_there(db: SqlDatabase) -> None:
    assert db.rows("SELECT 1 AS a, 2 AS a, 3 AS a_2, 4 AS a") == [{"a": 1, "a_2": 2, "a_2_2": 3, "a_3": 4}]


@pytest.mark.parametrize(
    ("text", "params", "row"),
    [
        ("SELECT %s + 1 AS n, %s AS t", [41, "x"], {"n": 42, "t": "x"}),
        ("SELECT $2::text AS b, $1::int AS a", [1, "b"], {"b": "b", "a": 1}),
        ("SELECT %(a)s::int AS a, %(a)s::int * 2 AS b", {"a": 4, "unused": 1}, {"a": 4, "b": 8}),
        (
            "SELECT :when::timestamptz = now() AS b, :n::numeric AS n",
            {"when": "now", "n": "1.50"},
            {"b": True, "n": 1.5},
        ),
        ("SELECT %s::text AS t", ["'; DROP TABLE x; --"], {"t": "'; DROP TABLE x; --"}),
        ("SELECT %s::bool AS t, %s::text AS n", [True, None], {"t": True, "n": None}),
        ("SELECT %s::numeric AS big", [2**70], {"big": str(2**70)}),
        ("SELECT 'a' LIKE 'a%' AS b, 7 %% %s AS m", [4], {"b": True, "m": 3}),
    ],
)
def test_values_are_bound(db: SqlDatabase, text: str, params: Any, row: dict[str, Any]) -> None:
    assert db.rows(text, params=params) == [row]


def test_values_go_through_several_statements_in_order(db: SqlDatabase) -> None:
    result = db.run("SELECT %s::int AS a; SELECT %s::int AS b, %s::int AS c", params=[1, 2, 3])
    assert [result["command_0"]["rows"], result["rows"]] == [[{"a": 1}], [{"b": 2, "c": 3}]]
    named = db.run(commands=["SELECT :a::int AS x", "SELECT :b::int AS x"], params={"a": 1, "b": 2})
    assert [named["command_0"]["rows"], named["rows"]] == [[{"x": 1}], [{"x": 2}]]


def test_lists_and_mappings_become_arrays_or_json_as_the_server_asks(db: SqlDatabase) -> None:
    db.run("CREATE TABLE t (id int, tags text[], grid int[], doc jsonb, raw json, note text, docs jsonb[])")
    value = {"a": ['x"y', None]}
    params = [
        ["a,b", 'c"d\\', None, ""],
        [[1, 2], [3, 4]],
        [1, {"b": None}],
        value,
        ["as", "text"],
        [value, [1]],
    ]
    db.run("INSERT INTO t VALUES (1, %s, %s, %s, %s, %s, %s)", params=params)
    (row,) = db.rows("SELECT * FROM t WHERE id = ANY(%s) AND tags && %s", params=[[1, 2], [""]])
    assert row == {
        "id": 1,
        "tags": ["a,b", 'c"d\\', None, ""],
        "grid": [[1, 2], [3, 4]],
        "doc": [1, {"b": None}],
        "raw": value,
        "note": '["as","text"]',
        "docs": [value, [1]],
    }


@pytest.mark.parametrize(
    ("about", "message"),
    [
        ({"command": "SELECT 1", "params": [1]}, "`params` holds 1, and the SQL has placeholders for 0"),
        (
            {"command": "SELECT %s; SELECT %s", "params": [1]},
            "statement 2 of 2, the statement asks for 2 values",
        ),
        ({"command": "SELECT :a", "params": {"b": 1}}, "no value is given for `a`"),
        ({"command": " -- nothing"}, "there is no SQL to run: the text is empty"),
        ({"command": "SELECT %s::text", "params": ["\0"]}, "NUL"),
        ({}, "there is no SQL to run"),
        ({"command": "SELECT 1", "into": "t"}, "`into` needs `rows`"),
        ({"command": 1}, "$.command"),
        ({"command": "COPY (SELECT 1) TO STDOUT"}, "line 1: COPY from or to the client cannot be run"),
        ({"command": "CREATE TABLE t (a int); COPY t FROM STDIN"}, "use `rows` with `into`, or a query"),
        (
            {"command": "SELECT 1 IN (" + "%s," * 65_536 + "1)", "params": [1] * 65_536},
            "number of parameters must be between 0 and 65535",
        ),
    ],
)
def test_a_wrong_input_is_refused(db: SqlDatabase, about: dict[str, Any], message: str) -> None:
    error = db.error(**about)
    assert error.kind == "input"
    assert message in error.message
    assert not error.retryable


def test_all_statements_are_one_transaction(db: SqlDatabase) -> None:
    db.run("CREATE TABLE t (a int CHECK (a > 0))")
    assert db.error("INSERT INTO t VALUES (1); INSERT INTO t VALUES (-1)").kind == "sql"
    assert db.rows("SELECT * FROM t") == []
    error = db.error("INSERT INTO t VALUES (1); INSERT INTO t VALUES (-1)", spec={"transaction": False})
    assert error.message.startswith("statement 2 of 2, line 1: ")
    assert db.rows("SELECT * FROM t") == [{"a": 1}]


def test_a_script_may_have_its_own_transactions(db: SqlDatabase) -> None:
    db.run("CREATE TABLE t (a int); BEGIN; INSERT INTO t VALUES (1); COMMIT; BEGIN; DELETE FROM t; ROLLBACK")
    assert db.rows("SELECT * FROM t") == [{"a": 1}]
    error = db.error("BEGIN; DELETE FROM t")
    assert (error.kind, "leaves a transaction open" in error.message) == ("sql", True)
    assert db.rows("SELECT * FROM t") == [{"a": 1}]


def test_a_statement_alone_may_be_one_that_no_transaction_takes(db: SqlDatabase) -> None:
    db.run("CREATE TABLE t (a int)")
    db.run("VACUUM t")
    db.run("CREATE INDEX CONCURRENTLY i ON t (a)")


def test_savepoints_work_inside_the_transaction(db: SqlDatabase) -> None:
    result = db.run(
        "CREATE TABLE t (a int); SAVEPOINT s; INSERT INTO t VALUES (1); ROLLBACK TO s; SELECT count(*) AS n FROM t"
    )
    assert result["rows"] == [{"n": 0}]


@pytest.mark.parametrize(
    ("fetch", "rows"), [("all", [{"a": 1}, {"a": 2}, {"a": 3}]), ("one", [{"a": 1}]), ("none", [])]
)
def test_fetch_says_which_rows_come_back(db: SqlDatabase, fetch: str, rows: list[dict[str, int]]) -> None:
    result = db.run("SELECT generate_series(1, 3) AS a", spec={"fetch": fetch})
    assert (result["rows"], result["row_count"], result["columns"]) == (rows, 3, ["a"])


def test_notices_go_into_the_log(db: SqlDatabase) -> None:
    db.run("DO $$ BEGIN RAISE NOTICE 'half way'; RAISE WARNING 'odd'; END $$")
    assert db.log == ["NOTICE: half way", "WARNING: odd"]


def test_functions_with_bodies_of_statements_can_be_made(db: SqlDatabase) -> None:
    result = db.run(
        """
        CREATE FUNCTION twice(n int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN n * 2; END; $$;
        CREATE FUNCTION thrice(n int) RETURNS int LANGUAGE sql BEGIN ATOMIC SELECT 1; SELECT n * 3; END;
        CREATE PROCEDURE answer(INOUT n int) LANGUAGE plpgsql AS 'BEGIN n := 42; END';
        CALL answer(0);
        SELECT twice(2) AS a, thrice(2) AS b;
        """
    )
    assert (result["command_3"]["rows"], result["rows"]) == ([{"n": 42}], [{"a": 4, "b": 6}])


def test_a_session_leaves_nothing_behind(db: SqlDatabase) -> None:
    first, second = db.outcomes(
        db.call(
            command="SET search_path = pg_catalog; CREATE TEMP TABLE t (a int); SELECT pg_backend_pid() AS pid"
        ),
        db.call(
            query="SELECT to_regclass('pg_temp.t') AS t, pg_backend_pid() AS pid, current_schemas(false)::text AS s"
        ),
    )
    (before,), (after,) = first.result["rows"], second.result["rows"]
    assert (after["pid"], after["t"]) == (before["pid"], None)
    assert after["s"].startswith("{test_")


def test_dates_are_read_whatever_the_server_writes(dsn: str) -> None:
    styled = postgres_at(dsn.replace("-csearch_path", "-cdatestyle%3DGerman%20-csearch_path"))
    first, second = styled.outcomes(
        *[styled.call(query="SELECT DATE '2026-01-31' AS d, TIMESTAMP '2026-01-31 10:00' AS t")] * 2
    )
    assert first.result["rows"] == second.result["rows"] == [{"d": "2026-01-31", "t": "2026-01-31T10:00:00"}]


def test_a_hundred_tasks_at_once_share_the_connections(db: SqlDatabase, dsn: str) -> None:
    async def run_all() -> list[Any]:
        tool = PostgresTool()
        calls = [
            db.call(
                query="SELECT %s::int AS n, pg_backend_pid() AS pid", params=[n], spec={"pool": {"max": 4}}
            )
            for n in range(100)
        ]
        try:
            return [
                (await running).result["rows"][0]
                for running in [asyncio.ensure_future(tool.run(call)) for call in calls]
            ]
        finally:
            await tool.close()

    rows = asyncio.run(run_all())
    assert [row["n"] for row in rows] == list(range(100))
    pids = {row["pid"] for row in rows}
    assert len(pids) <= 4
    with psycopg.connect(dsn) as connection:
        alive = connection.execute("SELECT count(*) FROM pg_stat_activity WHERE pid = ANY(%s)", [list(pids)])
        assert alive.fetchone() == (0,)
