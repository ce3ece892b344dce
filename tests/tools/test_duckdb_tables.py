"""Results of other tasks as tables of DuckDB, and the files beside a playbook."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from noetl.model.reference import ARROW_MEDIA_TYPE, StoredReference, encode_value
from noetl.tools.duckdb.text import names_in, resolve_file_paths
from tests.tools.duckdb_calls import DuckdbCalls, with_duckdb

ORDERS = [{"id": 1, "amount": 10}, {"id": 2, "amount": 32.5, "note": "gift"}]


async def store_object(calls: DuckdbCalls, data: bytes, media_type: str) -> StoredReference:
    async with calls.objects().draft() as draft:
        draft.path.write_bytes(data)
        return await draft.keep(media_type)


@pytest.mark.parametrize("input_name", ["tables", "labels"])
def test_values_are_tables(tmp_path: Path, input_name: str) -> None:
    async def work(calls: DuckdbCalls) -> None:
        async def rows(value: Any) -> Any:
            return await calls.rows("from t", **{input_name: {"t": value}})

        assert await rows(ORDERS) == [
            {"id": 1, "amount": 10.0, "note": None},
            {"id": 2, "amount": 32.5, "note": "gift"},
        ]
        assert await rows({"rows": ORDERS[:1], "row_count": 1, "columns": ["id", "amount"]}) == ORDERS[:1]
        assert await rows({"status": 200, "data": ORDERS[:1]}) == ORDERS[:1]
        assert await rows({"a": 1, "b": [1, 2]}) == [{"a": 1, "b": [1, 2]}]
        assert await rows(["x", "y"]) == [{"value": "x"}, {"value": "y"}]
        assert await rows(7) == [{"value": 7}]
        assert await rows([]) == []
        assert (await calls.result("from t", **{input_name: {"t": {"rows": [], "columns": ["a", "b"]}}}))[
            "columns"
        ] == [
            "a",
            "b",
        ]

    with_duckdb(tmp_path, work)


def test_types_of_rows_are_kept_and_mixed_ones_are_text(tmp_path: Path) -> None:
    async def work(calls: DuckdbCalls) -> None:
        rows = [
            {"text": "007", "wide": 2**70, "mixed": 1, "nested": {"a": [1]}, "flag": True},
            {"text": "2026-03-01", "wide": 1, "mixed": "x", "nested": None, "flag": None},
        ]
        query = "select typeof(columns(*)) from t limit 1"
        assert await calls.rows(query, tables={"t": rows}) == [
            {
                "text": "VARCHAR",
                "wide": "DECIMAL(22,0)",
                "mixed": "VARCHAR",
                "nested": "STRUCT(a BIGINT[])",
                "flag": "BOOLEAN",
            }
        ]
        assert await calls.rows("select wide::text as wide, mixed from t limit 1", tables={"t": rows}) == [
            {"wide": str(2**70), "mixed": "1"}
        ]

    with_duckdb(tmp_path, work)


@pytest.mark.parametrize("input_name", ["tables", "labels"])
def test_stored_tables_are_read_from_their_files_any_number_of_times(tmp_path: Path, input_name: str) -> None:
    async def work(calls: DuckdbCalls) -> None:
        big = await calls.result("select range as id, range % 7 as day from range(30000)")
        assert isinstance(big["rows"], StoredReference)
        for value in (big, big["rows"]):
            query = "select count(*) as n from t as a join t as b using (id); select sum(day) as s from t where id < 8"
            result = await calls.result(query, **{input_name: {"t": value}})
            assert (result["command_0"]["rows"], result["rows"]) == ([{"n": 30_000}], [{"s": 21}])

    with_duckdb(tmp_path, work)


@pytest.mark.parametrize("input_name", ["tables", "labels"])
def test_stored_files_are_read_by_their_media_type(tmp_path: Path, input_name: str) -> None:
    async def work(calls: DuckdbCalls) -> None:
        sink = pa.BufferOutputStream()
        pyarrow.parquet.write_table(pa.table({"a": [1, 2]}), sink)
        files = [
            await store_object(calls, sink.getvalue().to_pybytes(), "application/vnd.apache.parquet"),
            await store_object(calls, b"a\n1\n2\n", "text/csv; charset=utf-8"),
            await store_object(calls, b'{"a": 1}\n{"a": 2}\n', "application/x-ndjson"),
            await store_object(calls, b'[{"a": 1}, {"a": 2}]', "application/json"),
            await store_object(calls, b'{"rows": [{"a": 1}, {"a": 2}]}', "application/json"),
        ]
        for file in files:
            assert await calls.rows("from t order by a", **{input_name: {"t": file}}) == [{"a": 1}, {"a": 2}]
        image = await store_object(calls, b"...", "image/png")
        _, message = await calls.error("from t", **{input_name: {"t": image}})
        assert message.endswith("`t` is not a table here: it is a file of type `image/png`, and no table")
        damaged = await store_object(calls, b"no stream", ARROW_MEDIA_TYPE)
        kind, _ = await calls.error("from t", **{input_name: {"t": damaged}})
        assert kind == "sql"

    with_duckdb(tmp_path, work)


def test_a_stored_result_may_hold_the_reference_to_its_rows(tmp_path: Path) -> None:
    async def work(calls: DuckdbCalls) -> None:
        big = await calls.result("select range as id from range(30000)")
        stored = await store_object(calls, encode_value({**big, "$$noetl": "mine"}), "application/json")
        assert await calls.rows("select count(*) as n from t", labels={"t": stored}) == [{"n": 30_000}]

    with_duckdb(tmp_path, work)


def test_a_table_of_the_database_hides_a_label_and_not_a_table_of_the_task(tmp_path: Path) -> None:
    async def work(calls: DuckdbCalls) -> None:
        await calls.result("create table orders as select 'real' as which")
        orders = [{"which": "given"}]
        assert await calls.rows("from orders", labels={"orders": orders}) == [{"which": "real"}]
        assert await calls.rows("from orders", tables={"orders": orders}) == [{"which": "given"}]
        assert await calls.rows("from orders") == [{"which": "real"}]
        made = "create table made as from given; from made"
        assert await calls.rows(made, labels={"given": orders, "made": [{"which": "label"}]}) == orders

    with_duckdb(tmp_path, work)


def test_nothing_of_the_tool_itself_can_be_queried(tmp_path: Path) -> None:
    async def work(calls: DuckdbCalls) -> None:
        for name in ("self", "statement", "duckdb", "values", "cursor"):
            kind, message = await calls.error(f'from "{name}"')
            assert (kind, "does not exist" in message) == ("sql", True)

    with_duckdb(tmp_path, work)


def test_a_label_that_is_a_word_of_sql_must_be_quoted(tmp_path: Path) -> None:
    async def work(calls: DuckdbCalls) -> None:
        labels = {"fetch": ORDERS[:1]}
        _, message = await calls.error("select * from fetch", labels=labels)
        assert message.endswith('`fetch` is a word of SQL: write "fetch" for the result of that name')
        assert await calls.rows('select * from "fetch"', labels=labels) == ORDERS[:1]

    with_duckdb(tmp_path, work)


def test_files_are_read_and_written_beside_the_playbook(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, elsewhere = tmp_path / "it's here", tmp_path / "elsewhere"
    for base in (folder, elsewhere):
        (base / "data").mkdir(parents=True)
        (base / "data" / "in.csv").write_text(f"a\n{base.name}\n")
    monkeypatch.chdir(elsewhere)

    async def work(calls: DuckdbCalls) -> None:
        here = [{"a": "it's here"}]
        assert await calls.rows("from 'data/in.csv'") == here
        assert await calls.rows("from read_csv(['data/*.csv'], header = true)") == here
        for name in ("out.csv", "out.json", "out.parquet"):
            assert (await calls.result(f"copy (from 'data/in.csv') to '{name}'"))["row_count"] == 1
            assert await calls.rows(f"from './{name}'") == here
        (folder / "only.csv").write_text("a\nby name\n")
        assert await calls.rows("from read_csv($file)", params={"file": "only.csv"}) == [{"a": "by name"}]
        await calls.result("attach 'more.db' as more; create table more.t as select 1 as a")
        assert await calls.rows("from more.t") == [{"a": 1}]

    with_duckdb(folder, work)
    assert sorted(path.name for path in elsewhere.rglob("*")) == ["data", "in.csv"]
    assert {"out.csv", "out.json", "out.parquet", "more.db"} <= {path.name for path in folder.iterdir()}


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("from 'a.csv' join 'b.csv' using (x)", "from '/p/a.csv' join '/p/b.csv' using (x)"),
        ("from read_csv('a', sep = 'x')", "from read_csv('/p/a', sep = 'x')"),
        ("from read_parquet(['a', 'b/*'], x = 'y')", "from read_parquet(['/p/a', '/p/b/*'], x = 'y')"),
        ("copy t to 'a' (format csv, sep 'x'); copy t from 'b'", "copy t to '/p/a' (format csv, sep 'x'); copy t from '/p/b'"),
        ("attach if not exists 'a.db' as a", "attach if not exists '/p/a.db' as a"),
        ("export database 'dump'", "export database '/p/dump'"),
    ],
)  # fmt: skip
def test_relative_paths_are_found_in_sql(sql: str, expected: str) -> None:
    assert resolve_file_paths(sql, Path("/p")) == expected


@pytest.mark.parametrize(
    "sql",
    [
        "from '/abs/a.csv' join 's3://bucket/b.parquet' using (x)",
        "set memory_limit to '1GB'",
        "select extract(year from '2026-03-01'), trim('x' from 'xax'), a is distinct from 'b'",
        "select 'from', \"from 'a'\", $$ from 'a' $$, e'\\' from ' -- from 'a'\n /* from 'a' */ from t",
        "attach ':memory:' as m; attach 'dbname=shop host=db' as pg (type postgres)",
        "select list_value('a', 'b'), coalesce('x', 'y') where a in ('b')",
        "select 'open",
    ],
)
def test_other_strings_in_sql_stay_as_they_are(sql: str) -> None:
    assert resolve_file_paths(sql, Path("/p")) == sql


def test_names_in_sql_are_words_and_quoted_names() -> None:
    sql = "select a.\"the b\", 'c' from D -- e\n where $f = $$ g $$ /* h */"
    assert names_in(sql) == {"select", "a", "the b", "from", "D", "where"}
