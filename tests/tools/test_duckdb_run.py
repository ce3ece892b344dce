"""The DuckDB tool: statements, values, results, databases."""

import asyncio
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from noetl.model.reference import ARROW_MEDIA_TYPE, StoredReference
from tests.tools.duckdb_calls import DuckdbCalls, with_duckdb


def test_a_query_gives_rows_columns_and_a_count(tmp_path: Path) -> None:
    async def work(calls: DuckdbCalls) -> None:
        expected = {"rows": [{"a": 1, "b": "x"}, {"a": 2, "b": None}], "row_count": 2, "columns": ["a", "b"]}
        result = await calls.result("from (values (1, 'x'), (2, null)) as t(a, b)")
        assert result == {**expected, "statements": 1, "command_0": expected}

    with_duckdb(tmp_path, work)


def test_every_statement_has_its_result_and_the_last_rows_are_those_of_the_task(tmp_path: Path) -> None:
    async def work(calls: DuckdbCalls) -> None:
        result = await calls.result(
            ["create table t(a int); insert into t values (1), (2)", "from t", "delete from t where a = 1"]
        )
        assert result["statements"] == 4
        assert result["rows"] == [{"a": 1}, {"a": 2}]
        assert [result[f"command_{n}"]["row_count"] for n in range(4)] == [0, 2, 2, 1]
        assert await calls.rows("update t set a = 7 returning a") == [{"a": 7}]

    with_duckdb(tmp_path, work)


def test_values_are_bound_by_name_by_number_and_in_turn(tmp_path: Path) -> None:
    async def work(calls: DuckdbCalls) -> None:
        assert await calls.rows("select $a + $b as n", params={"a": 1, "b": 2}) == [{"n": 3}]
        assert await calls.rows("select $2 - $1 as n", params=[1, 5]) == [{"n": 4}]
        assert await calls.rows("select $a as n", params={"a": 1, "unused": 2}) == [{"n": 1}]
        result = await calls.result("select ? as a; select ? as b, ? as c", params=["x'; --", 2, [1, 2]])
        assert result["command_0"]["rows"] == [{"a": "x'; --"}]
        assert result["rows"] == [{"b": 2, "c": [1, 2]}]

    with_duckdb(tmp_path, work)


@pytest.mark.parametrize(
    ("query", "params", "message"),
    [
        ("select $a", {"b": 1}, "nothing can be bound to `$a`: no value has this name"),
        ("select $a", [1], "nothing can be bound to `$a`: the values are a list"),
        ("select ?, ?", [1], "the SQL asks for value 2, and there are 1"),
        ("select $1", {"a": 1}, "the SQL asks for value 1, and the values have names"),
        (
            "select %s",
            [1],
            "no statement asks for value 1 of `params`: use `?` or `$1` for a list, `$name` for a mapping",
        ),
        (" -- nothing", None, "there is no SQL to run: the text is empty"),
    ],
)
def test_values_that_do_not_fit_are_an_error_of_the_inputs(
    tmp_path: Path, query: str, params: Any, message: str
) -> None:
    async def work(calls: DuckdbCalls) -> None:
        assert await calls.error(query, params=params) == ("input", message)

    with_duckdb(tmp_path, work)


def test_values_of_all_types_have_a_form_in_json(tmp_path: Path) -> None:
    query = """
        select 1::hugeint as huge, 1.10::decimal(5, 2) as price, 12345678901234567890.12::decimal(38, 2) as wide,
          date '2026-03-01' as day, timestamp '2026-03-01 10:00:00.5' as moment,
          timestamptz '2026-03-01 10:00:00+02' as instant, time '10:00' as hour,
          interval '1 month 2 days 1.5 seconds' as span, [1, null] as list, {'a': date '2026-03-01'} as struct,
          map {'k': 1.50} as map, map {1: 'x'} as numbered, 'ab'::blob as blob,
          '01980000-0000-7000-8000-000000000000'::uuid as id, '{"a": 1}'::json as json, 'x'::enum('x', 'y') as enum,
          timestamp_ns '2026-03-01 00:00:00.123456789' as fine, true as yes, null as nothing
    """

    async def work(calls: DuckdbCalls) -> None:
        (row,) = await calls.rows(query)
        assert row == {
            "huge": 1,
            "price": 1.1,
            "wide": "12345678901234567890.12",
            "day": "2026-03-01",
            "moment": "2026-03-01T10:00:00.500000",
            "instant": "2026-03-01T08:00:00+00:00",
            "hour": "10:00:00",
            "span": "P1M2DT1.5S",
            "list": [1, None],
            "struct": {"a": "2026-03-01"},
            "map": {"k": 1.5},
            "numbered": {"1": "x"},
            "blob": "YWI=",
            "id": "01980000-0000-7000-8000-000000000000",
            "json": '{"a": 1}',
            "enum": "x",
            "fine": "2026-03-01T00:00:00.123456",
            "yes": True,
            "nothing": None,
        }

    with_duckdb(tmp_path, work)


def test_what_is_no_number_or_time_is_null_with_a_warning(tmp_path: Path) -> None:
    async def work(calls: DuckdbCalls) -> None:
        query = "select unnest(['nan', 'inf', null, '1']::double[]) as n, 'infinity'::date as d"
        outcome = await calls.outcome(query)
        assert [row["n"] for row in outcome.result["rows"]] == [None, None, None, 1.0]
        assert outcome.meta["warnings"] == [
            "column `n`: 2 values are null, for there is no form for them",
            "column `d`: 4 values are null, for there is no form for them",
        ]

    with_duckdb(tmp_path, work)


def test_columns_of_one_name_are_told_apart(tmp_path: Path) -> None:
    async def work(calls: DuckdbCalls) -> None:
        assert await calls.rows("select 1 as a, 2 as a") == [{"a": 1, "a_2": 2}]

    with_duckdb(tmp_path, work)


def test_many_rows_become_an_arrow_object_in_their_order(tmp_path: Path) -> None:
    async def work(calls: DuckdbCalls) -> None:
        result = await calls.result("select range as id, 'row ' || range as name from range(50000)")
        stored = result["rows"]
        assert isinstance(stored, StoredReference)
        assert result["row_count"] == 50_000
        assert {key: stored[key] for key in ("media_type", "type", "length", "columns")} == {
            "media_type": ARROW_MEDIA_TYPE,
            "type": "list",
            "length": 50_000,
            "columns": ["id", "name"],
        }
        assert stored["preview"].startswith('[{"id":0,"name":"row 0"}')
        async with calls.objects().local(stored) as path, asyncio.timeout(60):
            table = pa.ipc.open_stream(path.read_bytes()).read_all()
        assert table.column("id").to_pylist() == list(range(50_000))
        small = await calls.rows("select 1 as a", spec={"result": {"inline_max_bytes": 0}})
        assert small["length"] == 1

    with_duckdb(tmp_path, work)


@pytest.mark.parametrize(("fetch", "rows"), [("one", [{"range": 0}]), ("none", [])])
def test_fetch_says_how_many_rows_are_given_and_all_are_counted(
    tmp_path: Path, fetch: str, rows: list[Any]
) -> None:
    async def work(calls: DuckdbCalls) -> None:
        result = await calls.result("from range(20000); create table t(a int)", spec={"fetch": fetch})
        assert (result["rows"], result["row_count"], result["columns"]) == (rows, 20_000, ["range"])
        stored = await calls.result("select repeat('x', 100000) from range(3)", spec={"fetch": fetch})
        assert stored["row_count"] == 3
        assert isinstance(stored["rows"], StoredReference) == (fetch == "one")

    with_duckdb(tmp_path, work)


def test_types_that_arrow_does_not_have_are_text(tmp_path: Path) -> None:
    query = """
        select 340282366920938463463374607431768211455::uhugeint as wide, 12345678901234567890123::bignum as big,
          '101'::bit as bits, timetz '10:00:00+02' as hour, [timetz '10:00:00+02', null] as hours, 1 as n, 2 as n
    """
    expected = {
        "wide": "340282366920938463463374607431768211455",
        "big": "12345678901234567890123",
        "bits": "101",
        "hour": "10:00:00+02",
        "hours": ["10:00:00+02", None],
        "n": 1,
        "n_2": 2,
    }

    async def work(calls: DuckdbCalls) -> None:
        assert await calls.rows(query) == [expected]
        stored = await calls.rows(query, spec={"result": {"inline_max_bytes": 0}})
        assert await calls.rows("from x", tables={"x": stored}) == [expected]

    with_duckdb(tmp_path, work)


def test_rows_are_loaded_into_a_table_by_name_or_by_place(tmp_path: Path) -> None:
    async def work(calls: DuckdbCalls) -> None:
        await calls.result("create schema s; create table s.\"the t\"(a int, b text default '-', c date)")
        target = 's."the t"'
        loaded = await calls.result(rows=[{"b": "x", "a": 1}, {"a": 2}], into=f"{target} (a, b)")
        assert loaded["row_count"] == 2
        await calls.result(rows=[{"a": 3}], into=target)
        await calls.result(rows=[[4, "y", "2026-03-01"]], into=target)
        big = await calls.rows("select range::int as a from range(10, 20000)")
        assert isinstance(big, StoredReference)
        await calls.result(rows=big, into=target)
        await calls.result(rows=[], into=target)
        assert await calls.rows(f"from {target} where a < 10 order by a") == [
            {"a": 1, "b": "x", "c": None},
            {"a": 2, "b": None, "c": None},
            {"a": 3, "b": "-", "c": None},
            {"a": 4, "b": "y", "c": "2026-03-01"},
        ]
        assert (await calls.result(f"from {target}"))["row_count"] == 19_994
        kind, message = await calls.error(rows=[{"a": 1}], into="t; drop table t")
        assert (kind, message[:40]) == ("input", "`into` names no table: 't; drop table t'")
        kind, message = await calls.error(rows=[[1], [1, 2]], into=target)
        assert (kind, message) == ("input", "row 2 has 2 values for 1 columns")
        kind, message = await calls.error(rows=[[1], {"a": 1}], into=target)
        assert (kind, message) == ("input", "row 2 is a mapping, and the first is a list")
        kind, message = await calls.error(rows=[{}], into=target)
        assert (kind, message) == ("input", "the rows are mappings without keys: there is nothing to load")
        kind, message = await calls.error(rows=[{"a": 1}], into="rows")
        assert (kind, message.splitlines()[0]) == (
            "sql",
            "Catalog Error: Table with name rows does not exist!",
        )
        kind, message = await calls.error(rows=[[1, 2, 3, 4]], into=target)
        assert (kind, "has 3 columns but 4 values were supplied" in message) == ("sql", True)

    with_duckdb(tmp_path, work)


@pytest.mark.parametrize("stored", [False, True])
def test_rows_go_back_as_they_came(tmp_path: Path, stored: bool) -> None:
    columns = """a int, "B" blob, j json, iv interval, huge hugeint, n decimal(30, 10), ts timestamptz, t timetz,
        u uuid, l text[], s struct(x int, y text), d double"""
    query = r"""
        insert into t values (1, '\xDE\xAD'::blob, '{"k": [1, null]}', interval '1 month 2 days -1.5 seconds',
          170141183460469231731687303715884105727, 12345678901234567890.5, '2026-01-01 10:00:00.5+05:30', '10:00:00+02',
          '01980000-0000-7000-8000-000000000000', ['a,b', null, ''], {'x': 1, 'y': 'q'}, 1e-300),
          (2, '\x00'::blob, '{"other": {}}', null, null, 0.1, null, null, null, [], {'x': null, 'y': ''}, null);
    """

    async def work(calls: DuckdbCalls) -> None:
        await calls.result(f"create table t({columns}); create table copy({columns}); {query}")
        rows = await calls.rows("from t", spec={"result": {"inline_max_bytes": 0 if stored else 65536}})
        assert isinstance(rows, StoredReference) == stored
        assert (await calls.result(rows=rows, into="copy"))["row_count"] == 2
        assert await calls.rows("from t except from copy") == []
        if not stored:
            await calls.result(rows=[list(row.values()) for row in rows], into="copy")
            assert await calls.rows("select count(*) as n from copy") == [{"n": 4}]
            assert await calls.rows("from copy except from t") == []

    with_duckdb(tmp_path, work)


def test_mappings_stay_themselves_in_a_column_of_json(tmp_path: Path) -> None:
    async def work(calls: DuckdbCalls) -> None:
        await calls.result('create table t(n int, "Doc" json)')
        docs: list[Any] = [{"a": 1}, {"b": {}}, [1, "x"], True, '"text"', None]
        await calls.result(rows=[{"n": n, "doc": doc} for n, doc in enumerate(docs)], into="t (n, Doc)")
        documents = [row["doc"] for row in await calls.rows('select "Doc" as doc from t order by n')]
        assert documents == ['{"a":1}', '{"b":{}}', '[1,"x"]', "true", '"text"', None]
        kind, _ = await calls.error(rows=[{"doc": "text"}], into="t")
        assert kind == "sql"
        await calls.result("create table b(raw blob)")
        await calls.result(rows=[{"raw": "3q0="}, {"raw": "\\xdead"}, {"raw": None}], into="b")
        assert await calls.rows("from b") == [{"raw": "3q0="}, {"raw": "3q0="}, {"raw": None}]
        kind, message = await calls.error(rows=[{"raw": "@"}], into="b")
        assert (kind, message[:50]) == ("input", "a value for a column of type BLOB is no base64: On")

    with_duckdb(tmp_path, work)


def test_a_command_runs_once_for_each_row(tmp_path: Path) -> None:
    async def work(calls: DuckdbCalls) -> None:
        await calls.result("create table t(a int, b int)")
        result = await calls.result(
            command="insert into t values ($a, $b)", rows=[{"a": 1, "b": 2}, {"a": 3, "b": 4}]
        )
        assert result["row_count"] == 2
        await calls.result(command="insert into t values (?, ?)", rows=[[5, 6]])
        stored = await calls.rows("select 7 as a", spec={"result": {"inline_max_bytes": 0}})
        assert isinstance(stored, StoredReference)
        await calls.result(command="update t set b = $a where a = 1", rows=stored)
        assert await calls.rows("from t order by a") == [{"a": 1, "b": 7}, {"a": 3, "b": 4}, {"a": 5, "b": 6}]
        kind, message = await calls.error(
            command="insert into t values ($a, $b)", rows=[{"a": 1, "b": 2}, {"a": 1}]
        )
        assert (kind, message) == ("input", "row 2: nothing can be bound to `$b`: no value has this name")
        assert await calls.rows("select count(*) as n from t") == [{"n": 3}]

    with_duckdb(tmp_path, work)


def test_what_a_command_returns_for_each_row_is_the_result(tmp_path: Path) -> None:
    async def work(calls: DuckdbCalls) -> None:
        await calls.result("create table t(a int)")
        rows = [{"a": 1}, {"a": 2}, {"a": 3}]
        insert = "insert into t values ($a) returning a, 2 * a as twice"
        result = await calls.result(insert, rows=rows)
        assert result["rows"] == [{"a": 1, "twice": 2}, {"a": 2, "twice": 4}, {"a": 3, "twice": 6}]
        assert (result["row_count"], result["columns"]) == (3, ["a", "twice"])
        assert await calls.rows("select $a::int as b from range(2)", rows=rows[:2]) == [
            {"b": 1},
            {"b": 1},
            {"b": 2},
            {"b": 2},
        ]
        first = await calls.result("select $a as b", rows=rows, spec={"fetch": "one"})
        assert (first["rows"], first["row_count"]) == ([{"b": 1}], 3)
        many = await calls.result("select $a as b, range from range(10000)", rows=rows)
        assert isinstance(many["rows"], StoredReference)
        assert (many["row_count"], many["rows"]["length"]) == (30_000, 30_000)
        kind, message = await calls.error("insert into t values ($a) returning error('no')", rows=rows)
        assert (kind, message) == ("sql", "Invalid Input Error: no")
        assert await calls.rows("select count(*) as n from t") == [{"n": 3}]

    with_duckdb(tmp_path, work)


def test_all_statements_are_one_transaction_unless_told_otherwise(tmp_path: Path) -> None:
    async def work(calls: DuckdbCalls) -> None:
        await calls.result("create table t(a int)")
        failing = "insert into t values (1); select error('no')"
        assert await calls.error(failing) == ("sql", "Invalid Input Error: no")
        assert await calls.rows("from t") == []
        await calls.error(failing, spec={"transaction": False})
        assert await calls.rows("from t") == [{"a": 1}]
        await calls.result("begin; insert into t values (2); rollback; insert into t values (3)")
        assert await calls.rows("from t order by a") == [{"a": 1}, {"a": 3}]

    with_duckdb(tmp_path, work)


def test_an_execution_has_a_database_in_memory_until_it_ends(tmp_path: Path) -> None:
    async def work(calls: DuckdbCalls) -> None:
        await calls.result("create table t as select 1 as a", execution="one")
        assert await calls.rows("from t", execution="one") == [{"a": 1}]
        kind, _ = await calls.error("from t", execution="other")
        assert kind == "sql"
        calls.tool.forget("one")
        kind, _ = await calls.error("from t", execution="one")
        assert kind == "sql"

    with_duckdb(tmp_path, work)


def test_a_file_is_beside_the_playbook_and_shared_by_tasks_at_the_same_time(tmp_path: Path) -> None:
    async def work(calls: DuckdbCalls) -> None:
        await calls.result("create table t(a int)", database="shop.db")
        inserts = [
            calls.result("insert into t values (?)", params=[n], database="shop.db", execution=str(n))
            for n in range(8)
        ]
        await asyncio.gather(*inserts)
        assert await calls.rows("select count(*) as n from t", database="./shop.db") == [{"n": 8}]

    with_duckdb(tmp_path, work)
    assert (tmp_path / "shop.db").is_file()
    with_duckdb(tmp_path, lambda calls: calls.result("from t", database="shop.db"))


def test_an_empty_name_is_the_database_in_memory(tmp_path: Path) -> None:
    async def work(calls: DuckdbCalls) -> None:
        await calls.result("create table t as select 1 as a", database="")
        assert await calls.rows("from t", database=":memory:") == [{"a": 1}]

    with_duckdb(tmp_path, work)


def test_memory_and_threads_are_knobs_of_the_database(tmp_path: Path) -> None:
    async def work(calls: DuckdbCalls) -> None:
        settings = "select current_setting('memory_limit') as memory, current_setting('threads') as threads"
        rows = await calls.rows(settings, spec={"memory": "100MB", "threads": 1})
        assert rows == [{"memory": "95.3 MiB", "threads": 1}]
        kind, message = await calls.error("select list(range) from range(100000000)")
        assert (kind, message.partition(":")[0]) == ("limit", "Out of Memory Error")

    with_duckdb(tmp_path, work)
