"""The insides of the driver that the PostgreSQL tool uses, and what it would do without them."""

import inspect
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg import AsyncCopy, AsyncRawCursor
from psycopg.pq import ExecStatus

from noetl.tools.postgres.pool import StreamCursor
from tests.tools.sql_calls import postgres_at

USED = (
    "_make_row_maker(self) -> 'RowMaker[Row]'",
    "_raise_for_result(self, result: 'PGresult') -> 'NoReturn'",
    "_set_results(self, results: 'list[PGresult]') -> 'None'",
    "_stream_fetchone_gen(self, first: 'bool') -> 'PQGen[PGresult | None]'",
)
COLUMNS = ("n int8", "text text", "raw bytea", "doc jsonb", "items int8[]")


@pytest.mark.parametrize("signature", USED)
def test_the_driver_has_the_methods_that_the_cursor_uses(signature: str) -> None:
    name, _, _ = signature.partition("(")
    assert f"{name}{inspect.signature(getattr(AsyncRawCursor, name))}" == signature


def test_the_driver_streams_by_the_step_that_the_cursor_overrides(dsn: str) -> None:
    source = inspect.getsource(AsyncRawCursor.stream)
    assert source.count("self._stream_fetchone_gen(") == 3
    assert "self._tx.load_row(pos, self._make_row)" in source
    with psycopg.connect(dsn) as connection:
        cursor = connection.execute("SELECT 7")
        assert cursor._pgconn is connection.pgconn
        cursor._tx.set_pgresult(cursor.pgresult, set_loaders=True)
        assert cursor._tx.load_row(0, cursor._make_row_maker()) == (7,)
    assert StreamCursor._stream_fetchone_gen is not AsyncRawCursor._stream_fetchone_gen


def test_the_driver_knows_no_other_ends_of_a_stream() -> None:
    """All that a server may answer is either rows, an end, or an error that the driver words itself."""
    names = {"SINGLE_TUPLE", "TUPLES_CHUNK", "TUPLES_OK", "COMMAND_OK"}
    source = inspect.getsource(AsyncRawCursor._stream_fetchone_gen)
    assert {status.name for status in ExecStatus if status.name in source} == names


def test_the_driver_copies_what_its_formatter_gives() -> None:
    lines = [line.strip() for line in inspect.getsource(AsyncCopy.write_row).splitlines()]
    assert lines[-2:] == ["if data := self.formatter.write_row(row):", "await self._write(data)"]


TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
INTEGER = st.integers(-(2**63), 2**63 - 1)
ROW = st.tuples(
    INTEGER,
    TEXT | st.none(),
    st.binary() | st.none(),
    st.none() | st.dictionaries(TEXT, INTEGER | TEXT),
    st.none() | st.lists(INTEGER | st.none()),
)


@given(st.lists(ROW, min_size=1))
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_rows_are_loaded_as_the_driver_itself_would_copy_them(dsn: str, rows: list[tuple[Any, ...]]) -> None:
    """The slow path: each row through the driver's `write_row`."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        for table in ("slow", "fast"):
            connection.execute(f"DROP TABLE IF EXISTS {table}")
            connection.execute(f"CREATE TABLE {table} ({', '.join(COLUMNS)})")
        with connection.cursor().copy("COPY slow FROM STDIN") as copy:
            for n, text, raw, doc, items in rows:
                adapted = None if doc is None else psycopg.types.json.Jsonb(doc)
                copy.write_row((n, text, raw, adapted, items))
        named = [
            {"n": n, "text": text, "raw": raw and f"\\x{raw.hex()}", "doc": doc, "items": items}
            for n, text, raw, doc, items in rows
        ]
        assert postgres_at(dsn).run(rows=named, into="fast")["row_count"] == len(rows)
        tables = [
            connection.execute(query).fetchall()
            for query in ("SELECT * FROM slow ORDER BY ctid", "SELECT * FROM fast ORDER BY ctid")
        ]
        assert tables[0] == tables[1]
