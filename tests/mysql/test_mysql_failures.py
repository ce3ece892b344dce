"""What becomes of a MySQL task when something goes wrong."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from noetl.model.outcome import Outcome
from noetl.tools.mysql.tool import MysqlTool
from tests.mysql.mariadb import PASSWORD, MariadbServer
from tests.tools.sql_calls import SqlDatabase

BUSY = "SELECT count(*) AS n FROM information_schema.processlist WHERE info LIKE ? AND id <> connection_id()"


@pytest.mark.parametrize(
    ("sql", "code", "state", "kind", "retryable"),
    [
        ("SELEC 1", 1064, "42000", "sql", False),
        ("SELECT * FROM nothing", 1146, "42S02", "sql", False),
        ("SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1213", 1213, "45000", "sql", True),
        ("SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1205", 1205, "45000", "sql", True),
        ("SIGNAL SQLSTATE '08000' SET MYSQL_ERRNO = 1040", 1040, "08000", "connection", True),
        ("SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1227", 1227, "45000", "permission", False),
        ("SET STATEMENT max_statement_time = 0.05 FOR SELECT * FROM seq_1_to_100000 a, seq_1_to_100000 b WHERE a.seq + b.seq < 0", 1969, "70100", "timeout", True),
        ("KILL QUERY CONNECTION_ID()", 1317, "70100", "timeout", True),
        ("KILL CONNECTION_ID()", 1927, "70100", "connection", True),
        ("LOAD DATA LOCAL INFILE '/etc/hostname' INTO TABLE t", 4166, "HY000", "sql", False),
    ],
)  # fmt: skip
def test_an_error_has_its_code_and_kind(  # noqa: PLR0917 - a column of the table each
    db: SqlDatabase, sql: str, code: int, state: str, kind: str, retryable: bool
) -> None:
    db.run("CREATE TABLE t (a text)")
    outcome = db.outcome(command=sql)
    assert outcome.error is not None
    helper = outcome.helpers["mysql"]
    assert (helper["code"], helper["sqlstate"], outcome.error.kind, outcome.error.retryable) == (
        code,
        state,
        kind,
        retryable,
    ), outcome.error
    assert (outcome.error.as_value()["code"], outcome.error.as_value()["sqlstate"]) == (code, state)


def test_an_error_says_where_it_is(db: SqlDatabase) -> None:
    db.run("CREATE TABLE t (a int UNIQUE)")
    outcome = db.outcome(command="SELECT 1;\n\nINSERT INTO t\nVALUES (1), (1)")
    assert outcome.error is not None
    assert outcome.error.message == "statement 2 of 2, line 3: Duplicate entry '1' for key 'a'"
    assert outcome.helpers["mysql"]["message"] == "Duplicate entry '1' for key 'a'"
    syntax = db.error("SELECT 1;\nSELECT 1,\n  2,\n  nme FORM t", params=None)
    assert syntax.message.startswith("statement 2 of 2, line 4: You have an error in your SQL syntax")
    assert not syntax.message.endswith("at line 3")


def test_two_tasks_that_wait_for_each_other_are_told_apart(db: SqlDatabase) -> None:
    """A lock that is waited for too long; the server gives up after a second."""
    db.run("CREATE TABLE t (a int PRIMARY KEY, b int); INSERT INTO t VALUES (1, 0)")

    async def run_both() -> Outcome:
        tool = MysqlTool()
        holder = asyncio.ensure_future(tool.run(db.call(command="UPDATE t SET b = 1; SELECT SLEEP(1001)")))
        try:
            while not await asyncio.to_thread(asleep, db, 1001):
                assert not holder.done()
            return await tool.run(db.call(command="UPDATE t SET b = 2"))
        finally:
            holder.cancel()
            await tool.close()

    outcome = asyncio.run(run_both())
    assert outcome.error is not None
    assert (outcome.helpers["mysql"]["code"], outcome.error.kind, outcome.error.retryable) == (
        1205,
        "sql",
        True,
    )


@pytest.mark.parametrize(
    ("fields", "kind", "code", "retryable", "message"),
    [
        ({"password": "hunter2"}, "credential", 1045, False, "Access denied for user 'tester'"),
        ({"user": "nobody"}, "credential", 1045, False, "Access denied for user 'nobody'"),
        ({"database": "nothing"}, "not_found", 1049, False, "Unknown database 'nothing'"),
        ({"port": 1}, "connection", 2003, True, "Can't connect to MySQL server on '127.0.0.1'"),
        ({"unix_socket": "/nowhere"}, "connection", 2003, True, "No such file or directory"),
    ],
)
def test_a_server_that_lets_nobody_in_is_told(  # noqa: PLR0917 - a column of the table each
    mariadb: MariadbServer, fields: dict[str, Any], kind: str, code: int, retryable: bool, message: str
) -> None:
    outcome = SqlDatabase(MysqlTool, Path(), auth=mariadb.auth(**fields)).outcome(query="SELECT 1")
    assert outcome.error is not None
    assert (outcome.error.kind, outcome.error.retryable, outcome.helpers["mysql"]["code"]) == (
        kind,
        retryable,
        code,
    )
    assert message in outcome.error.message
    assert "hunter2" not in outcome.error.message


def test_a_user_without_rights_is_told(db: SqlDatabase, mariadb: MariadbServer) -> None:
    db.run("CREATE USER reader@'127.0.0.1' IDENTIFIED BY 'x'; CREATE TABLE t (a int)")
    name = db.rows("SELECT DATABASE() AS d")[0]["d"]
    reader = SqlDatabase(MysqlTool, Path(), auth=mariadb.auth(user="reader", password="x"))
    try:
        assert reader.error(f"SELECT * FROM {name}.t").kind == "permission"  # noqa: S608 - of the test itself
    finally:
        db.run("DROP USER reader@'127.0.0.1'")


def test_a_credential_names_the_server_in_any_spelling(mariadb: MariadbServer) -> None:
    secret = "gr%C3%BCn%20%26%20blau"
    for auth in (
        mariadb.auth(kind="mysql_credential", database="mysql"),
        {"db_host": "127.0.0.1", "db_port": str(mariadb.port), "db_user": "tester", "db_password": PASSWORD, "db_name": "mysql"},
        {"hostname": "127.0.0.1", "port": mariadb.port, "username": "tester", "passwd": PASSWORD, "db": "mysql"},
        {"url": f"mysql+pymysql://tester:{secret}@127.0.0.1:{mariadb.port}/mysql"},
        {"url": f"mariadb://tester@127.0.0.1:{mariadb.port}/mysql", "password": PASSWORD},
        {"kind": "env", "value": f"mysql://tester:{secret}@127.0.0.1:{mariadb.port}/mysql"},
    ):  # fmt: skip
        rows = SqlDatabase(MysqlTool, Path(), auth=auth).rows("SELECT current_user() AS u, database() AS d")
        assert rows == [{"u": "tester@127.0.0.1", "d": "mysql"}]


@pytest.mark.parametrize(
    ("target", "kind", "message"),
    [
        ({"auth": "warehouse"}, "credential", "the credential `warehouse` is not known here"),
        ({"auth": {"user": "a"}}, "credential", "the credential has no `host`, and no `dsn` or `url` either"),
        ({"auth": {"host": "a", "pasword": "hunter2"}}, "credential", "`pasword` in the credential means nothing"),
        ({"auth": {"host": "a", "db_host": "b"}}, "credential", "two values for `host`"),
        ({"auth": {"host": "a", "port": "x"}}, "credential", "`port` in the credential is no number"),
        ({"auth": {"host": "a", "ssl_mode": "some"}}, "credential", "`ssl_mode` in the credential is none of `DISABLED`"),
        ({"auth": {"host": "a", "ssl_ca": "/nowhere"}}, "credential", "the certificates of the credential cannot be used"),
        ({"auth": {"url": "postgresql://x:hunter2@h/d"}}, "credential", "`url` of the credential is no address"),
        ({"dsn": "mysql://a:hunter2@h:port/d"}, "input", "`dsn` is no address of a MySQL server"),
        ({}, "input", "`auth` or `dsn` is missing"),
    ],
)  # fmt: skip
def test_a_target_that_is_none_is_refused_without_its_secrets(
    target: dict[str, Any], kind: str, message: str
) -> None:
    error = SqlDatabase(MysqlTool, Path(), **target).error("SELECT 1")
    assert error.kind == kind
    assert message in error.message
    assert "hunter2" not in error.message


@pytest.mark.parametrize(
    ("fields", "works", "cipher"),
    [
        ({}, True, False),
        ({"ssl_mode": "DISABLED"}, True, False),
        ({"ssl_mode": "required"}, True, True),
        ({"ssl_mode": "VERIFY_CA"}, False, False),
        ({"ssl_mode": "VERIFY_CA", "ssl_ca": "ca"}, True, True),
        ({"ssl_ca": "ca"}, True, True),
        ({"ssl_ca": "ca", "host": "localhost"}, False, False),
        ({"ssl_ca": "ca", "host": "localhost", "ssl_mode": "VERIFY-CA"}, True, True),
    ],
)
def test_connections_are_encrypted_and_servers_proven_as_the_credential_says(
    mariadb: MariadbServer, fields: dict[str, Any], works: bool, cipher: bool
) -> None:
    fields = {name: str(mariadb.ca) if name == "ssl_ca" else value for name, value in fields.items()}
    outcome = SqlDatabase(MysqlTool, Path(), auth=mariadb.auth(**fields)).outcome(
        query="SHOW STATUS LIKE 'Ssl_cipher'"
    )
    assert (outcome.error is None) == works, outcome.error
    if works:
        assert bool(outcome.result["rows"][0]["Value"]) == cipher
    else:
        assert outcome.error is not None
        assert "certificate verify failed" in outcome.error.message


def asleep(db: SqlDatabase, seconds: int) -> bool:
    """Whether a query that sleeps so long runs on the server."""
    return bool(db.rows(BUSY, params=[f"%SLEEP({seconds})%"])[0]["n"])


def test_a_task_that_takes_too_long_is_stopped_on_the_server(db: SqlDatabase) -> None:
    call = db.call(command="SELECT 1;\nSELECT SLEEP(1002)", timeout=0.2)
    late, after = db.outcomes(call, db.call(query="SELECT 1 AS a"))
    assert late.error is not None
    assert (late.error.kind, late.error.retryable) == ("timeout", True)
    assert late.error.message == "statement 2 of 2, line 2: not done within 0.2 s"
    assert late.helpers["mysql"]["code"] == 1317
    assert after.result["rows"] == [{"a": 1}]
    assert not asleep(db, 1002)


def cancelled(db: SqlDatabase, run: Callable[[MysqlTool], Awaitable[Outcome]], seconds: int) -> None:
    """Cancels the run when the server sleeps in it."""

    async def run_and_cancel() -> None:
        tool = MysqlTool()
        task = asyncio.ensure_future(run(tool))
        try:
            while not await asyncio.to_thread(asleep, db, seconds):
                assert not task.done()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        finally:
            await tool.close()

    asyncio.run(run_and_cancel())
    assert not asleep(db, seconds)


def test_cancelling_a_task_cancels_its_query_and_its_transaction(db: SqlDatabase) -> None:
    db.run("CREATE TABLE t (a int)")
    script = "INSERT INTO t VALUES (1); SELECT SLEEP(1003), ? AS a"
    cancelled(db, lambda tool: tool.run(db.call(command=script, params=[1])), 1003)
    assert db.rows("SELECT * FROM t") == []


def test_cancelling_a_bulk_run_cancels_it(db: SqlDatabase) -> None:
    db.run("CREATE TABLE t (a int)")
    rows = [{"a": n} for n in range(10)]
    command = "INSERT INTO t SELECT SLEEP(1004) + :a"
    cancelled(db, lambda tool: tool.run(db.call(rows=rows, command=command)), 1004)


def test_a_result_that_is_cut_off_leaves_nothing_for_the_next_task(db: SqlDatabase) -> None:
    """Rows without Arrow are at most 16 MiB: what is beyond is not read any more."""
    spec = {"pool": {"max": 1}}
    slow = "SELECT seq, SLEEP(0.0001) FROM seq_1_to_10000000"
    late, after = db.outcomes(
        db.call(query=slow, timeout=0.5, spec=spec), db.call(query="SELECT 1 AS a", spec=spec)
    )
    assert late.error is not None
    assert late.error.kind == "timeout"
    assert after.result["rows"] == [{"a": 1}]
    assert db.rows(BUSY, params=["%seq_1_to_10000000%"]) == [{"n": 0}]


def test_connections_that_the_server_closed_are_replaced(db: SqlDatabase) -> None:
    async def run_twice() -> tuple[Any, Any]:
        tool = MysqlTool()
        call = db.call(query="SELECT connection_id() AS id")
        try:
            first = (await tool.run(call)).result["rows"][0]["id"]
            await asyncio.to_thread(db.run, f"KILL {first}")
            while {"id": first} in await asyncio.to_thread(
                db.rows, "SELECT id FROM information_schema.processlist"
            ):
                pass
            return first, await tool.run(call)
        finally:
            await tool.close()

    first, second = asyncio.run(run_twice())
    assert second.error is None
    assert second.result["rows"][0]["id"] != first


def test_a_connection_that_breaks_while_it_is_used_is_told(db: SqlDatabase) -> None:
    async def run_and_kill() -> Outcome:
        tool = MysqlTool()
        task = asyncio.ensure_future(tool.run(db.call(query="SELECT SLEEP(1005)")))
        query = "SELECT id FROM information_schema.processlist WHERE info = 'SELECT SLEEP(1005)'"
        try:
            while not (rows := await asyncio.to_thread(db.rows, query)):
                assert not task.done()
            await asyncio.to_thread(db.run, f"KILL {rows[0]['id']}")
            return await task
        finally:
            await tool.close()

    outcome = asyncio.run(run_and_kill())
    assert outcome.error is not None
    assert (outcome.error.kind, outcome.error.retryable, outcome.helpers["mysql"]["code"]) == (
        "connection",
        True,
        2013,
    )


def test_a_wait_for_a_free_connection_ends(db: SqlDatabase) -> None:
    async def run_both() -> list[Outcome]:
        tool = MysqlTool()
        busy = db.call(query="SELECT SLEEP(1006)", spec={"pool": {"max": 1, "timeout": 0.05}}, timeout=0.5)
        try:
            return list(await asyncio.gather(tool.run(busy), tool.run(busy)))
        finally:
            await tool.close()

    _, second = asyncio.run(run_both())
    assert second.error is not None
    assert (second.error.kind, second.error.retryable) == ("timeout", True)
    assert second.error.message == "all 1 connections were busy for 0.05 s: `spec.pool.max` allows more"


def test_nothing_runs_after_the_end(db: SqlDatabase) -> None:
    async def run_and_close() -> list[Outcome]:
        tool = MysqlTool()
        running = asyncio.ensure_future(tool.run(db.call(query="SELECT SLEEP(1007)")))
        while not await asyncio.to_thread(asleep, db, 1007):
            assert not running.done()
        await tool.close()
        await tool.close()
        return [await running, await tool.run(db.call(query="SELECT 1"))]

    assert [outcome.error.kind for outcome in asyncio.run(run_and_close()) if outcome.error] == [
        "cancelled",
        "cancelled",
    ]
    assert not asleep(db, 1007)
