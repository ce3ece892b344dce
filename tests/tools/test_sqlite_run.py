"""The kind `sqlite`: the same contract on a file or in memory."""

import asyncio
from pathlib import Path
from typing import Any

import apsw
import pytest

from noetl.model.outcome import Outcome
from noetl.tools.sqlite.tool import SqliteTool
from tests.tools.sql_calls import SqlDatabase, sqlite_at


def test_a_query_gives_rows_as_mappings(db: SqlDatabase) -> None:
    outcome = db.outcome(query="SELECT 1 AS id, 'Ada' AS name, NULL AS x, 0.5 AS f, x'00ff' AS raw")
    answer = {
        "rows": [{"id": 1, "name": "Ada", "x": None, "f": 0.5, "raw": "AP8="}],
        "row_count": 1,
        "columns": ["id", "name", "x", "f", "raw"],
    }
    assert outcome.result == {**answer, "statements": 1, "command_0": answer}
    assert outcome.helpers == {"sqlite": {"code": "SQLITE_OK", "message": None}}


def test_a_script_may_hold_triggers_and_each_statement_has_its_number(db: SqlDatabase) -> None:
    result = db.run(
        """
        CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT);
        CREATE TABLE log (what TEXT);
        CREATE TRIGGER noted AFTER INSERT ON t BEGIN
            INSERT INTO log VALUES ('new'); INSERT INTO log VALUES (CASE NEW.id WHEN 1 THEN 'first' END);
        END;
        INSERT INTO t (name) VALUES ('a;b'), ('c');
        SELECT count(*) AS n FROM log;
        UPDATE t SET name = 'x' WHERE id = 2
        """
    )
    assert (result["rows"], result["row_count"], result["statements"]) == ([{"n": 4}], 1, 6)
    assert result["command_3"] == {"rows": [], "row_count": 2, "columns": []}
    assert result["command_5"]["row_count"] == 1
    assert db.rows("SELECT * FROM t WHERE id > ?", params=[1]) == [{"id": 2, "name": "x"}]


def test_an_empty_result_has_its_columns(db: SqlDatabase) -> None:
    result = db.run("SELECT 1 AS a WHERE false")
    assert (result["rows"], result["row_count"], result["columns"]) == ([], 0, ["a"])


@pytest.mark.parametrize(
    ("text", "params", "row"),
    [
        ("SELECT ? AS a, ? AS b", [1, "x"], {"a": 1, "b": "x"}),
        ("SELECT ?2 AS a, ?1 AS b", [1, 2], {"a": 2, "b": 1}),
        ("SELECT :a AS a, @a AS b".replace("@a", ":a"), {"a": "'; DROP"}, {"a": "'; DROP", "b": "'; DROP"}),
        ("SELECT @a AS a", {"a": 1.5}, {"a": 1.5}),
        ("SELECT $a AS a", {"a": True}, {"a": 1}),
        ("SELECT %s AS a, 'x' LIKE '%' AS b", [None], {"a": None, "b": 1}),
        ("SELECT %(a)s AS a", {"a": 1}, {"a": 1}),
        ("SELECT json_extract(?, '$.b[1]') AS a", [{"b": [1, 2]}], {"a": 2}),
        ("SELECT value AS a FROM json_each(?) LIMIT 1", [["x", "y"]], {"a": "x"}),
    ],
)
def test_values_are_bound(db: SqlDatabase, text: str, params: Any, row: dict[str, Any]) -> None:
    assert db.rows(text, params=params) == [row]


def test_all_statements_are_one_transaction(db: SqlDatabase) -> None:
    db.run("CREATE TABLE t (a CHECK (a > 0))")
    wrong = "INSERT INTO t VALUES (1); INSERT INTO t VALUES (-1)"
    assert db.error(wrong).kind == "sql"
    assert db.rows("SELECT * FROM t") == []
    assert db.error(wrong, spec={"transaction": False}).kind == "sql"
    assert db.rows("SELECT * FROM t") == [{"a": 1}]


def test_a_script_may_have_its_own_transactions(db: SqlDatabase) -> None:
    db.run("CREATE TABLE t (a); BEGIN; INSERT INTO t VALUES (1); COMMIT; BEGIN; DELETE FROM t; ROLLBACK")
    assert db.rows("SELECT * FROM t") == [{"a": 1}]
    assert "leaves a transaction open" in db.error("BEGIN; DELETE FROM t").message
    assert db.rows("SELECT * FROM t") == [{"a": 1}]


def test_settings_at_the_beginning_are_outside_of_the_transaction(db: SqlDatabase) -> None:
    db.run("CREATE TABLE a (id INTEGER PRIMARY KEY); CREATE TABLE b (a REFERENCES a (id))")
    error = db.error("PRAGMA foreign_keys = on; INSERT INTO b VALUES (1)")
    assert "FOREIGN KEY constraint failed" in error.message
    assert db.rows("PRAGMA journal_mode = WAL; SELECT 1 AS a") == [{"a": 1}]


@pytest.mark.parametrize(
    "auth",
    [
        {"database": "test.db"},
        {"path": "test.db"},
        {"url": "sqlite:///test.db"},
        {"kind": "env", "value": "test.db"},
    ],
)
def test_a_credential_may_name_the_file(db: SqlDatabase, tmp_path: Path, auth: dict[str, str]) -> None:
    db.run("CREATE TABLE t (a); INSERT INTO t VALUES (1)")
    assert SqlDatabase(SqliteTool, tmp_path, auth=auth).rows("SELECT * FROM t") == [{"a": 1}]


@pytest.mark.parametrize("database", ["test.db", ":memory:"])
def test_other_files_are_beside_the_playbook_too(tmp_path: Path, database: str) -> None:
    folder = tmp_path / "playbooks"
    folder.mkdir()
    db = sqlite_at(folder)
    db.run("CREATE TABLE t (a); INSERT INTO t VALUES (7)", database="other.db")
    attached = "ATTACH 'other.db' AS other; CREATE TABLE t AS SELECT * FROM other.t; SELECT * FROM t"
    copied = db.call(command="VACUUM INTO :name", params={"name": "copy.db"}, database=database)
    outcomes = db.outcomes(db.call(command=attached, database=database), copied)
    assert [outcome.error for outcome in outcomes] == [None, None]
    assert db.rows("SELECT a FROM t", database="copy.db") == [{"a": 7}]


def test_each_execution_has_its_own_database_in_memory(tmp_path: Path) -> None:
    first_database, second_database = SqlDatabase(SqliteTool, tmp_path), SqlDatabase(SqliteTool, tmp_path)
    made = first_database.call(command="CREATE TABLE t (a); INSERT INTO t VALUES (1)")
    queries = [database.call(query="SELECT * FROM t") for database in (first_database, second_database)]
    first, second, third = first_database.outcomes(made, *queries)
    assert (first.error, second.result["rows"]) == (None, [{"a": 1}])
    assert third.error is not None
    assert third.error.message == "line 1: no such table: t"
    assert list(tmp_path.iterdir()) == []


def test_a_database_in_memory_goes_with_its_execution(tmp_path: Path) -> None:
    db = SqlDatabase(SqliteTool, tmp_path)

    async def run_and_forget() -> tuple[Outcome, Outcome]:
        tool = SqliteTool()
        await tool.run(db.call(command="CREATE TABLE t (a)"))
        (connection,) = [candidate for candidate in apsw.connections() if candidate not in before]
        tool.forget(db.execution_id)
        with pytest.raises(apsw.ConnectionClosedError):
            connection.execute("SELECT 1")
        running = asyncio.ensure_future(tool.run(db.call(query="SELECT 1 AS a")))
        await asyncio.sleep(0)
        tool.forget(db.execution_id)
        tool.forget(db.execution_id)
        try:
            return await running, await tool.run(db.call(query="SELECT * FROM t"))
        finally:
            await tool.close()

    before = apsw.connections()
    used, after = asyncio.run(run_and_forget())
    assert used.result["rows"] == [{"a": 1}]
    assert after.error is not None


def test_tasks_of_one_execution_take_turns_in_memory(tmp_path: Path) -> None:
    db = SqlDatabase(SqliteTool, tmp_path)

    async def run_all() -> list[Outcome]:
        tool = SqliteTool()
        await tool.run(db.call(command="CREATE TABLE t (a)"))
        try:
            return list(
                await asyncio.gather(
                    *(
                        tool.run(
                            db.call(
                                command="INSERT INTO t VALUES (?); SELECT count(*) AS n FROM t", params=[n]
                            )
                        )
                        for n in range(50)
                    )
                )
            )
        finally:
            await tool.close()

    assert sorted(outcome.result["rows"][0]["n"] for outcome in asyncio.run(run_all())) == list(range(1, 51))
