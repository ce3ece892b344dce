"""The kind `mysql` on a real server: statements, values, transactions."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from noetl.tools.mysql.tool import MysqlTool
from tests.mysql.mariadb import MariadbServer
from tests.tools.sql_calls import SqlDatabase


def test_a_query_gives_rows_as_mappings(db: SqlDatabase) -> None:
    outcome = db.outcome(query="SELECT 1 AS id, 'Ada' AS name UNION ALL SELECT 2, NULL ORDER BY 1")
    answer = {
        "rows": [{"id": 1, "name": "Ada"}, {"id": 2, "name": None}],
        "row_count": 2,
        "columns": ["id", "name"],
    }
    assert outcome.result == {**answer, "statements": 1, "command_0": answer}
    assert outcome.helpers == {"mysql": {"code": 0, "sqlstate": "00000", "message": None}}


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


def test_an_empty_result_has_its_columns_and_a_second_one_of_a_name_is_there(db: SqlDatabase) -> None:
    result = db.run("SELECT 1 AS a, 2 AS a WHERE false")
    assert (result["rows"], result["row_count"], result["columns"]) == ([], 0, ["a", "a_2"])


@pytest.mark.parametrize(
    ("text", "params", "row"),
    [
        ("SELECT ? + 1 AS n, ? AS t", [41, "x"], {"n": 42, "t": "x"}),
        ("SELECT %s AS n, 7 %% %s AS m, 'a' LIKE 'a%' AS l", [4, 4], {"n": 4, "m": 3, "l": 1}),
        ("SELECT :a AS a, :a * 2 AS b", {"a": 4, "unused": 1}, {"a": 4, "b": 8}),
        ("SELECT %(a)s AS a", {"a": 4}, {"a": 4}),
        ("SELECT ? AS t", ["\\'; DROP TABLE x; -- grün \U0001f409"], {"t": "\\'; DROP TABLE x; -- grün \U0001f409"}),
        ("SELECT ? AS t, ? AS n, ? AS f", [True, None, 0.1], {"t": 1, "n": None, "f": 0.1}),
        ("SELECT ? AS big, ? AS low", [2**64 - 1, -(2**63)], {"big": 2**64 - 1, "low": -(2**63)}),
        ("SELECT CAST(? AS decimal(30)) AS huge", [2**70], {"huge": str(2**70)}),
        ("SELECT JSON_VALUE(?, '$.a[1]') AS v, JSON_VALUE(?, '$[0]') AS w", [{"a": [1, "x"]}, ["y"]], {"v": "x", "w": "y"}),
        ("SELECT 1 AS n UNION SELECT 2 LIMIT ?", [1], {"n": 1}),
        ("SELECT @x := ? AS n, '?' AS q, `a?` FROM (SELECT 1 AS `a?`) t -- ?", [5], {"n": 5, "q": "?", "a?": 1}),
    ],
)  # fmt: skip
def test_values_are_bound(db: SqlDatabase, text: str, params: Any, row: dict[str, Any]) -> None:
    assert db.rows(text, params=params) == [row]


def test_no_character_set_or_mode_of_the_session_makes_text_of_a_value(db: SqlDatabase) -> None:
    """Where drivers escape values into the text, these two settings are what lets a quote end it."""
    for setting in ("SET NAMES gbk", "SET sql_mode = 'NO_BACKSLASH_ESCAPES'"):
        rows = db.rows(
            f"{setting}; SELECT 'a' = ? AS same, length(?) AS bytes", params=["¿' OR '1'='1", "\\'"]
        )
        assert rows == [{"same": 0, "bytes": 2}]


def test_values_go_through_several_statements_in_order(db: SqlDatabase) -> None:
    result = db.run("SELECT ? AS a; SELECT ? AS b, ? AS c", params=[1, 2, 3])
    assert [result["command_0"]["rows"], result["rows"]] == [[{"a": 1}], [{"b": 2, "c": 3}]]
    named = db.run(commands=["SELECT :a AS x", "SELECT :b AS x"], params={"a": 1, "b": 2})
    assert [named["command_0"]["rows"], named["rows"]] == [[{"x": 1}], [{"x": 2}]]


@pytest.mark.parametrize(
    ("about", "message"),
    [
        ({"command": "SELECT 1", "params": [1]}, "`params` holds 1, and the SQL has placeholders for 0"),
        ({"command": "SELECT ?; SELECT ?", "params": [1]}, "statement 2 of 2, the statement asks for 2 values"),
        ({"command": "SELECT :a", "params": {"b": 1}}, "no value is given for `a`"),
        ({"command": " # nothing"}, "there is no SQL to run: the text is empty"),
        ({"command": "SELECT 1;\nDELIMITER //\nSELECT 2 //"}, "line 2: `DELIMITER` is a command of the client"),
        ({"command": "SELECT ?", "params": ["\ud800"]}, "surrogates not allowed"),
        ({}, "there is no SQL to run"),
        ({"command": "SELECT 1", "into": "t"}, "`into` needs `rows`"),
        ({"command": 1}, "$.command"),
    ],
)  # fmt: skip
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


def test_what_comes_after_a_statement_that_commits_is_a_transaction_again(db: SqlDatabase) -> None:
    script = "INSERT INTO t VALUES (1); CREATE TABLE u (a int); INSERT INTO t VALUES (2); INSERT INTO t VALUES (-1)"
    db.run("CREATE TABLE t (a int CHECK (a > 0))")
    assert db.error(script).kind == "sql"
    assert db.rows("SELECT * FROM t") == [{"a": 1}]


def test_a_script_may_have_its_own_transactions(db: SqlDatabase) -> None:
    db.run(
        "CREATE TABLE t (a int); BEGIN; INSERT INTO t VALUES (1); COMMIT; START TRANSACTION; DELETE FROM t; ROLLBACK"
    )
    assert db.rows("SELECT * FROM t") == [{"a": 1}]
    db.run("SET autocommit = 0; INSERT INTO t VALUES (2); COMMIT")
    error = db.error("BEGIN; DELETE FROM t")
    assert (error.kind, "leaves a transaction open" in error.message) == ("sql", True)
    assert db.rows("SELECT * FROM t") == [{"a": 1}, {"a": 2}]


def test_savepoints_work_inside_the_transaction(db: SqlDatabase) -> None:
    db.run("CREATE TABLE t (a int)")
    result = db.run("SAVEPOINT s; INSERT INTO t VALUES (1); ROLLBACK TO s; SELECT count(*) AS n FROM t")
    assert result["rows"] == [{"n": 0}]


@pytest.mark.parametrize(
    ("fetch", "rows"), [("all", [{"a": 1}, {"a": 2}, {"a": 3}]), ("one", [{"a": 1}]), ("none", [])]
)
def test_fetch_says_which_rows_come_back(db: SqlDatabase, fetch: str, rows: list[dict[str, int]]) -> None:
    result = db.run("SELECT seq AS a FROM seq_1_to_3", spec={"fetch": fetch})
    assert (result["rows"], result["row_count"], result["columns"]) == (rows, 3, ["a"])


def test_warnings_go_into_the_log_of_the_task(db: SqlDatabase, caplog: pytest.LogCaptureFixture) -> None:
    db.run("DROP TABLE IF EXISTS nothing; SELECT 1 / 0 AS a")
    assert [line.split(":")[0] for line in db.log] == ["Note", "Warning"]
    assert "Division by 0" in db.log[1]
    assert caplog.records == []


def test_routines_with_bodies_of_statements_can_be_made_and_called(db: SqlDatabase) -> None:
    result = db.run(
        """
        CREATE PROCEDURE fill(IN n int, IN label text)
        BEGIN
          DECLARE i int DEFAULT 0;
          counting: WHILE i < n DO
            SET i = i + 1;
            IF i = 2 THEN SELECT 'two' AS word; ELSE SELECT CASE i WHEN 1 THEN 'one; end' ELSE label END AS word; END IF;
          END WHILE;
        END;
        CREATE DEFINER = CURRENT_USER FUNCTION twice(n int) RETURNS int RETURN n * 2;
        CREATE TABLE t (`end` int, total int);
        CREATE TRIGGER totals BEFORE INSERT ON t FOR EACH ROW BEGIN SET NEW.total = twice(NEW.end); END;
        INSERT INTO t (`end`) VALUES (4);
        BEGIN NOT ATOMIC DECLARE x int DEFAULT 1; INSERT INTO t (`end`) VALUES (x); END;
        CALL fill(?, ?);
        SELECT total FROM t ORDER BY total;
        """,
        params=[3, "more"],
    )
    assert (result["command_6"]["rows"], result["rows"]) == ([{"word": "more"}], [{"total": 2}, {"total": 8}])
    assert result["statements"] == 8


def test_what_looks_like_a_comment_to_others_is_run(db: SqlDatabase) -> None:
    result = db.run("/*!40101 SET @a = 5 */; SELECT @a -- rest; of line\n AS a, 5--2 AS b # end; of line\n;")
    assert (result["rows"], result["statements"]) == ([{"a": 5, "b": 7}], 2)


def test_a_session_leaves_nothing_behind(db: SqlDatabase, mysql_dsn: str) -> None:
    name = mysql_dsn.rsplit("/", 1)[1].split("?", maxsplit=1)[0]
    dirty = "SET sql_mode = '', autocommit = 0, NAMES latin1; SET @a = 1; USE mysql; CREATE TEMPORARY TABLE tt (a int); SELECT connection_id() AS id"
    state = "SELECT @a AS a, @@sql_mode <> '' AS strict, @@autocommit AS ac, @@character_set_client AS cs, DATABASE() AS d, connection_id() AS id"
    first, second, third = db.outcomes(
        db.call(command=dirty), db.call(query=state), db.call(query="SELECT * FROM tt")
    )
    assert first.error is None, first.error
    expected = {
        "a": None,
        "strict": 1,
        "ac": 1,
        "cs": "utf8mb4",
        "d": name,
        "id": first.result["rows"][0]["id"],
    }
    assert second.result["rows"] == [expected]
    assert third.error is not None


def test_without_a_database_of_its_own_a_connection_that_chose_one_is_not_used_again(
    mariadb: MariadbServer,
) -> None:
    db = SqlDatabase(MysqlTool, Path(), dsn=mariadb.dsn())
    query = "SELECT connection_id() AS id, DATABASE() AS d"
    first, second, third = db.outcomes(
        db.call(query=query), db.call(command=f"USE mysql; {query}"), db.call(query=query)
    )
    ids = [outcome.result["rows"][0]["id"] for outcome in (first, second, third)]
    assert (ids[0] == ids[1] != ids[2], third.result["rows"][0]["d"]) == (True, None)


def test_a_hundred_tasks_at_once_share_the_connections(db: SqlDatabase) -> None:
    async def run_all() -> list[Any]:
        tool = MysqlTool()
        spec = {"pool": {"max": 4}}
        calls = [
            db.call(query="SELECT ? AS n, connection_id() AS id", params=[n], spec=spec) for n in range(100)
        ]
        try:
            return [outcome.result["rows"][0] for outcome in await asyncio.gather(*map(tool.run, calls))]
        finally:
            await tool.close()

    rows = asyncio.run(run_all())
    assert [row["n"] for row in rows] == list(range(100))
    ids = {row["id"] for row in rows}
    assert len(ids) <= 4
    assert not ids & {row["Id"] for row in db.rows("SHOW PROCESSLIST")}
