"""What becomes of a PostgreSQL task when something goes wrong."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import psycopg
import pytest

from bench.postgres_server import PASSWORD, PostgresServer
from noetl.model.outcome import Outcome
from noetl.tools.postgres.failure import postgres_failure
from noetl.tools.postgres.tool import PostgresTool
from tests.tools.sql_calls import SqlDatabase, postgres_at

SLEEPING = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE %s AND state = 'active' AND pid <> pg_backend_pid()"


@pytest.fixture
def db(dsn: str) -> SqlDatabase:
    return postgres_at(dsn)


@pytest.mark.parametrize(
    ("sql", "state", "kind", "retryable"),
    [
        ("SELEC 1", "42601", "sql", False),
        ("SELECT 1 / 0", "22012", "sql", False),
        ("SELECT * FROM nothing", "42P01", "sql", False),
        ("DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '40001'; END $$", "40001", "sql", True),
        ("DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '40P01'; END $$", "40P01", "sql", True),
        ("DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '08006'; END $$", "08006", "connection", True),
        ("DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '28000'; END $$", "28000", "credential", False),
        ("DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '42501'; END $$", "42501", "permission", False),
        ("SET LOCAL statement_timeout = 5; SELECT pg_sleep(9)", "57014", "timeout", True),
        ("SELECT pg_terminate_backend(pg_backend_pid())", "57P01", "connection", True),
        ("COPY (SELECT 1) TO STDOUT", None, "input", False),
    ],
)
def test_an_error_has_its_sqlstate_and_kind(
    db: SqlDatabase, sql: str, state: str | None, kind: str, retryable: bool
) -> None:
    outcome = db.outcome(command=sql)
    assert outcome.error is not None
    assert (outcome.error.kind, outcome.error.retryable) == (kind, retryable), outcome.error
    assert (outcome.helpers["pg"]["code"], outcome.helpers["pg"]["sqlstate"]) == (state, state)
    assert outcome.error.as_value()["sqlstate"] == state


def test_an_error_says_where_it_is_and_which_constraint(db: SqlDatabase) -> None:
    db.run("CREATE TABLE t (a int CONSTRAINT positive CHECK (a > 0), b int UNIQUE)")
    outcome = db.outcome(command="SELECT 1;\n\nINSERT INTO t\nVALUES (-1)")
    assert outcome.error is not None
    assert outcome.error.message.startswith(
        'statement 2 of 2, line 3: new row for relation "t" violates check'
    )
    assert (outcome.helpers["pg"]["code"], outcome.helpers["pg"]["constraint"]) == ("23514", "positive")
    db.run("INSERT INTO t VALUES (1, 1)")
    detail = db.outcome(command="INSERT INTO t VALUES (1, %s)", params=[1]).helpers["pg"]["detail"]
    assert detail == "Key (b)=(1) already exists."
    assert db.error("SELECT 1,\n  2,\n  nme FROM t").message == 'line 3: column "nme" does not exist'


def test_an_error_at_the_commit_is_told(db: SqlDatabase) -> None:
    db.run("CREATE TABLE t (a int UNIQUE DEFERRABLE INITIALLY DEFERRED)")
    outcome = db.outcome(command="INSERT INTO t VALUES (1); INSERT INTO t VALUES (1)")
    assert outcome.helpers["pg"]["code"] == "23505"
    assert db.rows("SELECT * FROM t") == []


@pytest.mark.parametrize(
    ("options", "kind", "state", "retryable", "message"),
    [
        ({"password": "wrong"}, "credential", "28P01", False, "password authentication failed"),
        ({"password": ""}, "credential", "28P01", False, "no password supplied"),
        ({"user": "nobody"}, "credential", "28P01", False, "password authentication failed"),
        ({"dbname": "nothing"}, "not_found", "3D000", False, 'database "nothing" does not exist'),
        ({"host": "/nowhere"}, "connection", None, True, "No such file or directory"),
    ],
)
def test_a_server_that_lets_nobody_in_is_told(  # noqa: PLR0917 - a column of the table each
    postgres: PostgresServer,
    options: dict[str, str],
    kind: str,
    state: str | None,
    retryable: bool,
    message: str,
) -> None:
    outcome = postgres_at(postgres.dsn(**options)).outcome(query="SELECT 1")
    assert outcome.error is not None
    assert (outcome.error.kind, outcome.error.retryable) == (kind, retryable)
    assert outcome.helpers["pg"]["code"] == state
    assert message in outcome.error.message


def test_a_refusal_that_names_a_role_or_a_database_has_its_own_sqlstate(
    db: SqlDatabase, postgres: PostgresServer
) -> None:
    roles = f"CREATE ROLE crowd LOGIN CONNECTION LIMIT 0 PASSWORD '{PASSWORD}'"
    db.run(f"{roles}; CREATE ROLE guest LOGIN PASSWORD '{PASSWORD}'; CREATE ROLE mute PASSWORD '{PASSWORD}'")
    db.run("CREATE DATABASE small CONNECTION LIMIT 0")
    db.run("CREATE DATABASE private")
    db.run("REVOKE CONNECT ON DATABASE private FROM PUBLIC")
    db.run("CREATE DATABASE shut ALLOW_CONNECTIONS false")
    try:
        for options, state, kind in (
            ({"user": "crowd"}, "53300", "connection"),
            ({"user": "guest", "dbname": "small"}, "53300", "connection"),
            ({"user": "guest", "dbname": "private"}, "42501", "permission"),
            ({"user": "mute"}, "28000", "credential"),
            ({"dbname": "shut"}, "55000", "sql"),
        ):
            outcome = postgres_at(postgres.dsn(**options)).outcome(query="SELECT 1")
            assert outcome.error is not None
            assert (outcome.helpers["pg"]["sqlstate"], outcome.error.kind) == (state, kind)
            assert outcome.error.retryable == (kind == "connection")
    finally:
        for name in ("small", "private", "shut"):
            db.run(f"DROP DATABASE {name}")
        db.run("DROP ROLE crowd; DROP ROLE guest; DROP ROLE mute")


@pytest.mark.parametrize(
    "state", ["starting up", "shutting down", "in recovery mode", "not yet accepting connections"]
)
def test_a_server_that_is_not_up_yet_can_be_tried_again(state: str) -> None:
    words = f'connection to server at "db" failed: FATAL:  the database system is {state}'
    outcome = postgres_failure(psycopg.OperationalError(words), None, connected=False)
    assert outcome.error is not None
    assert (outcome.helpers["pg"]["sqlstate"], outcome.error.kind, outcome.error.retryable) == (
        "57P03",
        "connection",
        True,
    )


def test_a_role_without_rights_is_told(db: SqlDatabase, postgres: PostgresServer) -> None:
    db.run(f"CREATE ROLE reader LOGIN PASSWORD '{PASSWORD}'; CREATE TABLE public.secret (a int)")
    try:
        error = postgres_at(postgres.dsn(user="reader")).error("SELECT * FROM public.secret")
        assert (error.kind, error.as_value()["sqlstate"]) == ("permission", "42501")
    finally:
        db.run("DROP TABLE public.secret; DROP ROLE reader")


def test_a_credential_names_the_server_in_any_spelling(postgres: PostgresServer) -> None:
    host = str(postgres.folder)
    for auth in (
        {"kind": "postgres_credential", "host": host, "port": 5432, "user": "postgres", "password": PASSWORD},
        {
            "db_host": host,
            "db_port": "5432",
            "db_user": "postgres",
            "db_password": PASSWORD,
            "db_name": "postgres",
        },
        {
            "hostname": host,
            "username": "postgres",
            "password": PASSWORD,
            "database": "postgres",
            "sslmode": "prefer",
        },
        {"dsn": postgres.dsn()},
        {"url": postgres.dsn()},
        {"kind": "env", "value": postgres.dsn()},
    ):
        rows = SqlDatabase(PostgresTool, postgres.folder, auth=auth).rows("SELECT current_user::text AS name")
        assert rows == [{"name": "postgres"}]


@pytest.mark.parametrize(
    ("target", "kind", "message"),
    [
        ({"auth": "warehouse"}, "credential", "the credential `warehouse` is not known here"),
        ({"auth": {"user": "a"}}, "credential", "the credential has no `host`, and no `dsn` or `url` either"),
        ({"auth": {"host": "a", "pasword": "x"}}, "credential", "`pasword` in the credential means nothing"),
        ({"auth": {"host": "a", "db_host": "b"}}, "credential", "two values for `host`"),
        (
            {"auth": {"url": "https://x"}},
            "credential",
            "`url` of the credential is no PostgreSQL connection string",
        ),
        ({"dsn": "postgresql://h?x=hunter2"}, "input", "`dsn` is no connection string"),
        ({}, "input", "`auth` or `dsn` is missing"),
    ],
)
def test_a_target_that_is_none_is_refused_without_its_secrets(
    postgres: PostgresServer, target: dict[str, Any], kind: str, message: str
) -> None:
    error = SqlDatabase(PostgresTool, postgres.folder, **target).error("SELECT 1")
    assert error.kind == kind
    assert message in error.message
    assert "hunter2" not in error.message


def asleep(dsn: str, seconds: int) -> bool:
    """Whether a query that sleeps so long runs on the server."""
    with psycopg.connect(dsn) as connection:
        row = connection.execute(SLEEPING, [f"%pg_sleep({seconds})%"]).fetchone()
        return row is not None and row[0] > 0


def test_a_task_that_takes_too_long_is_stopped_on_the_server(db: SqlDatabase, dsn: str) -> None:
    call = db.call(command="SELECT 1;\nSELECT pg_sleep(1001)", timeout=0.2)
    late, after = db.outcomes(call, db.call(query="SELECT 1 AS a"))
    assert late.error is not None
    assert (late.error.kind, late.error.retryable) == ("timeout", True)
    assert late.error.message == "statement 2 of 2, line 2: not done within 0.2 s"
    assert late.helpers["pg"]["sqlstate"] == "57014"
    assert after.result["rows"] == [{"a": 1}]
    assert not asleep(dsn, 1001)


def test_a_connection_is_used_again_after_a_timeout(db: SqlDatabase) -> None:
    spec = {"pool": {"max": 1}}
    query = "SELECT pg_backend_pid() AS pid"
    before, late, after = db.outcomes(
        db.call(query=query, spec=spec),
        db.call(query="SELECT pg_sleep(1002)", spec=spec, timeout=0.1),
        db.call(query=query, spec=spec),
    )
    assert late.error is not None
    assert before.result["rows"] == after.result["rows"]


def cancelled(dsn: str, run: Callable[[PostgresTool], Awaitable[Outcome]], seconds: int) -> None:
    """Cancels the run when the server sleeps in it."""

    async def run_and_cancel() -> None:
        tool = PostgresTool()
        task = asyncio.ensure_future(run(tool))
        try:
            while not await asyncio.to_thread(asleep, dsn, seconds):
                assert not task.done()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        finally:
            await tool.close()

    asyncio.run(run_and_cancel())
    assert not asleep(dsn, seconds)


def test_cancelling_a_task_cancels_its_query(db: SqlDatabase, dsn: str) -> None:
    cancelled(dsn, lambda tool: tool.run(db.call(query="SELECT pg_sleep(1003)")), 1003)


def test_cancelling_a_bulk_run_cancels_it(db: SqlDatabase, dsn: str) -> None:
    rows = [{"a": n} for n in range(10)]
    command = "SELECT pg_sleep(1004), :a::int"
    cancelled(dsn, lambda tool: tool.run(db.call(rows=rows, command=command, spec={"fetch": "none"})), 1004)


def test_connections_that_the_server_closed_are_replaced(db: SqlDatabase, dsn: str) -> None:
    async def run_twice() -> tuple[Any, Any]:
        tool = PostgresTool()
        call = db.call(query="SELECT pg_backend_pid() AS pid")
        try:
            first = (await tool.run(call)).result["rows"][0]["pid"]
            with psycopg.connect(dsn, autocommit=True) as connection:
                connection.execute("SELECT pg_terminate_backend(%s, 5000)", [first])
            return first, await tool.run(call)
        finally:
            await tool.close()

    first, second = asyncio.run(run_twice())
    assert second.error is None
    assert second.result["rows"][0]["pid"] != first


def test_a_wait_for_a_free_connection_ends(db: SqlDatabase) -> None:
    async def run_both() -> list[Outcome]:
        tool = PostgresTool()
        busy = db.call(query="SELECT pg_sleep(1005)", spec={"pool": {"max": 1, "timeout": 0.05}}, timeout=0.5)
        try:
            return list(await asyncio.gather(tool.run(busy), tool.run(busy)))
        finally:
            await tool.close()

    _, second = asyncio.run(run_both())
    assert second.error is not None
    assert (second.error.kind, second.error.retryable) == ("timeout", True)
    assert second.error.message == "all 1 connections were busy for 0.05 s: `spec.pool.max` allows more"


@pytest.mark.parametrize("pool", [{"min": 2, "max": 1}, {"max": 0}, {"size": 1}])
def test_a_pool_that_cannot_be_is_refused(db: SqlDatabase, pool: dict[str, int]) -> None:
    assert db.error("SELECT 1", spec={"pool": pool}).kind == "input"


def test_a_worker_pool_is_no_connection_pool(db: SqlDatabase) -> None:
    assert db.rows("SELECT 1 AS a", spec={"pool": "default"}) == [{"a": 1}]


def test_nothing_runs_after_the_end(db: SqlDatabase, dsn: str) -> None:
    async def run_and_close() -> list[Outcome]:
        tool = PostgresTool()
        running = asyncio.ensure_future(tool.run(db.call(query="SELECT pg_sleep(1006)")))
        while not await asyncio.to_thread(asleep, dsn, 1006):
            assert not running.done()
        await tool.close()
        await tool.close()
        return [await running, await tool.run(db.call(query="SELECT 1"))]

    assert [outcome.error.kind for outcome in asyncio.run(run_and_close()) if outcome.error] == [
        "cancelled",
        "cancelled",
    ]
    assert not asleep(dsn, 1006)
