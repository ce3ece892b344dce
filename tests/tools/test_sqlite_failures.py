"""What SQLite refuses, and how its tasks are stopped."""

import asyncio
from pathlib import Path
from typing import Any

import apsw
import pytest

from noetl.model.outcome import Outcome
from noetl.tools.sqlite.tool import SqliteTool
from tests.tools.sql_calls import SqlDatabase

ENDLESS = "WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"


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
def test_what_cannot_run_is_told(db: SqlDatabase, about: dict[str, Any], kind: str, message: str) -> None:
    error = db.error(**about)
    assert error.kind == kind
    assert message in error.message


def test_an_error_has_its_code(db: SqlDatabase) -> None:
    db.run("CREATE TABLE t (a INTEGER UNIQUE)")
    outcome = db.outcome(command="INSERT INTO t VALUES (1), (1)")
    assert outcome.helpers["sqlite"] == {
        "code": "SQLITE_CONSTRAINT_UNIQUE",
        "message": "UNIQUE constraint failed: t.a",
    }
    assert outcome.error is not None
    assert (outcome.error.kind, outcome.error.retryable) == ("sql", False)


def test_a_file_that_is_no_database_or_may_not_be_written_is_told(db: SqlDatabase, tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("no database, but long enough to be read as one" * 50)
    error = db.error("SELECT * FROM t", database="text.db")
    assert error.message == f"line 1: file is not a database: {tmp_path / 'text.db'}"
    db.run("CREATE TABLE t (a)")
    assert db.error("PRAGMA query_only = 1; INSERT INTO t VALUES (1)").kind == "permission"


@pytest.mark.parametrize(
    ("auth", "message"),
    [
        ("lite", "the credential `lite` is not known here"),
        ({"user": "a"}, "the credential has no `database` or `path`"),
    ],
)
def test_a_credential_without_a_file_is_refused(tmp_path: Path, auth: Any, message: str) -> None:
    error = SqlDatabase(SqliteTool, tmp_path, auth=auth).error("SELECT 1")
    assert (error.kind, error.message) == ("credential", message)


def test_a_task_that_takes_too_long_is_stopped(db: SqlDatabase) -> None:
    late, after = db.outcomes(
        db.call(command=f"CREATE TABLE t (a);\n{ENDLESS}", timeout=0.2), db.call(query="SELECT * FROM t")
    )
    assert late.error is not None
    assert (late.error.kind, late.error.retryable) == ("timeout", True)
    assert late.error.message == "statement 2 of 2, line 2: not done within 0.2 s"
    assert after.error is not None
    assert "no such table" in after.error.message


def test_a_locked_database_is_waited_for(db: SqlDatabase, tmp_path: Path) -> None:
    db.run("CREATE TABLE t (a)")
    other = apsw.Connection(str(tmp_path / "test.db"))
    other.set_busy_timeout(10_000)  # whoever looks whether it is locked locks it for a moment
    other.execute("BEGIN IMMEDIATE")
    error = db.error("INSERT INTO t VALUES (1); INSERT INTO t VALUES (2)", timeout=0.2)
    assert (error.kind, error.retryable) == ("timeout", True)

    async def run_while_locked() -> Outcome:
        tool = SqliteTool()
        task = asyncio.ensure_future(tool.run(db.call(command="INSERT INTO t VALUES (1)")))
        await asyncio.sleep(0)
        await asyncio.to_thread(other.execute, "COMMIT")
        try:
            return await task
        finally:
            await tool.close()

    assert asyncio.run(run_while_locked()).error is None
    other.close()
    assert db.rows("SELECT * FROM t") == [{"a": 1}]


def test_cancelling_a_task_and_ending_the_worker_stop_it(db: SqlDatabase) -> None:
    async def run_and_close() -> list[Outcome]:
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

    assert [outcome.error.kind for outcome in asyncio.run(run_and_close()) if outcome.error] == [
        "cancelled",
        "cancelled",
    ]
