"""Rows into Snowflake, and what becomes of its values in JSON and in Arrow."""

from typing import Any, NamedTuple

import pyarrow as pa
import pytest

from noetl.tools.snowflake.types import snowflake_column
from noetl.tools.sql import input_rows
from tests.tools.sql_calls import SqlDatabase


@pytest.fixture
def items(db: SqlDatabase) -> SqlDatabase:
    db.run(
        "CREATE TABLE item (id int, name text, made timestamp_ntz, ok boolean, price number(10, 2), raw binary)"
    )
    return db


def names(db: SqlDatabase, columns: str = "id, name") -> list[dict[str, Any]]:
    return db.rows(f"SELECT {columns} FROM item ORDER BY id")  # noqa: S608 - of the test itself


def test_mappings_are_loaded_by_the_names_of_columns_in_any_case(items: SqlDatabase) -> None:
    rows = [
        {
            "id": 1,
            "name": "a'\\\"\r\nc",
            "MADE": "2026-01-31T10:00:00",
            "ok": True,
            "price": 1.5,
            "raw": "AP8=",
        },
        {"id": 2, "price": "2.25"},
        {"name": None, "id": 3},
    ]
    answer = {"rows": [], "row_count": 3, "columns": []}
    assert items.run(rows=rows, into="item") == {**answer, "statements": 1, "command_0": answer}
    first = {
        "ID": 1,
        "NAME": "a'\\\"\r\nc",
        "MADE": "2026-01-31T10:00:00",
        "OK": True,
        "PRICE": 1.5,
        "RAW": "AP8=",
    }
    empty = dict.fromkeys(first)
    # fakesnow cannot send a moment that is null to this driver.
    assert items.rows("SELECT * FROM item WHERE id = 1") == [first]
    del empty["MADE"]
    rest = items.rows("SELECT id, name, ok, price, raw FROM item WHERE made IS NULL ORDER BY id")
    assert rest == [{**empty, "ID": 2, "PRICE": 2.25}, {**empty, "ID": 3}]


def test_lists_fill_all_columns_or_those_that_are_named(items: SqlDatabase) -> None:
    items.run(rows=[[1, "a", None, None, None, None]], into="item")
    items.run(rows=[["b", 2], [None, 3]], into="item (name, ID)")
    assert names(items) == [{"ID": 1, "NAME": "a"}, {"ID": 2, "NAME": "b"}, {"ID": 3, "NAME": None}]


def test_columns_of_json_take_values(db: SqlDatabase) -> None:
    db.run("CREATE TABLE doc (id int, body variant)")
    rows = [{"id": 1, "body": {"a": [1, None]}}, {"id": 2, "body": '["text"]'}, {"id": 3, "body": None}]
    assert db.run(rows=rows, into="doc")["row_count"] == 3
    assert db.rows("SELECT * FROM doc ORDER BY id") == [
        {"ID": 1, "BODY": {"a": [1, None]}},
        {"ID": 2, "BODY": ["text"]},
        {"ID": 3, "BODY": None},
    ]


def test_no_rows_are_loaded_too(items: SqlDatabase) -> None:
    assert items.run(rows=[], into="item")["row_count"] == 0
    assert items.run(rows=[], command="INSERT INTO item (id) VALUES (%(id)s)")["row_count"] == 0


def test_loading_is_all_or_nothing(items: SqlDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(input_rows, "BATCH", 10)
    outcome = items.outcome(rows=[{"id": n} for n in range(20)] + [{"id": "x"}], into="item")
    assert outcome.error is not None
    assert outcome.error.kind == "sql"
    assert names(items) == []


@pytest.mark.parametrize(
    ("rows", "into", "kind", "message"),
    [
        ([{}], "item", "input", "the rows are mappings without keys: there is nothing to load"),
        ([[1, "a"], [2]], "item (id, name)", "input", "row 2 has 1 values for 2 columns"),
        ([{"id": 1, "raw": "no base64"}], "item", "input", "BINARY is no base64"),
        ([{"id": 1, "nme": 1}], "item", "sql", "nme"),
        ([{"id": 1}], "items", "sql", "ITEMS"),
        ([{"id": 1}], "item; DROP TABLE item", "input", "`into` names no table"),
    ],
)
def test_what_cannot_be_loaded_is_told(
    items: SqlDatabase, rows: Any, into: str, kind: str, message: str
) -> None:
    error = items.error(rows=rows, into=into)
    assert (error.kind, error.retryable) == (kind, False), error
    assert message in error.message


def test_an_arrow_table_is_loaded_batch_by_batch(items: SqlDatabase) -> None:
    table = pa.table(
        {
            "ID": range(120),
            "NAME": [None if n % 2 else f"n{n}" for n in range(120)],
            "RAW": [b"\x00\xff"] * 120,
            "MADE": pa.array([1_700_000_000_000_000] * 120, pa.timestamp("us")),
        }
    )
    assert items.run(rows=items.stored(table), into="item")["row_count"] == 120
    (last,) = items.rows("SELECT id, name, raw, made FROM item WHERE id = 118")
    assert last == {"ID": 118, "NAME": "n118", "RAW": "AP8=", "MADE": "2023-11-14T22:13:20"}


def test_a_statement_runs_with_every_row(items: SqlDatabase) -> None:
    rows: list[dict[str, Any]] = [{"id": n, "name": None if n == 1 else f"n{n}"} for n in range(4)]
    assert (
        items.run(rows=rows, command="INSERT INTO item (id, name) VALUES (:id, upper(:name))")["row_count"]
        == 4
    )
    assert names(items)[:2] == [{"ID": 0, "NAME": "N0"}, {"ID": 1, "NAME": None}]
    update = "UPDATE item SET name = ? WHERE id = ?"
    assert items.run(rows=[["c", 1], ["d", 9]], command=update)["row_count"] == 1
    assert items.rows("SELECT :id * 2 AS n", rows=[{"id": 1}, {"id": 2}]) == [{"N": 2}, {"N": 4}]


def test_the_runs_of_a_statement_are_one_transaction_unless_told_otherwise(items: SqlDatabase) -> None:
    rows: list[Any] = [{"id": 1}, {"id": 2}, {"id": "x"}]
    command = "INSERT INTO item (id) VALUES (:id)"
    assert items.error(rows=rows, command=command).kind == "sql"
    assert names(items) == []
    assert items.error(rows=rows, command=command, spec={"transaction": False}).kind == "sql"
    assert [item["ID"] for item in names(items)] == [1, 2]


VALUES = """
SELECT 5 AS i, 1234567890123456789012.25::number(38, 2) AS n, 1234567890.50::number(12, 2) AS d, 0.5::float AS f,
  'tä' AS t, true AS b, '2026-01-31'::date AS da, '10:00:01.5'::time AS ti, '2026-01-31 10:00:00.123'::timestamp_ntz AS ts,
  '2026-01-31 10:00:00+02:00'::timestamp_tz AS tz, PARSE_JSON('{"a": [1]}') AS j
"""
JSON = {
    "I": 5, "N": "1234567890123456789012.25", "D": 1234567890.5, "F": 0.5, "T": "tä", "B": True, "DA": "2026-01-31",
    "TI": "10:00:01.500000", "TS": "2026-01-31T10:00:00.123000", "J": {"a": [1]},
}  # fmt: skip
ARROW = {
    "D": pa.decimal128(12, 2), "F": pa.float64(), "T": pa.string(), "B": pa.bool_(), "DA": pa.date32(),
    "TI": pa.time64("us"), "TS": pa.timestamp("us"), "TZ": pa.timestamp("us", "UTC"),
}  # fmt: skip


def test_every_type_has_a_value_in_json(db: SqlDatabase) -> None:
    (row,) = db.rows(VALUES)
    assert row.pop("TZ") in ("2026-01-31T08:00:00+00:00", "2026-01-31T10:00:00+02:00")
    assert row == JSON


def test_large_results_are_arrow_tables_with_the_types_of_the_columns(db: SqlDatabase) -> None:
    outcome = db.outcome(query=f"SELECT v.* FROM ({VALUES}) v, TABLE(GENERATOR(ROWCOUNT => 3000))")  # noqa: S608 - of the test itself
    assert outcome.error is None, outcome.error
    assert outcome.result["row_count"] == 3000
    table = db.table(outcome.result["rows"])
    types = dict(zip(table.schema.names, table.schema.types, strict=True))
    assert {name: types[name] for name in ARROW} == ARROW
    first = table.slice(2999, 1).to_pylist()[0]
    assert (str(first["N"]), str(first["D"]), str(first["TS"])) == (
        JSON["N"],
        "1234567890.50",
        "2026-01-31 10:00:00.123000",
    )
    db.run("CREATE TABLE copy (i int, t text)")
    few = db.run(
        f"SELECT i, t FROM ({VALUES}) v, TABLE(GENERATOR(ROWCOUNT => 50))",  # noqa: S608 - of the test itself
        spec={"result": {"inline_max_bytes": 100}},
    )
    assert db.run(rows=few["rows"], into="copy (i, t)")["row_count"] == 50
    assert db.rows("SELECT count(*) AS n, sum(i) AS s, min(t) AS t FROM copy") == [
        {"N": 50, "S": 250, "T": "tä"}
    ]


class Described(NamedTuple):
    type_code: int
    name: str = "c"
    precision: int | None = None
    scale: int | None = None


@pytest.mark.parametrize(
    ("described", "sent", "value"),
    [
        (Described(11), bytearray(b"\x00\xff"), "AP8="),
        (Described(10), "[\n  undefined\n]", "[\n  undefined\n]"),
        (Described(9), '{"a": 1}', {"a": 1}),
        (Described(16), [0.5, 1.0], [0.5, 1.0]),
        (Described(14), '{"type": "Point"}', '{"type": "Point"}'),
        (Described(0, precision=38, scale=0), 2**70, str(2**70)),
        (Described(0, precision=38, scale=0), 7, 7),
    ],
)
def test_types_that_fakesnow_has_otherwise_are_known(described: Any, sent: Any, value: Any) -> None:
    column = snowflake_column(described)
    assert (column.to_json(sent) if column.to_json else sent) == value
