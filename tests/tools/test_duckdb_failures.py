"""The DuckDB tool when something goes wrong."""

import asyncio
import subprocess
import sys
import time
from pathlib import Path

import duckdb
import pytest

from tests.tools.duckdb_calls import DuckdbCalls, with_duckdb

ENDLESS = "select count(*) from range(1000000000000)"


def test_an_error_tells_its_line_in_the_sql_and_its_statement(tmp_path: Path) -> None:
    async def work(calls: DuckdbCalls) -> None:
        await calls.result("create table t(a int primary key)")
        outcome = await calls.outcome(["select 1", "select\n1;\n\nselect a,\n  nope\nfrom t"])
        assert outcome.error is not None
        assert (outcome.error.kind, outcome.error.retryable) == ("sql", False)
        assert outcome.error.message.startswith('Binder Error: Referenced column "nope" not found')
        assert "\nLINE 5:   nope\n" in outcome.error.message
        about = {"type": "Binder", "statement": 2, "line": 5}
        assert outcome.error.details == about
        assert outcome.helpers["duckdb"] == {**about, "message": outcome.error.message}

    with_duckdb(tmp_path, work)


@pytest.mark.parametrize(
    ("query", "kind", "beginning"),
    [
        ("selec 1", "sql", 'Parser Error: syntax error at or near "selec"'),
        ("from nowhere", "sql", "Catalog Error: Table with name nowhere does not exist!"),
        ("select 'x'::int", "sql", "Conversion Error: Could not convert string 'x' to INT32"),
        ("from 'nowhere.csv'", "not_found", "IO Error: No files found that match the pattern"),
        ("copy (select 1) to 'nowhere/x.csv'", "not_found", "IO Error: Cannot open file"),
        ("attach 'nowhere.db' (read_only)", "not_found", "IO Error: Cannot open database"),
        ("create table t(a int primary key); insert into t values (1), (1)", "sql", "Constraint Error:"),
    ],
)
def test_errors_of_duckdb_have_a_kind(tmp_path: Path, query: str, kind: str, beginning: str) -> None:
    async def work(calls: DuckdbCalls) -> None:
        actual, message = await calls.error(query)
        assert (actual, message[: len(beginning)]) == (kind, beginning)

    with_duckdb(tmp_path, work)


@pytest.mark.parametrize(
    "query",
    [
        "load no_such_extension",
        "from 's3://bucket/x.parquet'",
        "attach 'x.db' as x (type sqlite)",
        "attach 'ducklake:lake.ducklake' as lake",
        "attach 'lake.ducklake' as lake (type ducklake)",
        "from read_xlsx('x.xlsx')",
        "copy (select 1) to 'x.xlsx'",
    ],
)
def test_an_extension_that_is_not_installed_is_named_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, query: str
) -> None:
    async def work(calls: DuckdbCalls) -> None:
        await calls.result(f"set home_directory = '{tmp_path}'")
        kind, message = await calls.error(query)
        assert kind == "not_found"
        assert message.endswith(
            "install it on the worker's machine, with `INSTALL` in DuckDB, while that is online"
        )

    with_duckdb(tmp_path, work)


def test_a_database_that_cannot_be_opened_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "other.db").write_text("no database " * 1_000)

    async def work(calls: DuckdbCalls) -> None:
        kind, message = await calls.error("select 1", database="nowhere/x.db")
        assert (kind, message[:26]) == ("not_found", "IO Error: Cannot open file")
        kind, message = await calls.error("select 1", database="other.db")
        assert (kind, "not a valid DuckDB database file" in message) == ("sql", True)

    with_duckdb(tmp_path, work)


def test_an_error_in_the_middle_of_a_large_result_is_that_of_the_statement(tmp_path: Path) -> None:
    async def work(calls: DuckdbCalls) -> None:
        late = "select case when range = 60000 then error('late') else range end as n from range(100000)"
        assert await calls.error(late) == ("sql", "Invalid Input Error: late")
        query = "select range, repeat('x', 1000) as pad from range(1000000) order by hash(range)"
        kind, _ = await calls.error(query, spec={"memory": "30MB"})
        assert kind == "limit"

    with_duckdb(tmp_path, work)


def test_a_file_that_another_process_has_can_be_tried_again(tmp_path: Path) -> None:
    code = (
        "import duckdb, sys\nheld = duckdb.connect(sys.argv[1])\nprint('open', flush=True)\nsys.stdin.read()"
    )
    holder = [sys.executable, "-c", code, str(tmp_path / "x.db")]

    async def work(calls: DuckdbCalls) -> None:
        outcome = await calls.outcome("select 1", database="x.db")
        assert outcome.error is not None
        assert (outcome.error.kind, outcome.error.retryable) == ("connection", True)

    with subprocess.Popen(
        holder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as other:
        assert other.stdin is not None
        assert other.stdout is not None
        assert other.stdout.readline() == b"open\n"
        with_duckdb(tmp_path, work)
        other.stdin.close()


def test_a_write_conflict_can_be_tried_again(tmp_path: Path) -> None:
    async def work(calls: DuckdbCalls) -> None:
        await calls.result("create table t as select 1 as a", database="x.db")
        slow = calls.outcome("update t set a = 2; select count(*) from range(300000000)", database="x.db")
        first = asyncio.ensure_future(slow)
        outcome = None
        while outcome is None or outcome.error is None:  # until the first has made its change
            assert not first.done()
            outcome = await calls.outcome("update t set a = a", database="x.db")
        assert (outcome.error.kind, outcome.error.retryable) == ("sql", True)
        assert (await first).error is None

    with_duckdb(tmp_path, work)


def test_a_transaction_that_cannot_hold_a_statement_says_how_to_go_without(tmp_path: Path) -> None:
    async def work(calls: DuckdbCalls) -> None:
        both = "attach 'a.db' as a; attach 'b.db' as b; create table a.t(x int); create table b.t(x int)"
        _, message = await calls.error(both)
        assert message.endswith("`spec: { transaction: false }` runs each statement by itself")
        assert (await calls.outcome(both, spec={"transaction": False})).error is None

    with_duckdb(tmp_path, work)


def test_a_statement_is_interrupted_at_its_timeout(tmp_path: Path) -> None:
    async def work(calls: DuckdbCalls) -> None:
        began = time.monotonic()
        outcome = await calls.outcome(f"create table t as select 1; {ENDLESS}", timeout=0.1)
        assert time.monotonic() - began < 60
        assert outcome.error is not None
        assert (outcome.error.kind, outcome.error.retryable) == ("timeout", True)
        assert outcome.error.message == "the SQL was not done within 0.1 s"
        kind, _ = await calls.error("from t")
        assert kind == "sql"

    with_duckdb(tmp_path, work)


def test_a_large_result_is_interrupted_while_it_is_written(tmp_path: Path) -> None:
    async def work(calls: DuckdbCalls) -> None:
        outcome = await calls.outcome("select range as a from range(100000000000)", timeout=0.3)
        assert outcome.error is not None
        assert outcome.error.kind == "timeout"

    with_duckdb(tmp_path, work)
    assert list((tmp_path / ".results").rglob(".draft*")) == []


def test_cancelling_stops_the_work(tmp_path: Path) -> None:
    async def work(calls: DuckdbCalls) -> None:
        await calls.rows("select 1", database="x.db")
        task = asyncio.ensure_future(calls.outcome(ENDLESS, database="x.db"))
        await calls.rows("select 1")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        # Nobody has it open any more, or it could not be opened otherwise.
        duckdb.connect(str(tmp_path / "x.db"), read_only=True).close()
        assert await calls.rows("select 1 as one") == [{"one": 1}]

    with_duckdb(tmp_path, work)


@pytest.mark.parametrize(
    ("auth", "kind", "message"),
    [
        ({"kind": "postgres_credential", "host": "db"}, "not_found", "postgres"),
        ({"type": "s3", "access_key_id": "a", "secret_access_key": "b"}, "not_found", "httpfs"),
        ({"type": "sqlite", "database": "x.db"}, "not_found", "sqlite"),
        ({"type": "postgres", "dsn": "postgresql://db/shop"}, "not_found", "postgres"),
        ({"type": "postgres", "user": "shop"}, "credential", "the `postgres` credential names no server"),
        ({"type": "duckdb"}, "credential", "the `duckdb` credential names no file"),
        ({"type": "bearer", "token": "x"}, "credential", "a credential of kind `bearer` cannot be attached"),
        ({"host": "db"}, "credential", "the credential has no `type`"),
    ],
)
def test_a_credential_that_cannot_be_attached_is_an_error(
    tmp_path: Path, auth: dict[str, str], kind: str, message: str
) -> None:
    async def work(calls: DuckdbCalls) -> None:
        await calls.result(f"set home_directory = '{tmp_path}'")
        actual, text = await calls.error("select 1", auth=auth)
        assert (actual, message in text) == (kind, True)

    with_duckdb(tmp_path, work)


def test_the_file_of_a_credential_is_attached_under_its_alias(tmp_path: Path) -> None:
    async def work(calls: DuckdbCalls) -> None:
        await calls.result("create table t as select 1 as a", database="shop.db")
        auth = {"type": "duckdb", "database": "shop.db", "alias": "shop"}
        for _ in range(2):
            assert await calls.rows("from shop.t", auth=auth) == [{"a": 1}]

    with_duckdb(tmp_path, work)


def test_another_credential_of_one_alias_is_another_database(tmp_path: Path) -> None:
    async def work(calls: DuckdbCalls) -> None:
        shops = [{"type": "duckdb", "database": f"{name}.db"} for name in ("bern", "oslo")]
        for shop in shops:
            await calls.result(
                "create table t as select $name as name",
                params={"name": shop["database"]},
                database=shop["database"],
            )
        for shop in (*shops, *shops):
            assert await calls.rows("from duckdb.t", auth=shop) == [{"name": shop["database"]}]

    with_duckdb(tmp_path, work)


def test_an_alias_that_another_task_uses_is_not_replaced(tmp_path: Path) -> None:
    async def work(calls: DuckdbCalls) -> None:
        shops = [{"type": "duckdb", "database": f"{name}.db"} for name in ("bern", "oslo")]
        long = "select count(*) from range(1000000000000)"
        at_work = asyncio.create_task(calls.outcome(long, auth=shops[0]))
        while (await calls.rows("from duckdb_databases() where database_name = 'duckdb'")) == []:
            pass
        outcome = await calls.outcome("select 1", auth=shops[1])
        assert outcome.error is not None
        assert (outcome.error.kind, outcome.error.message) == (
            "credential",
            "`duckdb` is another database for a task that is at work: give one of the credentials an `alias`",
        )
        assert await calls.rows("select 1 as a", auth={**shops[1], "alias": "oslo"}) == [{"a": 1}]
        at_work.cancel()
        await asyncio.wait([at_work])

    with_duckdb(tmp_path, work)


def test_a_name_that_is_taken_is_told(tmp_path: Path) -> None:
    async def work(calls: DuckdbCalls) -> None:
        await calls.result("attach ':memory:' as shop")
        kind, message = await calls.error(
            "select 1", auth={"type": "duckdb", "database": "x.db", "alias": "shop"}
        )
        assert (kind, 'database with name "shop" already exists' in message) == ("sql", True)

    with_duckdb(tmp_path, work)


def test_a_file_that_is_attached_elsewhere_can_be_tried_again(tmp_path: Path) -> None:
    async def work(calls: DuckdbCalls) -> None:
        await calls.result("attach 'shop.db' as shop", execution="other")
        outcome = await calls.outcome("select 1", database="shop.db")
        assert outcome.error is not None
        assert (outcome.error.kind, outcome.error.retryable) == ("connection", True)
        calls.tool.forget("other")
        assert await calls.rows("select 1 as a", database="shop.db") == [{"a": 1}]

    with_duckdb(tmp_path, work)


def test_text_that_is_none_is_an_error_of_the_inputs(tmp_path: Path) -> None:
    async def work(calls: DuckdbCalls) -> None:
        kind, message = await calls.error("from x", tables={"x": [{"a": "\ud800"}]})
        assert (kind, message[:31]) == ("input", "a value that DuckDB cannot hold")

    with_duckdb(tmp_path, work)


def test_a_knob_of_the_wrong_type_is_an_error_of_the_inputs(tmp_path: Path) -> None:
    async def work(calls: DuckdbCalls) -> None:
        kind, message = await calls.error("select 1", spec={"threads": "many"})
        assert (kind, "threads" in message) == ("input", True)
        kind, _ = await calls.error("select 1", tables=7)
        assert kind == "input"
        kind, message = await calls.error(rows={"a": 1}, into="t")
        assert (kind, message[:20]) == ("input", "`rows` is a mapping:")

    with_duckdb(tmp_path, work)
