"""The kind `snowflake` on fakesnow: statements, values, transactions."""

import asyncio
from typing import Any

import pytest

from noetl.tools.snowflake.tool import SnowflakeTool
from tests.snowflake.fakesnow_environment import Fakesnow
from tests.tools.sql_calls import SqlDatabase


def test_a_query_gives_rows_as_mappings(db: SqlDatabase) -> None:
    outcome = db.outcome(query="SELECT 1 AS id, 'Ada' AS name UNION ALL SELECT 2, NULL ORDER BY 1")
    assert outcome.error is None, outcome.error
    answer = {
        "rows": [{"ID": 1, "NAME": "Ada"}, {"ID": 2, "NAME": None}],
        "row_count": 2,
        "columns": ["ID", "NAME"],
    }
    assert outcome.result == {**answer, "statements": 1, "command_0": answer}
    helper = outcome.helpers["snowflake"]
    assert len(helper.pop("query_id")) == 36
    assert helper == {"code": 0, "sqlstate": "00000", "message": None}


def test_only_queries_give_rows_and_changes_are_counted(db: SqlDatabase) -> None:
    result = db.run(
        """
        CREATE TABLE item (id int, name text); -- a comment; with a semicolon
        INSERT INTO item VALUES (1, 'a;b'), (2, 'c'); // another; one
        SELECT id FROM item ORDER BY id;
        UPDATE item SET name = 'd' WHERE id > 1;
        DELETE FROM item;
        """
    )
    assert (result["rows"], result["row_count"], result["columns"]) == ([{"ID": 1}, {"ID": 2}], 2, ["ID"])
    assert [result[f"command_{number}"]["row_count"] for number in range(5)] == [0, 2, 2, 1, 2]
    assert [result[f"command_{number}"]["rows"] for number in (0, 1, 3, 4)] == [[], [], [], []]
    assert result["statements"] == 5


def test_an_empty_result_has_its_columns_and_a_second_one_of_a_name_is_there(db: SqlDatabase) -> None:
    result = db.run("SELECT 1 AS a, 2 AS b WHERE false")
    assert (result["rows"], result["row_count"], result["columns"]) == ([], 0, ["A", "B"])


@pytest.mark.parametrize(
    ("text", "params", "row"),
    [
        ("SELECT ? + 1 AS n, ? AS t", [41, "x"], {"N": 42, "T": "x"}),
        ("SELECT %s AS n, 'a' LIKE 'a%' AS l", [4], {"N": 4, "L": True}),
        ("SELECT :2 AS b, :1 AS a, :2 AS c", [1, "b"], {"B": "b", "A": 1, "C": "b"}),
        ("SELECT :a AS a, :a * 2 AS b", {"a": 4, "unused": 1}, {"A": 4, "B": 8}),
        ("SELECT %(a)s AS a", {"a": 4}, {"A": 4}),
        ("SELECT ? AS t", ["\\'; DROP TABLE x; -- grün \U0001f409"], {"T": "\\'; DROP TABLE x; -- grün \U0001f409"}),
        ("SELECT CAST(? AS boolean) AS t, ? AS n", [True, None], {"T": True, "N": None}),
        ("SELECT PARSE_JSON(?) AS j, PARSE_JSON(?) AS k", [{"a": [1, "x"]}, ["y"]], {"J": {"a": [1, "x"]}, "K": ["y"]}),
        ("SELECT PARSE_JSON('{\"a\": {\"b\": 5}}'):a.b::int AS n, '?' AS q, ? AS p -- ?", [5], {"N": 5, "Q": "?", "P": 5}),
    ],
)  # fmt: skip
def test_values_are_bound(db: SqlDatabase, text: str, params: Any, row: dict[str, Any]) -> None:
    assert db.rows(text, params=params) == [row]


@pytest.mark.parametrize(
    ("about", "message"),
    [
        ({"command": "SELECT 1", "params": [1]}, "`params` holds 1, and the SQL has placeholders for 0"),
        ({"command": "SELECT ?; SELECT ?", "params": [1]}, "statement 2 of 2, the statement asks for 2 values"),
        ({"command": "SELECT :a", "params": {"b": 1}}, "no value is given for `a`"),
        ({"command": " // nothing"}, "there is no SQL to run: the text is empty"),
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
    db.run("CREATE TABLE t (a int)")
    script = "INSERT INTO t VALUES (1); INSERT INTO t VALUES ('x')"
    assert db.error(script).kind == "sql"
    assert db.rows("SELECT * FROM t") == []
    error = db.error(script, spec={"transaction": False})
    assert error.message.startswith("statement 2 of 2, line 1: ")
    assert db.rows("SELECT * FROM t") == [{"A": 1}]


def test_a_script_may_have_its_own_transactions(db: SqlDatabase) -> None:
    db.run(
        "CREATE TABLE t (a int); BEGIN; INSERT INTO t VALUES (1); COMMIT; BEGIN TRANSACTION; DELETE FROM t; ROLLBACK"
    )
    assert db.rows("SELECT * FROM t") == [{"A": 1}]
    error = db.error("BEGIN; DELETE FROM t")
    assert (error.kind, "leaves a transaction open" in error.message) == ("sql", True)
    assert db.rows("SELECT * FROM t") == [{"A": 1}]


@pytest.mark.parametrize(
    ("fetch", "rows"), [("all", [{"A": 1}, {"A": 2}, {"A": 3}]), ("one", [{"A": 1}]), ("none", [])]
)
def test_fetch_says_which_rows_come_back(db: SqlDatabase, fetch: str, rows: list[dict[str, int]]) -> None:
    result = db.run("SELECT column1 AS a FROM VALUES (1), (2), (3)", spec={"fetch": fetch})
    assert (result["rows"], result["row_count"], result["columns"]) == (rows, 3, ["A"])


def logins(snow: Fakesnow) -> int:
    return sum(request["path"] == "/session/v1/login-request" for request in snow.seen()["requests"])


@pytest.mark.parametrize(
    ("sql", "fresh"),
    [
        ("SELECT 1 AS a", False),
        ("CREATE TABLE t (a int); INSERT INTO t VALUES (1); DROP TABLE t", False),
        ("INSERT INTO nothing VALUES (1)", False),
        ("CREATE TEMPORARY TABLE t (a int)", True),
        ("SET x = 5", True),
        ("CREATE SCHEMA other", True),
        ("USE DATABASE information_schema", True),
        ("BEGIN; SELECT 1; COMMIT", True),
    ],
)
def test_a_session_is_used_again_unless_the_next_task_would_notice(
    db: SqlDatabase, snow: Fakesnow, sql: str, fresh: bool
) -> None:
    before = logins(snow)
    db.outcomes(db.call(command=sql), db.call(query="SELECT 1"))
    assert logins(snow) - before == (2 if fresh else 1)


def test_a_session_that_is_over_is_not_used_again(db: SqlDatabase, snow: Fakesnow) -> None:
    async def run_all() -> list[Any]:
        tool = SnowflakeTool()
        call = db.call(query="SELECT 1 AS a")
        try:
            first = await tool.run(call)
            await asyncio.to_thread(snow.forget_sessions)
            return [first, await tool.run(call), await tool.run(call)]
        finally:
            await tool.close()

    first, over, again = asyncio.run(run_all())
    assert (first.error, again.error) == (None, None)
    assert (over.error.kind, over.error.retryable) == ("connection", True)


def test_what_is_told_of_the_client(db: SqlDatabase, snow: Fakesnow) -> None:
    """No more than what a session needs: nothing is sent about how the driver is used."""
    before = len(snow.seen()["requests"])
    db.outcomes(*[db.call(query="SELECT ? AS a", params=[1])] * 2)
    requests = snow.seen()["requests"][before:]
    assert [request["path"].rsplit("/", 1)[1] for request in requests] == [
        "login-request",
        "query-request",
        "query-request",
        "session",
    ]
    data = requests[0]["body"]["data"]
    assert data["CLIENT_ENVIRONMENT"]["APPLICATION"] == "noetl"
    assert data["SESSION_PARAMETERS"]["ABORT_DETACHED_QUERY"] in (True, "true")


def test_a_hundred_tasks_at_once_share_the_sessions(db: SqlDatabase, snow: Fakesnow) -> None:
    before = logins(snow)

    async def run_all() -> list[Any]:
        tool = SnowflakeTool()
        calls = [db.call(query="SELECT ? AS n", params=[n], spec={"pool": {"max": 4}}) for n in range(100)]
        try:
            return [outcome.result["rows"][0]["N"] for outcome in await asyncio.gather(*map(tool.run, calls))]
        finally:
            await tool.close()

    assert asyncio.run(run_all()) == list(range(100))
    assert logins(snow) - before <= 4
