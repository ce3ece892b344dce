"""The kind `sqlite`: the same contract on a file or in memory."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import apsw
import pyarrow as pa
import pytest

from noetl.model.outcome import Outcome
from noetl.tools.sqlite_tool import SqliteTool
from tests.tools.sql_calls import Database, sqlite_at

ENDLESS = "WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"


def counted(columns: str) -> str:
    return f"WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT :most) SELECT {columns} FROM n"  # noqa: S608


@pytest.fixture
def db(tmp_path: Path) -> Database:
    return sqlite_at(tmp_path)


def test_a_query_gives_rows_as_mappings(db: Database) -> None:
    found = db.outcome(query="SELECT 1 AS id, 'Ada' AS name, NULL AS x, 0.5 AS f, x'00ff' AS raw")
    answer = {
        "rows": [{"id": 1, "name": "Ada", "x": None, "f": 0.5, "raw": "AP8="}],
        "row_count": 1,
        "columns": ["id", "name", "x", "f", "raw"],
    }
    assert found.result == {**answer, "statements": 1, "command_0": answer}
    assert found.helpers == {"sqlite": {"code": "SQLITE_OK", "message": None}}


def test_a_script_may_hold_triggers_and_each_statement_has_its_number(db: Database) -> None:
    found = db.run(
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
    assert (found["rows"], found["row_count"], found["statements"]) == ([{"n": 4}], 1, 6)
    assert found["command_3"] == {"rows": [], "row_count": 2, "columns": []}
    assert found["command_5"]["row_count"] == 1
    assert db.rows("SELECT * FROM t WHERE id > ?", params=[1]) == [{"id": 2, "name": "x"}]


def test_an_empty_result_has_its_columns(db: Database) -> None:
    found = db.run("SELECT 1 AS a WHERE false")
    assert (found["rows"], found["row_count"], found["columns"]) == ([], 0, ["a"])


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
def test_values_are_bound(db: Database, text: str, params: Any, row: dict[str, Any]) -> None:
    assert db.rows(text, params=params) == [row]


@pytest.mark.parametrize(
    ("about", "kind", "message"),
    [
        (
            {"command": "SELECT 1", "params": [1]},
            "input",
            "`params` holds 1, and the SQL has placeholders for 0",
        ),
        ({"command": "SELECT ?", "params": [2**64]}, "input", "a value that SQLite cannot hold"),
        ({"command": ""}, "input", "there is no SQL to run"),
        ({"command": "SELECT 1", "database": "a\0b"}, "input", "`database` is no path"),
        ({"command": "SELECT CAST(x'ff' AS TEXT)"}, "sql", "text that is not UTF-8"),
        ({"command": "SELECT '\ud800'"}, "input", "surrogates not allowed"),
        ({"rows": [[]], "into": "t"}, "input", "row 1 has 0 values for 1 columns"),
        ({"rows": [{}], "into": "t"}, "input", "the rows are mappings without keys"),
        (
            {"command": "SELECT 1", "database": "a.db", "auth": {}},
            "input",
            "`auth` cannot stand beside `database`",
        ),
        ({"command": "SELECT 1;\nSELEC 2"}, "sql", 'statement 2 of 2, line 2: near "SELEC": syntax error'),
        ({"command": "SELECT 1,\n2,\nmissing"}, "sql", "line 3: no such column: missing"),
        ({"command": "SELECT 1", "database": "no/such.db"}, "not_found", "unable to open database file: "),
    ],
)
def test_what_cannot_run_is_told(db: Database, about: dict[str, Any], kind: str, message: str) -> None:
    error = db.error(**about)
    assert error.kind == kind
    assert message in error.message


def test_an_error_has_its_code(db: Database) -> None:
    db.run("CREATE TABLE t (a INTEGER UNIQUE)")
    found = db.outcome(command="INSERT INTO t VALUES (1), (1)")
    assert found.helpers["sqlite"] == {
        "code": "SQLITE_CONSTRAINT_UNIQUE",
        "message": "UNIQUE constraint failed: t.a",
    }
    assert found.error is not None
    assert (found.error.kind, found.error.retryable) == ("sql", False)


def test_a_file_that_is_no_database_or_may_not_be_written_is_told(db: Database, tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("no database, but long enough to be read as one" * 50)
    error = db.error("SELECT * FROM t", database="text.db")
    assert error.message == f"line 1: file is not a database: {tmp_path / 'text.db'}"
    db.run("CREATE TABLE t (a)")
    assert db.error("PRAGMA query_only = 1; INSERT INTO t VALUES (1)").kind == "permission"


def test_all_statements_are_one_transaction(db: Database) -> None:
    db.run("CREATE TABLE t (a CHECK (a > 0))")
    wrong = "INSERT INTO t VALUES (1); INSERT INTO t VALUES (-1)"
    assert db.error(wrong).kind == "sql"
    assert db.rows("SELECT * FROM t") == []
    assert db.error(wrong, spec={"transaction": False}).kind == "sql"
    assert db.rows("SELECT * FROM t") == [{"a": 1}]


def test_a_script_may_have_its_own_transactions(db: Database) -> None:
    db.run("CREATE TABLE t (a); BEGIN; INSERT INTO t VALUES (1); COMMIT; BEGIN; DELETE FROM t; ROLLBACK")
    assert db.rows("SELECT * FROM t") == [{"a": 1}]
    assert "leaves a transaction open" in db.error("BEGIN; DELETE FROM t").message
    assert db.rows("SELECT * FROM t") == [{"a": 1}]


def test_settings_at_the_beginning_are_outside_of_the_transaction(db: Database) -> None:
    db.run("CREATE TABLE a (id INTEGER PRIMARY KEY); CREATE TABLE b (a REFERENCES a (id))")
    error = db.error("PRAGMA foreign_keys = on; INSERT INTO b VALUES (1)")
    assert "FOREIGN KEY constraint failed" in error.message
    assert db.rows("PRAGMA journal_mode = WAL; SELECT 1 AS a") == [{"a": 1}]


@pytest.mark.parametrize(
    ("fetch", "rows"), [("all", [{"x": 1}, {"x": 2}]), ("one", [{"x": 1}]), ("none", [])]
)
def test_fetch_says_which_rows_come_back(db: Database, fetch: str, rows: list[Any]) -> None:
    found = db.run(counted("x"), params={"most": 2}, spec={"fetch": fetch})
    assert (found["rows"], found["row_count"]) == (rows, 2)
    db.run("CREATE TABLE t (x)")
    given: dict[str, Any] = {"rows": [{"x": 1}, {"x": 2}], "command": "INSERT INTO t VALUES (:x) RETURNING x"}
    assert db.run(**given, spec={"fetch": fetch})["rows"] == rows


def test_rows_are_loaded_in_bulk(db: Database, tmp_path: Path) -> None:
    db.run("CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT DEFAULT 'new', doc TEXT)")
    assert db.run(rows=[{"id": 1, "doc": {"a": [1]}}, {"id": 2}], into="main.t")["row_count"] == 2
    assert db.run(rows=[[3, "c"]], into='"t" (id, name)')["row_count"] == 1
    assert db.run(rows=[[4, "d", None]], into="t")["row_count"] == 1
    assert [list(row.values()) for row in db.rows("SELECT * FROM t")] == [
        [1, "new", '{"a":[1]}'],
        [2, "new", None],
        [3, "c", None],
        [4, "d", None],
    ]
    assert db.error(rows=[{"id": n} for n in (8, 9, 1)], into="t").kind == "sql"
    assert db.error(rows=[[8], [9, "x"]], into="t (id)").message == "row 2 has 2 values for 1 columns"
    assert db.rows("SELECT count(*) AS n FROM t") == [{"n": 4}]


def test_a_statement_runs_with_every_row(db: Database) -> None:
    db.run("CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT)")
    upsert = "INSERT INTO t VALUES (:id, :name) ON CONFLICT DO UPDATE SET name = excluded.name"
    assert db.run(rows=[{"id": n % 2, "name": f"n{n}"} for n in range(3)], command=upsert)["row_count"] == 3
    assert db.rows("SELECT * FROM t") == [{"id": 0, "name": "n2"}, {"id": 1, "name": "n1"}]
    rows = [[5, "a"], [5, "b"]]
    assert db.error(rows=rows, command="INSERT INTO t VALUES (?, ?)").kind == "sql"
    assert (
        db.error(rows=rows, command="INSERT INTO t VALUES (?, ?)", spec={"transaction": False}).kind == "sql"
    )
    assert db.rows("SELECT name FROM t WHERE id = 5") == [{"name": "a"}]


def test_an_arrow_table_is_loaded(db: Database) -> None:
    table = pa.table(
        {"id": range(1000), "at": pa.array([0] * 1000, pa.timestamp("us")), "raw": [b"\xff"] * 1000}
    )
    db.run("CREATE TABLE t (id, at, raw)")
    assert db.run(rows=db.stored(table), into="t")["row_count"] == 1000
    assert db.rows("SELECT * FROM t WHERE id = 999") == [
        {"id": 999, "at": "1970-01-01T00:00:00", "raw": "/w=="}
    ]


def test_a_large_result_is_an_arrow_table(db: Database) -> None:
    columns = """x, x / 2.0 AS half, 'n' || x AS name, x'00' AS raw, NULL AS empty, NULLIF(x, 2) AS gap,
        iif(x > 15000, 0.5, x) AS mixed, iif(x > 15000, 'text', x) AS any_, iif(x > 15000, x, NULL) AS late"""
    found = db.run(counted(columns), params={"most": 20_000})
    assert found["row_count"] == 20_000
    table = db.table(found["rows"])
    assert {field.name: str(field.type) for field in table.schema} == {
        "x": "int64",
        "half": "double",
        "name": "string",
        "raw": "binary",
        "empty": "null",
        "gap": "int64",
        "mixed": "double",
        "any_": "string",
        "late": "int64",
    }
    assert table.slice(1, 1).to_pylist() == [
        {
            "x": 2,
            "half": 1.0,
            "name": "n2",
            "raw": b"\0",
            "empty": None,
            "gap": None,
            "mixed": 2.0,
            "any_": "2",
            "late": None,
        }
    ]
    assert table.slice(19_999).to_pylist()[0]["any_"] == "text"
    assert table.column("x").to_pylist() == list(range(1, 20_001))


@pytest.mark.parametrize("beginning", ["x % 2", "x < 19000", "x > 19000"])
def test_wide_integers_among_floats_stay_exact_in_an_arrow_table(db: Database, beginning: str) -> None:
    found = db.run(
        counted(f"iif({beginning}, 9007199254740993, 0.5) AS n, 'name' || x AS name"), params={"most": 20_000}
    )
    assert set(db.table(found["rows"]).column("n").to_pylist()) == {"9007199254740993", "0.5"}


def test_without_arrow_rows_stay_values_up_to_a_limit(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    found = db.run(counted("x"), params={"most": 20_000})
    assert (len(found["rows"]), found["rows"][-1]) == (20_000, {"x": 20_000})
    error = db.error(counted("zeroblob(100000) AS z"), params={"most": 400})
    assert (error.kind, error.message) == (
        "limit",
        "the rows take more than 16 MiB, and pyarrow is not installed: pip install 'noetl[arrow]'",
    )


def test_a_number_without_end_is_null_with_a_warning(db: Database) -> None:
    found = db.outcome(query="SELECT 9e999 AS x")
    assert found.result["rows"] == [{"x": None}]
    assert found.meta["warnings"] == ["column `x`: null in place of a value that JSON cannot hold"]


@pytest.mark.parametrize(
    "auth",
    [
        {"database": "test.db"},
        {"path": "test.db"},
        {"url": "sqlite:///test.db"},
        {"kind": "env", "value": "test.db"},
    ],
)
def test_a_credential_may_name_the_file(db: Database, tmp_path: Path, auth: dict[str, str]) -> None:
    db.run("CREATE TABLE t (a); INSERT INTO t VALUES (1)")
    assert Database(SqliteTool, tmp_path, auth=auth).rows("SELECT * FROM t") == [{"a": 1}]


@pytest.mark.parametrize(
    ("auth", "message"),
    [
        ("lite", "the credential `lite` is not known here"),
        ({"user": "a"}, "the credential has no `database` or `path`"),
    ],
)
def test_a_credential_without_a_file_is_refused(tmp_path: Path, auth: Any, message: str) -> None:
    error = Database(SqliteTool, tmp_path, auth=auth).error("SELECT 1")
    assert (error.kind, error.message) == ("credential", message)


def test_blobs_go_back_as_they_came(db: Database) -> None:
    db.run("CREATE TABLE t (id INT, raw blob, note TEXT)")
    rows = [{"id": 1, "raw": "3q0=", "note": "3q0="}, {"id": 2, "raw": None, "note": None}]
    db.run(rows=rows, into="t")
    db.run(rows=[[3, "\\xdead", ""]], into="t")
    assert db.rows("SELECT raw FROM t WHERE raw = x'dead'") == [{"raw": "3q0="}] * 2
    assert db.rows("SELECT * FROM t WHERE id < 3") == rows
    error = db.error(rows=[{"raw": "@"}], into="t")
    assert (error.kind, error.message[:46]) == ("input", "a value for a column of type BLOB is no base64")


def test_columns_are_named_in_any_case(db: Database) -> None:
    db.run("CREATE TABLE t (Id INT, Name TEXT)")
    db.run(rows=[{"Id": 1, "Name": "a"}], into="t (Id, NAME)")
    db.run(rows=db.stored(pa.table({"ID": [2], "name": ["b"]})), into="t (Id, Name)")
    assert db.rows("SELECT * FROM t") == [{"Id": 1, "Name": "a"}, {"Id": 2, "Name": "b"}]


@pytest.mark.parametrize("database", ["test.db", ":memory:"])
def test_other_files_are_beside_the_playbook_too(tmp_path: Path, database: str) -> None:
    folder = tmp_path / "playbooks"
    folder.mkdir()
    db = sqlite_at(folder)
    db.run("CREATE TABLE t (a); INSERT INTO t VALUES (7)", database="other.db")
    attached = "ATTACH 'other.db' AS other; CREATE TABLE t AS SELECT * FROM other.t; SELECT * FROM t"
    copied = db.call(command="VACUUM INTO :name", params={"name": "copy.db"}, database=database)
    outcomes = db.outcomes(db.call(command=attached, database=database), copied)
    assert [one.error for one in outcomes] == [None, None]
    assert db.rows("SELECT a FROM t", database="copy.db") == [{"a": 7}]


def test_each_execution_has_its_own_database_in_memory(tmp_path: Path) -> None:
    one, other = Database(SqliteTool, tmp_path), Database(SqliteTool, tmp_path)
    made = one.call(command="CREATE TABLE t (a); INSERT INTO t VALUES (1)")
    asked = [database.call(query="SELECT * FROM t") for database in (one, other)]
    first, second, third = one.outcomes(made, *asked)
    assert (first.error, second.result["rows"]) == (None, [{"a": 1}])
    assert third.error is not None
    assert third.error.message == "line 1: no such table: t"
    assert list(tmp_path.iterdir()) == []


def test_a_database_in_memory_goes_with_its_execution(tmp_path: Path) -> None:
    db = Database(SqliteTool, tmp_path)

    async def whole() -> tuple[Outcome, Outcome]:
        tool = SqliteTool()
        await tool.run(db.call(command="CREATE TABLE t (a)"))
        (connection,) = [one for one in apsw.connections() if one not in before]
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
    used, after = asyncio.run(whole())
    assert used.result["rows"] == [{"a": 1}]
    assert after.error is not None


def test_tasks_of_one_execution_take_turns_in_memory(tmp_path: Path) -> None:
    db = Database(SqliteTool, tmp_path)

    async def whole() -> list[Outcome]:
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

    assert sorted(found.result["rows"][0]["n"] for found in asyncio.run(whole())) == list(range(1, 51))


def test_a_task_that_takes_too_long_is_stopped(db: Database) -> None:
    late, after = db.outcomes(
        db.call(command=f"CREATE TABLE t (a);\n{ENDLESS}", timeout=0.2), db.call(query="SELECT * FROM t")
    )
    assert late.error is not None
    assert (late.error.kind, late.error.retryable) == ("timeout", True)
    assert late.error.message == "statement 2 of 2, line 2: not done within 0.2 s"
    assert after.error is not None
    assert "no such table" in after.error.message


def test_a_locked_database_is_waited_for(db: Database, tmp_path: Path) -> None:
    db.run("CREATE TABLE t (a)")
    other = apsw.Connection(str(tmp_path / "test.db"))
    other.execute("BEGIN IMMEDIATE")
    error = db.error("INSERT INTO t VALUES (1); INSERT INTO t VALUES (2)", timeout=0.2)
    assert (error.kind, error.retryable) == ("timeout", True)

    async def whole() -> Outcome:
        tool = SqliteTool()
        task = asyncio.ensure_future(tool.run(db.call(command="INSERT INTO t VALUES (1)")))
        await asyncio.sleep(0)
        await asyncio.to_thread(other.execute, "COMMIT")
        try:
            return await task
        finally:
            await tool.close()

    assert asyncio.run(whole()).error is None
    other.close()
    assert db.rows("SELECT * FROM t") == [{"a": 1}]


def test_cancelling_a_task_and_ending_the_worker_stop_it(db: Database) -> None:
    async def whole() -> list[Outcome]:
        tool = SqliteTool()
        first = asyncio.ensure_future(tool.run(db.call(query=ENDLESS)))
        second = asyncio.ensure_future(tool.run(db.call(query=ENDLESS)))
        await asyncio.sleep(0)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        await tool.close()
        await tool.close()
        return [await second, await tool.run(db.call(query="SELECT 1"))]

    assert [found.error.kind for found in asyncio.run(whole()) if found.error] == ["cancelled", "cancelled"]
