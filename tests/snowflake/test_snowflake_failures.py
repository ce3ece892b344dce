"""What becomes of a Snowflake task when something goes wrong."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from snowflake.connector import errors

from noetl.model.outcome import Outcome
from noetl.tools.snowflake.auth import snowflake_target
from noetl.tools.snowflake.failure import snowflake_failure
from noetl.tools.snowflake.kind import SnowflakeInputs
from noetl.tools.snowflake.tool import SnowflakeTool
from tests.snowflake.fakesnow_environment import PASSWORD, Fakesnow
from tests.tools.sql_calls import SqlDatabase

ENDLESS = (
    "SELECT count(*) FROM TABLE(GENERATOR(ROWCOUNT => 10000000)) a, TABLE(GENERATOR(ROWCOUNT => 10000000)) b"
)


@pytest.mark.parametrize(
    ("sql", "code", "state", "message"),
    [
        ("SELECT 1;\nSELEC 1", 1003, "42000", "statement 2 of 2, line 2: "),
        (
            "SELECT * FROM nothing",
            2003,
            "42S02",
            "line 1: Catalog Error: Table with name NOTHING does not exist",
        ),
        ("SELECT CAST('x' AS int)", 100035, "22007", "line 1: Conversion Error"),
    ],
)
def test_an_error_has_its_code_and_place(
    db: SqlDatabase, sql: str, code: int, state: str, message: str
) -> None:
    outcome = db.outcome(command=sql)
    assert outcome.error is not None
    helper = outcome.helpers["snowflake"]
    assert (helper["code"], helper["sqlstate"], outcome.error.kind) == (code, state, "sql")
    assert (outcome.error.as_value()["code"], outcome.error.retryable) == (code, False)
    assert outcome.error.message.startswith(message)


@pytest.mark.parametrize(
    ("error", "kind", "retryable"),
    [
        (errors.ProgrammingError("x", errno=604, sqlstate="57014"), "timeout", True),
        (errors.ProgrammingError("x", errno=630, sqlstate="57014"), "timeout", True),
        (errors.ProgrammingError("x", errno=625, sqlstate="55000"), "sql", True),
        (errors.ProgrammingError("x", errno=3001, sqlstate="42501"), "permission", False),
        (errors.DatabaseError("x", errno=390114, sqlstate="08001"), "connection", True),
        (errors.DatabaseError("x", errno=390144, sqlstate="08001"), "credential", False),
        (errors.OperationalError("x"), "connection", True),
        (errors.InternalError("x", errno=252005), "sql", False),
    ],
)
def test_errors_that_fakesnow_does_not_give_are_known(
    error: errors.Error, kind: str, retryable: bool
) -> None:
    outcome = snowflake_failure(error, None, connected=True)
    assert outcome.error is not None
    assert (outcome.error.kind, outcome.error.retryable) == (kind, retryable)


def test_the_line_that_the_account_names_is_that_of_the_script(db: SqlDatabase) -> None:
    words = "SQL compilation error:\nsyntax error line 2 at position 7 unexpected 'FORM'."
    outcome = snowflake_failure(
        errors.ProgrammingError(words, errno=1003, sqlstate="42000", sfqid="q"), None, connected=True
    )
    assert outcome.error is not None
    assert outcome.helpers["snowflake"] == {
        "code": 1003,
        "sqlstate": "42000",
        "query_id": "q",
        "message": words,
    }
    assert (
        outcome.error.message == "SQL compilation error: syntax error line 2 at position 7 unexpected 'FORM'."
    )


@pytest.mark.parametrize(
    ("fields", "kind", "code", "retryable", "message"),
    [
        ({"password": "hunter2"}, "credential", 390100, False, "Incorrect username or password"),
        ({"port": 1}, "connection", 250001, True, "Connection refused"),
        (
            {"private_key": "hunter2"},
            "credential",
            251007,
            False,
            "Invalid value '(redacted)' for parameter 'private_key'",
        ),
    ],
)
def test_an_account_that_lets_nobody_in_is_told(  # noqa: PLR0917 - a column of the table each
    snow: Fakesnow, fields: dict[str, Any], kind: str, code: int, retryable: bool, message: str
) -> None:
    outcome = SqlDatabase(SnowflakeTool, Path(), auth=snow.auth(**fields)).outcome(query="SELECT 1")
    assert outcome.error is not None
    assert (outcome.error.kind, outcome.error.retryable, outcome.helpers["snowflake"]["code"]) == (
        kind,
        retryable,
        code,
    )
    assert message in outcome.error.message
    assert "hunter2" not in outcome.error.message


@pytest.mark.parametrize(
    "auth",
    [
        {"account": "o-a", "username": "ada", "db_password": "x", "db_name": "d", "schema": "s", "sf_warehouse": "w"},
        {"sf_account": "o-a", "sf_user": "ada", "sf_password": "x", "sf_database": "d", "sf_schema": "s", "warehouse": "w"},
        {"kind": "snowflake_credential", "url": "snowflake://ada:x@o-a/d/s?warehouse=w"},
        {"kind": "env", "value": "snowflake://ada@o-a/d?warehouse=w&schema=s", "password": "x"},
    ],
)  # fmt: skip
def test_a_credential_names_the_account_in_any_spelling(auth: dict[str, Any]) -> None:
    target = snowflake_target(SnowflakeInputs(auth=auth))
    expected = {
        "account": "o-a",
        "user": "ada",
        "password": "x",
        "database": "d",
        "schema": "s",
        "warehouse": "w",
    }
    assert dict(target.options) == expected


def test_a_private_key_signs_in_without_more_words() -> None:
    target = snowflake_target(
        SnowflakeInputs(auth={"account": "a", "private_key": "k", "private_key_passphrase": "p"})
    )
    assert dict(target.options)["authenticator"] == "SNOWFLAKE_JWT"
    assert dict(target.options)["private_key_password"] == "p"


@pytest.mark.parametrize(
    ("target", "kind", "message"),
    [
        ({"auth": "warehouse"}, "credential", "the credential `warehouse` is not known here"),
        ({"auth": {"user": "a"}}, "credential", "the credential has no `account`, and no `dsn` or `url` either"),
        ({"auth": {"account": "a", "pasword": "hunter2"}}, "credential", "`pasword` in the credential means nothing"),
        ({"auth": {"account": "a", "user": "b", "username": "c"}}, "credential", "two values for `user`"),
        ({"auth": {"account": "a", "port": "x"}}, "credential", "`port` in the credential is no number"),
        ({"auth": {"url": "mysql://x:hunter2@h/d"}}, "credential", "`url` of the credential is no address"),
        ({"dsn": "snowflake://a:hunter2@h/d/s/t"}, "input", "`dsn` is no address of a Snowflake account"),
        ({}, "input", "`auth` or `dsn` is missing"),
    ],
)  # fmt: skip
def test_a_target_that_is_none_is_refused_without_its_secrets(
    target: dict[str, Any], kind: str, message: str
) -> None:
    error = SqlDatabase(SnowflakeTool, Path(), **target).error("SELECT 1")
    assert error.kind == kind
    assert message in error.message
    assert "hunter2" not in error.message


def wait_until_idle(snow: Fakesnow) -> None:
    while snow.seen()["running"]:
        pass


def test_a_task_that_takes_too_long_is_stopped_in_the_account(db: SqlDatabase, snow: Fakesnow) -> None:
    call = db.call(command=f"SELECT 1;\n{ENDLESS}", timeout=1)
    late, after = db.outcomes(call, db.call(query="SELECT 1 AS a"))
    assert late.error is not None
    assert (late.error.kind, late.error.retryable) == ("timeout", True)
    assert late.error.message == "statement 2 of 2, line 2: not done within 1 s"
    assert late.helpers["snowflake"]["code"] == 604
    assert after.result["rows"] == [{"A": 1}]
    wait_until_idle(snow)


def cancelled(snow: Fakesnow, run: Callable[[SnowflakeTool], Awaitable[Outcome]], mark: str) -> None:
    """Cancels the run when the account is at work with a statement that has a mark in it."""

    async def run_and_cancel() -> None:
        tool = SnowflakeTool()
        task = asyncio.ensure_future(run(tool))
        try:
            while mark not in str((await asyncio.to_thread(snow.seen))["requests"]):
                assert not task.done()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        finally:
            await tool.close()

    asyncio.run(run_and_cancel())
    wait_until_idle(snow)


def test_cancelling_a_task_aborts_its_statement_and_its_transaction(db: SqlDatabase, snow: Fakesnow) -> None:
    db.run("CREATE TABLE t (a int)")
    before = len(snow.seen()["requests"])
    script = f"INSERT INTO t VALUES (1); {ENDLESS} /* cut */"  # noqa: S608 - of the test itself
    cancelled(snow, lambda tool: tool.run(db.call(command=script)), "cut")
    assert db.rows("SELECT * FROM t") == []
    requests = snow.seen()["requests"][before:]
    assert [request["path"] for request in requests].count("/queries/v1/abort-request") == 1


def test_nothing_runs_after_the_end(db: SqlDatabase, snow: Fakesnow) -> None:
    async def run_and_close() -> list[Outcome]:
        tool = SnowflakeTool()
        running = asyncio.ensure_future(tool.run(db.call(query=ENDLESS)))
        while not (await asyncio.to_thread(snow.seen))["running"]:
            assert not running.done()
        await tool.close()
        await tool.close()
        return [await running, await tool.run(db.call(query="SELECT 1"))]

    kinds = [outcome.error.kind for outcome in asyncio.run(run_and_close()) if outcome.error]
    assert kinds == ["cancelled", "cancelled"]
    wait_until_idle(snow)


def test_no_secret_of_a_session_is_logged(snow: Fakesnow, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    database = SqlDatabase(SnowflakeTool, Path(), auth=snow.auth())
    assert database.rows("SELECT ? AS a", params=["a value of somebody"]) == [{"A": "a value of somebody"}]
    assert PASSWORD not in caplog.text
    assert "a value of somebody" not in caplog.text
