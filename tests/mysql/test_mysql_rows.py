"""Rows into MySQL: loaded into a table, or one by one through a statement."""

from typing import Any

import pyarrow as pa
import pytest

from tests.tools.sql_calls import SqlDatabase


@pytest.fixture
def items(db: SqlDatabase) -> SqlDatabase:
    db.run(
        "CREATE TABLE item (id int PRIMARY KEY, name longtext DEFAULT 'new', doc json, raw blob, at datetime, `Odd Name` int)"
    )
    return db


def names(db: SqlDatabase, columns: str = "id, name") -> list[dict[str, Any]]:
    return db.rows(f"SELECT {columns} FROM item ORDER BY id")  # noqa: S608 - of the test itself


def test_mappings_are_loaded_by_the_names_of_columns(items: SqlDatabase) -> None:
    rows = [
        {"id": 1, "name": "a'\\\"\r\nc", "doc": {"a": [1]}, "raw": "AP8=", "at": "2026-01-31T10:00:00+02:00"},
        {"id": 2, "doc": [True], "raw": "\\x01", "at": "2026-01-31T10:00:00Z", "ODD NAME": 7},
        {"name": None, "id": 3, "at": "2026-01-31 10:00:00"},
    ]
    answer = {"rows": [], "row_count": 3, "columns": []}
    assert items.run(rows=rows, into="item") == {**answer, "statements": 1, "command_0": answer}
    empty = {"name": None, "doc": None, "raw": None, "Odd Name": None}
    assert names(items, "*") == [
        {
            **empty,
            "id": 1,
            "name": "a'\\\"\r\nc",
            "doc": '{"a":[1]}',
            "raw": "AP8=",
            "at": "2026-01-31T08:00:00",
        },
        {**empty, "id": 2, "doc": "[true]", "raw": "AQ==", "at": "2026-01-31T10:00:00", "Odd Name": 7},
        {**empty, "id": 3, "at": "2026-01-31T10:00:00"},
    ]


def test_a_column_that_no_row_names_has_its_default(items: SqlDatabase) -> None:
    items.run(rows=[{"id": 1}], into="item")
    assert names(items) == [{"id": 1, "name": "new"}]


def test_lists_fill_all_columns_or_those_that_are_named(items: SqlDatabase) -> None:
    items.run(rows=[[1, "a", None, "AA==", None, 2]], into="item")
    items.run(rows=[["b", 2], [None, 3]], into="item (name, ID)")
    items.run(rows=[[4, 5]], into='item (id, "Odd Name")')
    assert names(items, "id, name, raw") == [
        {"id": 1, "name": "a", "raw": "AA=="},
        {"id": 2, "name": "b", "raw": None},
        {"id": 3, "name": None, "raw": None},
        {"id": 4, "name": "new", "raw": None},
    ]


def test_names_may_be_quoted_and_have_a_database(db: SqlDatabase) -> None:
    db.run("CREATE DATABASE `Odd-Base`; CREATE TABLE `Odd-Base`.`Order; DROP` (`A ``b``` int, c int)")
    try:
        db.run(rows=[{"A `b`": 1, "c": 2}], into='"Odd-Base"."Order; DROP"')
        assert db.rows("SELECT * FROM `Odd-Base`.`Order; DROP`") == [{"A `b`": 1, "c": 2}]
    finally:
        db.run("DROP DATABASE `Odd-Base`")


def test_no_rows_are_loaded_too(items: SqlDatabase) -> None:
    assert items.run(rows=[], into="item")["row_count"] == 0
    assert items.run(rows=[], command="INSERT INTO item (id) VALUES (%(id)s)")["row_count"] == 0


def test_loading_is_all_or_nothing_and_says_which_row_is_wrong(items: SqlDatabase) -> None:
    outcome = items.outcome(rows=[{"id": n} for n in range(2000)] + [{"id": "x"}], into="item")
    assert outcome.error is not None
    assert (outcome.error.kind, outcome.helpers["mysql"]["code"]) == ("sql", 1366)
    assert outcome.error.message.endswith("`item`.`id` at row 2001")
    assert names(items) == []


def test_more_rows_than_a_packet_of_the_server_holds_are_loaded(items: SqlDatabase) -> None:
    (limit,) = items.rows("SELECT @@max_allowed_packet AS n")
    rows = [{"id": n, "name": "x" * 100_000} for n in range(limit["n"] // 100_000 + 10)]
    assert items.run(rows=rows, into="item")["row_count"] == len(rows)
    error = items.error(rows=[{"id": -1, "name": "x" * limit["n"]}], into="item")
    assert error.kind == "limit"
    assert error.message == "row 1 takes more than 2,097,152 bytes, the server's `max_allowed_packet`"


def test_wide_rows_are_loaded_in_parts_that_have_placeholders_enough(db: SqlDatabase) -> None:
    columns = [f"c{n}" for n in range(200)]
    db.run(f"CREATE TABLE wide ({', '.join(f'{name} int' for name in columns)})")
    rows = [[number] * 200 for number in range(700)]
    assert db.run(rows=rows, into="wide")["row_count"] == 700
    assert db.rows("SELECT count(*) AS n, sum(c199) AS s FROM wide") == [{"n": 700, "s": sum(range(700))}]


@pytest.mark.parametrize(
    ("rows", "into", "kind", "message"),
    [
        ([[1]], "item", "sql", "Column count doesn't match"),
        ([{}], "item", "input", "the rows are mappings without keys: there is nothing to load"),
        ([[1, "a"], [2]], "item (id, name)", "input", "row 2 has 1 values for 2 columns"),
        ([{"id": 1, "raw": "no base64"}], "item", "input", "BLOB is no base64"),
        ([{"id": 1, "nme": 1}], "item", "sql", "Unknown column 'nme'"),
        ([{"id": 1}], "items", "sql", "doesn't exist"),
        ([{"id": 1}], "item; DROP TABLE item", "input", "`into` names no table"),
        ("x", "item", "input", "`rows` is no list of rows"),
    ],
)
def test_what_cannot_be_loaded_is_told(
    items: SqlDatabase, rows: Any, into: str, kind: str, message: str
) -> None:
    error = items.error(rows=rows, into=into)
    assert (error.kind, error.retryable) == (kind, False)
    assert message in error.message


def test_an_arrow_table_is_loaded_batch_by_batch(items: SqlDatabase) -> None:
    table = pa.table(
        {
            "id": range(1500),
            "name": [None if n % 2 else f"n{n}" for n in range(1500)],
            "doc": [{"n": n} for n in range(1500)],
            "raw": [b"\x00\xff"] * 1500,
            "at": pa.array([1_700_000_000_000_000] * 1500, pa.timestamp("us", "UTC")),
        }
    )
    assert items.run(rows=items.stored(table), into="item")["row_count"] == 1500
    (last,) = items.rows("SELECT * FROM item WHERE id = 1498")
    assert last == {
        "id": 1498,
        "name": "n1498",
        "doc": '{"n":1498}',
        "raw": "AP8=",
        "at": "2023-11-14T22:13:20",
        "Odd Name": None,
    }


def test_a_table_that_a_query_gave_goes_into_another_one(items: SqlDatabase) -> None:
    query = items.run("SELECT seq AS id, repeat('x', 50) AS name FROM seq_1_to_2000")
    assert items.run(rows=query["rows"], into="item")["row_count"] == 2000
    assert items.rows("SELECT count(*) AS n, min(length(name)) AS l FROM item") == [{"n": 2000, "l": 50}]


def test_a_statement_runs_with_every_row(items: SqlDatabase) -> None:
    upsert = "INSERT INTO item (id, name) VALUES (:id, :name) ON DUPLICATE KEY UPDATE name = VALUES(name)"
    rows: list[dict[str, Any]] = [{"id": n % 3, "name": f"n{n}"} for n in range(4)]
    assert items.run(rows=rows, command=upsert)["row_count"] == 5  # an update counts twice
    assert names(items) == [{"id": 0, "name": "n3"}, {"id": 1, "name": "n1"}, {"id": 2, "name": "n2"}]
    assert (
        items.run(rows=[["c", 1], ["d", 9]], command="UPDATE item SET name = ? WHERE id = ?")["row_count"]
        == 1
    )


@pytest.mark.parametrize(
    ("fetch", "rows"), [("all", [{"id": 1}, {"id": 2}]), ("one", [{"id": 1}]), ("none", [])]
)
def test_what_the_statements_return_comes_back(items: SqlDatabase, fetch: str, rows: list[Any]) -> None:
    command = "INSERT INTO item (id) VALUES (:id) RETURNING id"
    result = items.run(rows=[{"id": 1}, {"id": 2}], command=command, spec={"fetch": fetch})
    assert (result["rows"], result["row_count"]) == (rows, 2)


def test_queries_run_with_every_row(items: SqlDatabase) -> None:
    assert items.rows("SELECT :id * 2 AS n", rows=[{"id": 1}, {"id": 2}]) == [{"n": 2}, {"n": 4}]
    assert items.rows("SELECT 7 AS n", rows=[{"id": 1}, {"id": 2}]) == [{"n": 7}, {"n": 7}]


def test_the_runs_of_a_statement_are_one_transaction_unless_told_otherwise(items: SqlDatabase) -> None:
    rows = [{"id": 1}, {"id": 2}, {"id": 1}]
    command = "INSERT INTO item (id) VALUES (:id)"
    assert items.outcome(rows=rows, command=command).helpers["mysql"]["code"] == 1062
    assert names(items) == []
    assert items.error(rows=rows, command=command, spec={"transaction": False}).kind == "sql"
    assert [item["id"] for item in names(items)] == [1, 2]
