"""Rows into PostgreSQL: loaded by COPY, or one by one through a statement."""

from typing import Any

import pyarrow as pa
import pytest

from noetl.model.reference import StoredReference
from tests.tools.sql_calls import SqlDatabase, postgres_at


@pytest.fixture
def db(dsn: str) -> SqlDatabase:
    database = postgres_at(dsn)
    database.run(
        "CREATE TABLE item (id int PRIMARY KEY, name text DEFAULT 'new', tags text[], doc jsonb, raw bytea)"
    )
    return database


def items(db: SqlDatabase, columns: str = "id, name") -> list[dict[str, Any]]:
    return db.rows(f"SELECT {columns} FROM item ORDER BY id")  # noqa: S608 - of the test itself


def test_mappings_are_loaded_by_the_names_of_columns(db: SqlDatabase) -> None:
    rows = [
        {"id": 1, "name": "a\tb\\N\r\nc", "tags": ["x", 'y "z"', None], "doc": {"a": [1]}, "raw": "AP8="},
        {"id": 2, "doc": [True], "raw": "\\x01"},
        {"name": None, "id": 3, "doc": True, "tags": []},
        {"id": 4, "doc": 1.5},
        {"id": 5, "doc": '"text"'},
    ]
    answer = {"rows": [], "row_count": 5, "columns": []}
    assert db.run(rows=rows, into="item") == {**answer, "statements": 1, "command_0": answer}
    assert items(db, "*") == [
        {"id": 1, "name": "a\tb\\N\r\nc", "tags": ["x", 'y "z"', None], "doc": {"a": [1]}, "raw": "AP8="},
        {"id": 2, "name": None, "tags": None, "doc": [True], "raw": "AQ=="},
        {"id": 3, "name": None, "tags": [], "doc": True, "raw": None},
        {"id": 4, "name": None, "tags": None, "doc": 1.5, "raw": None},
        {"id": 5, "name": None, "tags": None, "doc": "text", "raw": None},
    ]


def test_a_column_that_no_row_names_has_its_default(db: SqlDatabase) -> None:
    db.run(rows=[{"id": 1}], into="item")
    assert items(db) == [{"id": 1, "name": "new"}]


def test_lists_fill_all_columns_or_those_that_are_named(db: SqlDatabase) -> None:
    db.run(rows=[[1, "a", ["x"], None, None]], into="item")
    db.run(rows=[["b", 2], [None, 3]], into="item (name, ID)")
    assert items(db) == [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}, {"id": 3, "name": None}]


def test_the_columns_of_mappings_can_be_chosen(db: SqlDatabase) -> None:
    db.run(rows=[{"id": 1, "name": "a", "else": 1}], into="item (id, name)")
    assert items(db) == [{"id": 1, "name": "a"}]


@pytest.mark.parametrize(
    "into",
    ['"Odd Schema"."Order; DROP"', ' "Odd Schema" . "x" '.replace(" . ", ".").replace("x", "Order; DROP")],
)
def test_names_may_be_quoted_and_have_a_schema(db: SqlDatabase, into: str) -> None:
    db.run('CREATE SCHEMA "Odd Schema"; CREATE TABLE "Odd Schema"."Order; DROP" ("A ""b""" int, c int)')
    try:
        db.run(rows=[{'A "b"': 1, "c": 2}], into=into)
        assert db.rows('SELECT * FROM "Odd Schema"."Order; DROP"') == [{'A "b"': 1, "c": 2}]
    finally:
        db.run('DROP SCHEMA "Odd Schema" CASCADE')


def test_no_rows_are_loaded_too(db: SqlDatabase) -> None:
    assert db.run(rows=[], into="item")["row_count"] == 0
    assert db.run(rows=[], command="INSERT INTO item (id) VALUES (%(id)s)")["row_count"] == 0


def test_loading_is_all_or_nothing_and_says_which_row_is_wrong(db: SqlDatabase) -> None:
    outcome = db.outcome(rows=[{"id": n} for n in range(2000)] + [{"id": "x"}], into="item")
    assert outcome.error is not None
    assert (outcome.error.kind, outcome.helpers["pg"]["code"]) == ("sql", "22P02")
    assert 'COPY item, line 2001, column id: "x"' in outcome.error.message
    assert items(db) == []


@pytest.mark.parametrize(
    ("rows", "into", "kind", "message"),
    [
        ([[1]], "item", "input", "row 1 has 1 values for 5 columns"),
        ([{}], "item", "input", "the rows are mappings without keys: there is nothing to load"),
        ([[]], "item", "input", "row 1 has 0 values for 5 columns"),
        ([[1, "a"], [2]], "item (id, name)", "input", "row 2 has 1 values for 2 columns"),
        ([{"id": 1}, [2]], "item", "input", "row 2 is a list, and the first is a mapping"),
        ([[1], "x"], "item (id)", "input", "row 2 is of type `str`, and the first is a list"),
        (["x"], "item", "input", "row 1 is neither a mapping nor a list, but of type `str`"),
        ([{"id": 1, "raw": "no base64"}], "item", "input", "bytea is no base64"),
        ([{"id": 1, "name": "\0"}], "item", "input", "NUL"),
        ([{"id": 1, "nme": 1}], "item", "sql", 'column "nme" of relation "item" does not exist'),
        ([{"id": 1}], "items", "sql", 'relation "items" does not exist'),
        ([{"id": 1}], "item; DROP TABLE item", "input", "`into` names no table"),
        ([{"id": 1}], "a b", "input", "`into` names no table"),
        ("x", "item", "input", "`rows` is no list of rows"),
    ],
)
def test_what_cannot_be_loaded_is_told(
    db: SqlDatabase, rows: Any, into: str, kind: str, message: str
) -> None:
    error = db.error(rows=rows, into=into)
    assert (error.kind, error.retryable) == (kind, False)
    assert message in error.message


def test_an_arrow_table_is_loaded_batch_by_batch(db: SqlDatabase) -> None:
    table = pa.table(
        {
            "id": range(1000),
            "name": [None if n % 2 else f"n{n}" for n in range(1000)],
            "tags": [["a", None]] * 1000,
            "doc": [{"n": n} for n in range(1000)],
            "raw": [b"\x00\xff"] * 1000,
        }
    )
    assert db.run(rows=db.stored(table), into="item")["row_count"] == 1000
    (last,) = db.rows("SELECT * FROM item WHERE id = 999")
    assert last == {"id": 999, "name": None, "tags": ["a", None], "doc": {"n": 999}, "raw": "AP8="}


def test_an_arrow_table_goes_through_a_statement(db: SqlDatabase) -> None:
    table = pa.table({"id": [1, 2], "name": ["a", "b"]})
    db.run(rows=db.stored(table), command="INSERT INTO item (id, name) VALUES (:id, upper(:name))")
    assert items(db) == [{"id": 1, "name": "A"}, {"id": 2, "name": "B"}]
    error = db.error(rows=db.stored(table), command="INSERT INTO item (id) VALUES (:nr)")
    assert (error.kind, error.message) == ("input", "the table has no column `nr`: it has id, name")


def test_only_tables_are_rows_and_only_stored_ones_are_read(db: SqlDatabase) -> None:
    table = pa.table({"id": [1]})
    error = db.error(rows=db.stored(table, "application/pdf"), into="item")
    assert (error.kind, "`application/pdf`, which is no table" in error.message) == ("input", True)
    made_up = dict(db.stored(table))
    assert db.error(rows=made_up, into="item").kind == "input"
    gone = StoredReference({**made_up, "key": f"{db.execution_id}/{'0' * 64}"})
    assert db.error(rows=gone, into="item").kind == "not_found"


def test_a_statement_runs_with_every_row(db: SqlDatabase) -> None:
    upsert = """
        INSERT INTO item (id, name, tags, doc) VALUES (%(id)s, %(name)s, %(tags)s, %(doc)s)
        ON CONFLICT (id) DO UPDATE SET name = excluded.name
    """
    rows: list[dict[str, Any]] = [{"id": n % 3, "name": f"n{n}", "tags": ["t"], "doc": [n]} for n in range(5)]
    assert db.run(rows=rows, command=upsert)["row_count"] == 5
    assert items(db, "id, name, tags, doc") == [
        {"id": 0, "name": "n3", "tags": ["t"], "doc": [0]},
        {"id": 1, "name": "n4", "tags": ["t"], "doc": [1]},
        {"id": 2, "name": "n2", "tags": ["t"], "doc": [2]},
    ]


def test_lists_go_through_a_statement_by_position(db: SqlDatabase) -> None:
    assert (
        db.run(rows=[[1, "a"], [2, "b"]], command="INSERT INTO item (id, name) VALUES ($1, $2)")["row_count"]
        == 2
    )
    assert (
        db.run(rows=[["c", 1], ["d", 9]], command="UPDATE item SET name = %s WHERE id = %s")["row_count"] == 1
    )
    assert items(db) == [{"id": 1, "name": "c"}, {"id": 2, "name": "b"}]


@pytest.mark.parametrize(
    ("fetch", "rows"), [("all", [{"id": 1}, {"id": 2}]), ("one", [{"id": 1}]), ("none", [])]
)
def test_what_the_statements_return_comes_back(db: SqlDatabase, fetch: str, rows: list[Any]) -> None:
    result = db.run(
        rows=[{"id": 1}, {"id": 2}],
        command="INSERT INTO item (id) VALUES (:id) RETURNING id",
        spec={"fetch": fetch},
    )
    assert (result["rows"], result["row_count"]) == (rows, 2)


def test_statements_of_any_kind_run_with_every_row(db: SqlDatabase) -> None:
    rows = [{"id": 1}, {"id": 2}, {"id": 3}]
    result = db.run(
        rows=rows, command="WITH new AS (SELECT :id::int AS id) INSERT INTO item (id) SELECT id FROM new"
    )
    assert (result["rows"], result["row_count"]) == ([], 3)
    result = db.run(rows=rows, command="WITH old AS (SELECT :id::int AS id) SELECT id FROM old")
    assert (result["rows"], result["row_count"]) == (rows, 3)
    db.run("CREATE PROCEDURE doubled(INOUT n int) LANGUAGE plpgsql AS $$ BEGIN n := 2 * n; END $$")
    assert db.rows("CALL doubled(:id::int)", rows=rows) == [{"n": 2}, {"n": 4}, {"n": 6}]


def test_the_runs_of_a_statement_are_one_transaction_unless_told_otherwise(db: SqlDatabase) -> None:
    rows = [{"id": 1}, {"id": 2}, {"id": 1}]
    outcome = db.outcome(rows=rows, command="INSERT INTO item (id) VALUES (:id)")
    assert outcome.helpers["pg"]["constraint"] == "item_pkey"
    assert items(db) == []
    assert (
        db.error(rows=rows, command="INSERT INTO item (id) VALUES (:id)", spec={"transaction": False}).kind
        == "sql"
    )
    assert [item["id"] for item in items(db)] == [1, 2]


@pytest.mark.parametrize(
    ("about", "message"),
    [
        ({"rows": [{"id": 1}, {}], "command": "SELECT :id::int"}, "row 2 has no `id`"),
        ({"rows": [[1, 2], [1]], "command": "SELECT $1::int, $2::int"}, "row 2 has only 1 values"),
        (
            {"rows": [[1]], "command": "SELECT :id"},
            "has placeholders such as `:name`, and the values are a list",
        ),
        (
            {"rows": [{"id": 1}], "command": "SELECT 1; SELECT 2"},
            "rows run through one statement, and there are 2",
        ),
        ({"rows": [{"id": 1}], "commands": ["SELECT 1", "SELECT 2"]}, "rows run through one statement"),
        ({"rows": [{"id": 1}]}, "the rows go nowhere"),
        ({"rows": [{"id": 1}], "into": "item", "params": [1]}, "`params` cannot stand beside `rows`"),
        ({"rows": {"id": 1}, "into": "item"}, "`rows` is no list"),
    ],
)
def test_rows_that_do_not_go_with_the_statement_are_refused(
    db: SqlDatabase, about: dict[str, Any], message: str
) -> None:
    error = db.error(**about)
    assert error.kind == "input"
    assert message in error.message
