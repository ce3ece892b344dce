"""Types between PostgreSQL and JSON or Arrow, both ways."""

import json
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import pytest

from tests.tools.sql_calls import SqlDatabase, postgres_at

TYPES: list[tuple[str, Any]] = [
    ("true", True),
    ("1::int2", 1),
    ("9223372036854775807::int8", 9223372036854775807),
    ("0.1::float8", 0.1),
    ("1.50::numeric", 1.5),
    ("2.00::numeric", 2),
    ("0.1234567890123456789::numeric", "0.1234567890123456789"),
    ("'text'::varchar(9)", "text"),
    ("DATE '2026-01-31'", "2026-01-31"),
    ("TIME '12:30:00.5'", "12:30:00.5"),
    ("TIMESTAMP '2026-01-31 12:30:00.25'", "2026-01-31T12:30:00.250000"),
    ("TIMESTAMPTZ '2026-01-31 12:30:00+01'", "2026-01-31T11:30:00+00:00"),
    ("INTERVAL '1 day 2 hours'", "1 day 02:00:00"),
    ("'7f3fbbd0-1c31-4bb8-9f1d-6f0a0d0e2f11'::uuid", "7f3fbbd0-1c31-4bb8-9f1d-6f0a0d0e2f11"),
    ("'\\x00ff'::bytea", "AP8="),
    ("""'{"a": [1, 2.5, null, "x"]}'::json""", {"a": [1, 2.5, None, "x"]}),
    ("'null'::jsonb", None),
    ("ARRAY[1, NULL, 3]", [1, None, 3]),
    ("ARRAY[[1.5, 2], [3, 4]]::numeric[]", [[1.5, 2], [3, 4]]),
    ("ARRAY[TIMESTAMP '2026-01-31 12:30']", ["2026-01-31T12:30:00"]),
    ("ARRAY['a,b', 'c\"d']", ["a,b", 'c"d']),
    ("""ARRAY['{"a": 1}'::jsonb]""", [{"a": 1}]),
    ("'10.0.0.1/8'::inet", "10.0.0.1/8"),
    ("int4range(1, 5)", "[1,5)"),
    ("ROW(1, 'a', NULL)", ["1", "a", None]),
    ("NULL::int", None),
]


@pytest.fixture
def db(dsn: str) -> SqlDatabase:
    return postgres_at(dsn)


def test_every_type_has_its_json(db: SqlDatabase) -> None:
    names = [f"c{number}" for number in range(len(TYPES))]
    listed = ", ".join(f"{sql} AS {name}" for name, (sql, _) in zip(names, TYPES, strict=True))
    (row,) = db.rows(f"SELECT {listed}")
    assert row == dict(zip(names, (value for _, value in TYPES), strict=True))


def test_types_of_ones_own_are_text(db: SqlDatabase) -> None:
    db.run("CREATE TYPE mood AS ENUM ('fine'); CREATE DOMAIN price AS numeric(9, 2)")
    assert db.rows("SELECT 'fine'::mood AS m, 1.25::price AS p") == [{"m": "fine", "p": 1.25}]


def test_what_json_cannot_hold_is_null_with_a_warning(db: SqlDatabase) -> None:
    query = """
        SELECT x, x::numeric AS n, ARRAY[x] AS a, t, d FROM (VALUES
            ('NaN'::float8, 'infinity'::timestamp, '-infinity'::date), ('Infinity', '0044-03-15 BC', '2026-01-31'),
            (1.5, '2026-01-31', '20260-01-31')) AS v (x, t, d)
    """
    outcome = db.outcome(query=query)
    assert [list(row.values()) for row in outcome.result["rows"]] == [
        [None, None, None, None, None],
        [None, None, None, None, "2026-01-31"],
        [1.5, 1.5, [1.5], "2026-01-31T00:00:00", None],
    ]
    expected = [f"column `{name}`: null in place of 2 values that JSON cannot hold" for name in "xnatd"]
    assert outcome.meta["warnings"] == expected
    assert db.log == [f"warning: {warning}" for warning in expected]


WIDE = """
    SELECT g AS id, g % 2 = 0 AS even, g::int2 AS small, g::int8 AS big, g / 4.0::float8 AS part,
        (g / 4.0)::numeric(12, 2) AS price, g / 3.0 AS exact, 'n' || g AS name,
        DATE '2026-01-01' + g AS day, TIME '00:00' + g * INTERVAL '1 s' AS moment,
        TIMESTAMP '2026-01-01' + g * INTERVAL '1 s' AS at,
        TIMESTAMPTZ '2026-01-01 00:00+00' + g * INTERVAL '1 s' AS at_zone,
        decode(lpad(to_hex(g), 8, '0'), 'hex') AS raw, jsonb_build_object('g', g) AS doc, ARRAY[g, NULL] AS list,
        ARRAY[jsonb_build_array(g, 'x')] AS docs,
        ARRAY[DATE '2026-01-01' + g] AS days, NULLIF(g, 2) AS gap, int4range(g, g + 1) AS span, ROW(g, 'x') AS pair
    FROM generate_series(1, 3000) AS g
"""


def test_a_large_result_is_an_arrow_table_of_the_same_types(db: SqlDatabase) -> None:
    result = db.run(WIDE)
    assert result["row_count"] == 3000
    table = db.table(result["rows"])
    assert result["columns"] == table.column_names
    assert result["command_0"]["rows"] == result["rows"]
    types = {field.name: str(field.type) for field in table.schema}
    assert types == {
        "id": "int32",
        "even": "bool",
        "small": "int16",
        "big": "int64",
        "part": "double",
        "price": "decimal128(12, 2)",
        "exact": "string",
        "name": "string",
        "day": "date32[day]",
        "moment": "time64[us]",
        "at": "timestamp[us]",
        "at_zone": "timestamp[us, tz=UTC]",
        "raw": "binary",
        "doc": "extension<arrow.json>",
        "list": "list<item: int32>",
        "docs": "extension<arrow.json>",
        "days": "list<item: date32[day]>",
        "gap": "int32",
        "span": "string",
        "pair": "string",
    }
    second = table.slice(1, 1).to_pylist()[0]
    assert second == {
        "id": 2,
        "even": True,
        "small": 2,
        "big": 2,
        "part": 0.5,
        "price": Decimal("0.50"),
        "exact": "0.66666666666666666667",
        "name": "n2",
        "day": date(2026, 1, 3),
        "moment": time(0, 0, 2),
        "at": datetime(2026, 1, 1, 0, 0, 2),
        "at_zone": datetime(2026, 1, 1, 0, 0, 2, tzinfo=UTC),
        "raw": b"\x00\x00\x00\x02",
        "doc": '{"g":2}',
        "list": [2, None],
        "docs": '[[2,"x"]]',
        "days": [date(2026, 1, 3)],
        "gap": None,
        "span": "[2,3)",
        "pair": '["2","x"]',
    }
    assert table.column("id").to_pylist() == list(range(1, 3001))
    assert (
        json.loads(result["rows"]["preview"].removesuffix("…").rpartition(",{")[0] + "]")[0]["name"] == "n1"
    )


def test_the_limit_of_values_can_be_set(db: SqlDatabase) -> None:
    query = "SELECT generate_series(1, 10) AS n"
    assert db.rows(query) == [{"n": n} for n in range(1, 11)]
    spec = {"result": {"inline_max_bytes": 50, "preview_max_bytes": 5}}
    result = db.run(query, spec=spec)
    assert db.table(result["rows"]).to_pydict() == {"n": list(range(1, 11))}
    assert result["rows"]["preview"] == '[{"n"…'


def test_each_statement_has_a_table_of_its_own(db: SqlDatabase) -> None:
    spec = {"result": {"inline_max_bytes": 10}}
    result = db.run("SELECT 1 AS a, 2 AS b; SELECT NULL AS c", spec=spec)
    assert db.table(result["command_0"]["rows"]).to_pydict() == {"a": [1], "b": [2]}
    assert db.table(result["rows"]).to_pydict() == {"c": [None]}


def test_values_without_end_stay_in_an_arrow_table_where_it_has_them(db: SqlDatabase) -> None:
    outcome = db.outcome(
        query="SELECT 'NaN'::float8 AS x, 'infinity'::timestamp AS t, 'NaN'::numeric AS n FROM generate_series(1, 5000)"
    )
    table = db.table(outcome.result["rows"])
    assert str(table.column("x")[0]) == "nan"
    assert table.column("t").null_count == table.column("n").null_count == 5000
    assert outcome.meta["warnings"] == [
        f"column `{name}`: null in place of 5000 values that JSON cannot hold" for name in "tn"
    ]


def test_arrays_that_differ_in_depth_do_not_make_a_table(db: SqlDatabase) -> None:
    error = db.error(
        "SELECT CASE WHEN g < 6000 THEN ARRAY[g] ELSE ARRAY[[g]] END AS a FROM generate_series(1, 9000) g"
    )
    assert error.kind == "sql"
    assert error.message.startswith("column `a` does not fit into Arrow's list<item: int32>: ")


def test_large_values_are_few_in_memory_at_a_time(db: SqlDatabase) -> None:
    result = db.run("SELECT g AS id, repeat('x', 200000) AS text FROM generate_series(1, 300) g")
    batches = db.table(result["rows"]).to_batches()
    assert sum(batch.num_rows for batch in batches) == 300
    assert max(batch.nbytes for batch in batches) < 25_000_000


def test_a_table_goes_back_as_it_came(db: SqlDatabase) -> None:
    plain = WIDE.replace(", ROW(g, 'x') AS pair", "")
    db.run(f"CREATE TABLE source AS {plain}; CREATE TABLE target (LIKE source)")
    table = db.run("SELECT * FROM source")["rows"]
    assert db.run(rows=table, into="target")["row_count"] == 3000
    same = db.rows(
        "SELECT count(*) AS n FROM (SELECT s::text FROM source s INTERSECT SELECT t::text FROM target t) x"
    )
    assert same == [{"n": 3000}]


def test_rows_go_back_as_they_came(db: SqlDatabase) -> None:
    db.run(
        "CREATE TABLE t (a bytea, b jsonb, c numeric, d timestamptz, e text[], f bool, g date, h jsonb[], i float8)"
    )
    db.run(
        r"""INSERT INTO t VALUES ('\x00ff', '{"a": [true]}', 1.10, '2026-01-31 12:00+02', '{x,"y z"}', true,
        '2026-01-31', '{"[1]"}', 0.1)"""
    )
    before = db.rows("SELECT * FROM t")
    db.run(rows=before, into="t")
    assert db.rows("SELECT * FROM t") == before * 2
