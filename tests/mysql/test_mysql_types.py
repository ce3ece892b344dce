"""What becomes of MySQL's values in JSON and in Arrow."""

from typing import Any

import pyarrow as pa
import pytest

from noetl.tools.mysql.types import mysql_column
from tests.mysql.fields import FieldOf
from tests.tools.sql_calls import SqlDatabase

TABLE = """
CREATE TABLE t (
  i int, u int unsigned, b bigint unsigned, s tinyint, y year, o bool, d decimal(12, 2), e decimal(40, 2), f float,
  g double, da date, dt datetime(3), ts timestamp NULL, ti time(1), bi bit(9), js json, bl blob, vb varbinary(5),
  tx text, en enum('a', 'b'), st set('x', 'y'), ge geometry
)
"""
VALUES = """
INSERT INTO t VALUES (
  -5, 4294967295, 18446744073709551615, -128, 2026, true, 1234567890.50, 12345678901234567890.12, 0.5, 0.1, '2026-01-31',
  '2026-01-31 10:00:00.123', '2026-01-31 10:00:00', '-25:00:01.5', b'100000001', '{"a": [1]}', x'00ff', 'ab', 'tä',
  'b', 'x,y', point(1, 2)
)
"""
JSON = {
    "i": -5, "u": 4294967295, "b": 18446744073709551615, "s": -128, "y": 2026, "o": 1, "d": 1234567890.5,
    "e": "12345678901234567890.12", "f": 0.5, "g": 0.1, "da": "2026-01-31", "dt": "2026-01-31T10:00:00.123000",
    "ts": "2026-01-31T10:00:00", "ti": "-25:00:01.5", "bi": 257, "js": '{"a": [1]}', "bl": "AP8=", "vb": "YWI=",
    "tx": "tä", "en": "b", "st": "x,y",
}  # fmt: skip
ARROW = {
    "i": pa.int64(), "u": pa.int64(), "b": pa.uint64(), "s": pa.int64(), "y": pa.int64(), "o": pa.int64(),
    "d": pa.decimal128(12, 2), "e": pa.string(), "f": pa.float32(), "g": pa.float64(), "da": pa.date32(),
    "dt": pa.timestamp("us"), "ts": pa.timestamp("us"), "ti": pa.string(), "bi": pa.uint64(), "js": pa.string(),
    "bl": pa.binary(), "vb": pa.binary(), "tx": pa.string(), "en": pa.string(), "st": pa.string(), "ge": pa.binary(),
}  # fmt: skip


@pytest.fixture
def filled(db: SqlDatabase) -> SqlDatabase:
    db.run(f"{TABLE}; {VALUES}; INSERT INTO t () VALUES ()")  # noqa: S608 - of the test itself
    return db


def test_every_type_has_a_value_in_json(filled: SqlDatabase) -> None:
    full, empty = filled.rows("SELECT * FROM t")
    assert full.pop("ge") == "AAAAAAEBAAAAAAAAAAAA8D8AAAAAAAAAQA=="
    assert full == JSON
    assert set(empty.values()) == {None}


def test_values_that_were_bound_come_back_the_same(filled: SqlDatabase) -> None:
    plain, bound = (
        filled.rows("SELECT * FROM t WHERE i < ?", params=[0]),
        filled.rows("SELECT * FROM t WHERE i < 0"),
    )
    assert plain == bound


def test_large_results_are_arrow_tables_with_the_types_of_the_columns(filled: SqlDatabase) -> None:
    query = "SELECT t.* FROM t, seq_1_to_2000 ORDER BY i IS NULL"
    outcome = filled.outcome(query=query)
    assert outcome.error is None
    assert outcome.result["row_count"] == 4000
    table = filled.table(outcome.result["rows"])
    assert dict(zip(table.schema.names, table.schema.types, strict=True)) == ARROW
    first, last = table.slice(0, 1).to_pylist()[0], table.slice(3999, 1).to_pylist()[0]
    assert (first["b"], str(first["d"]), first["bl"], first["bi"]) == (
        2**64 - 1,
        "1234567890.50",
        b"\x00\xff",
        257,
    )
    assert (str(first["da"]), str(first["dt"])) == ("2026-01-31", "2026-01-31 10:00:00.123000")
    assert set(last.values()) == {None}


def test_dates_with_zeros_are_null_with_a_warning(db: SqlDatabase) -> None:
    script = "SET sql_mode = ''; CREATE TABLE z (d date, t datetime); INSERT INTO z VALUES ('0000-00-00', '2026-00-01'), ('2026-01-01', '0000-00-00')"
    db.run(script)
    outcome = db.outcome(query="SELECT * FROM z")
    assert outcome.result["rows"] == [{"d": None, "t": None}, {"d": "2026-01-01", "t": None}]
    assert outcome.meta["warnings"] == [
        "column `d`: null in place of a value that JSON cannot hold",
        "column `t`: null in place of 2 values that JSON cannot hold",
    ]


@pytest.mark.parametrize(
    ("field", "sent", "value"),
    [
        (FieldOf(245), '{"a": [1, null]}', {"a": [1, None]}),
        (FieldOf(245), "1e999", "1e999"),
        (FieldOf(242, charsetnr=63), b"\x00", "AA=="),
        (FieldOf(6), None, None),
    ],
)
def test_types_that_only_mysql_has_are_known(field: Any, sent: Any, value: Any) -> None:
    column = mysql_column(field)
    assert (column.to_json(sent) if column.to_json else sent) == value
