"""Rows into SQLite and out of it: as values or as Arrow tables."""

import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.tools.sql_calls import SqlDatabase


def counted(columns: str) -> str:
    return f"WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT :most) SELECT {columns} FROM n"  # noqa: S608 - of the test itself


@pytest.mark.parametrize(
    ("fetch", "rows"), [("all", [{"x": 1}, {"x": 2}]), ("one", [{"x": 1}]), ("none", [])]
)
def test_fetch_says_which_rows_come_back(db: SqlDatabase, fetch: str, rows: list[Any]) -> None:
    result = db.run(counted("x"), params={"most": 2}, spec={"fetch": fetch})
    assert (result["rows"], result["row_count"]) == (rows, 2)
    db.run("CREATE TABLE t (x)")
    inputs: dict[str, Any] = {
        "rows": [{"x": 1}, {"x": 2}],
        "command": "INSERT INTO t VALUES (:x) RETURNING x",
    }
    assert db.run(**inputs, spec={"fetch": fetch})["rows"] == rows


def test_rows_are_loaded_in_bulk(db: SqlDatabase, tmp_path: Path) -> None:
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


def test_a_statement_runs_with_every_row(db: SqlDatabase) -> None:
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


def test_an_arrow_table_is_loaded(db: SqlDatabase) -> None:
    table = pa.table(
        {"id": range(1000), "at": pa.array([0] * 1000, pa.timestamp("us")), "raw": [b"\xff"] * 1000}
    )
    db.run("CREATE TABLE t (id, at, raw)")
    assert db.run(rows=db.stored(table), into="t")["row_count"] == 1000
    assert db.rows("SELECT * FROM t WHERE id = 999") == [
        {"id": 999, "at": "1970-01-01T00:00:00", "raw": "/w=="}
    ]


def test_a_large_result_is_an_arrow_table(db: SqlDatabase) -> None:
    columns = """x, x / 2.0 AS half, 'n' || x AS name, x'00' AS raw, NULL AS empty, NULLIF(x, 2) AS gap,
        iif(x > 15000, 0.5, x) AS mixed, iif(x > 15000, 'text', x) AS any_, iif(x > 15000, x, NULL) AS late"""
    result = db.run(counted(columns), params={"most": 20_000})
    assert result["row_count"] == 20_000
    table = db.table(result["rows"])
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
def test_wide_integers_among_floats_stay_exact_in_an_arrow_table(db: SqlDatabase, beginning: str) -> None:
    result = db.run(
        counted(f"iif({beginning}, 9007199254740993, 0.5) AS n, 'name' || x AS name"), params={"most": 20_000}
    )
    assert set(db.table(result["rows"]).column("n").to_pylist()) == {"9007199254740993", "0.5"}


def test_without_arrow_rows_stay_values_up_to_a_limit(
    db: SqlDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    result = db.run(counted("x"), params={"most": 20_000})
    assert (len(result["rows"]), result["rows"][-1]) == (20_000, {"x": 20_000})
    error = db.error(counted("zeroblob(100000) AS z"), params={"most": 400})
    assert (error.kind, error.message) == (
        "limit",
        "the rows take more than 16 MiB, and pyarrow is not installed: pip install 'noetl[arrow]'",
    )


def test_a_number_without_end_is_null_with_a_warning(db: SqlDatabase) -> None:
    outcome = db.outcome(query="SELECT 9e999 AS x")
    assert outcome.result["rows"] == [{"x": None}]
    assert outcome.meta["warnings"] == ["column `x`: null in place of a value that JSON cannot hold"]


def test_blobs_go_back_as_they_came(db: SqlDatabase) -> None:
    db.run("CREATE TABLE t (id INT, raw blob, note TEXT)")
    rows = [{"id": 1, "raw": "3q0=", "note": "3q0="}, {"id": 2, "raw": None, "note": None}]
    db.run(rows=rows, into="t")
    db.run(rows=[[3, "\\xdead", ""]], into="t")
    assert db.rows("SELECT raw FROM t WHERE raw = x'dead'") == [{"raw": "3q0="}] * 2
    assert db.rows("SELECT * FROM t WHERE id < 3") == rows
    error = db.error(rows=[{"raw": "@"}], into="t")
    assert (error.kind, error.message[:46]) == ("input", "a value for a column of type BLOB is no base64")


def test_columns_are_named_in_any_case(db: SqlDatabase) -> None:
    db.run("CREATE TABLE t (Id INT, Name TEXT)")
    db.run(rows=[{"Id": 1, "Name": "a"}], into="t (Id, NAME)")
    db.run(rows=db.stored(pa.table({"ID": [2], "name": ["b"]})), into="t (Id, Name)")
    assert db.rows("SELECT * FROM t") == [{"Id": 1, "Name": "a"}, {"Id": 2, "Name": "b"}]
