import base64
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from noetl.model import table_reader
from noetl.model.errors import ResultError
from noetl.model.table_reader import ROWS_PER_READ, decode_value_or_table, row_key, split_row_key
from noetl.stores.results.result_reader import TableFile, read_table_rows


def stream(table: pa.Table, batch: int = 300) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as out:
        out.write_table(table, max_chunksize=batch)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def test_rows_are_json_values() -> None:
    table = pa.table(
        {
            "n": [1, None],
            "x": [0.5, float("nan")],
            "price": [Decimal("1.50"), Decimal("12345678901234567.25")],
            "day": [date(2024, 5, 1), None],
            "at": pa.array([datetime(2024, 5, 1, 12), None], pa.timestamp("ns")),
            "took": [timedelta(seconds=1.5), None],
            "raw": [b"\x00\xff", b""],
            "tags": [["a"], []],
            "more": [{"k": 1}, {"k": None}],
        }
    )
    assert decode_value_or_table(stream(table)) == [
        {
            "n": 1,
            "x": 0.5,
            "price": 1.5,
            "day": "2024-05-01",
            "at": "2024-05-01T12:00:00",
            "took": 1.5,
            "raw": base64.b64encode(b"\x00\xff").decode(),
            "tags": ["a"],
            "more": {"k": 1},
        },
        {
            "n": None,
            "x": None,
            "price": "12345678901234567.25",
            "day": None,
            "at": None,
            "took": None,
            "raw": "",
            "tags": [],
            "more": {"k": None},
        },
    ]


def test_a_column_cannot_pretend_to_be_a_reference() -> None:
    assert decode_value_or_table(stream(pa.table({"$noetl": ["ref"]}))) == [{"$$noetl": "ref"}]


def test_a_table_without_rows_is_an_empty_list() -> None:
    assert decode_value_or_table(stream(pa.table({"n": pa.array([], pa.int64())}))) == []


def test_json_is_read_as_before() -> None:
    assert decode_value_or_table(b'{"a":[1]}') == {"a": [1]}


def test_what_breaks_off_is_an_error() -> None:
    data = stream(pa.table({"n": list(range(1_000))}))
    with pytest.raises(ResultError, match="a table cannot be read"):
        decode_value_or_table(data[: len(data) // 2])


@pytest.mark.parametrize("index", [0, 299, 300, 999, 1_000, 2_499])
def test_some_rows_can_be_read_without_the_others(tmp_path: Path, index: int) -> None:
    path = tmp_path / "table"
    path.write_bytes(stream(pa.table({"n": list(range(2_500))})))
    key, start = row_key("e/h", index)
    stored, rows = split_row_key(key)
    assert (stored, rows) == ("e/h", (start, start + ROWS_PER_READ))
    decoded = decode_value_or_table(read_table_rows(path, *rows or (0, 0)))
    assert [row["n"] for row in decoded] == list(range(start, min(start + ROWS_PER_READ, 2_500)))
    assert decoded[index - start] == {"n": index}


def test_rows_can_be_read_in_any_order_and_across_batches(tmp_path: Path) -> None:
    path = tmp_path / "table"
    path.write_bytes(stream(pa.table({"n": list(range(2_500))})))
    table = TableFile(path)
    for start, end in (
        (0, 700),
        (700, 1_400),
        (1_399, 1_401),
        (10, 20),
        (2_400, 9_000),
        (5_000, 5_001),
        (0, 0),
    ):
        numbers = [row["n"] for row in decode_value_or_table(table.rows(start, end))]
        assert numbers == list(range(start, min(end, 2_500))), (start, end)
    table.close()


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1, None, -(2**62)]),
        pa.array([0.5, float("nan"), None]),
        pa.array(["a", None]),
        pa.array([b"\x00"]),
        pa.array([Decimal("1.50"), None]),
        pa.array([[{"k": 1}], None]),
        pa.array([[("j", 1), ("k", 2)]], pa.map_(pa.string(), pa.int64())),
        pa.array([datetime(2024, 5, 1, 12), None], pa.timestamp("us", "UTC")),
        pa.array([timedelta(seconds=1.5)], pa.duration("us")),
    ],
    ids=lambda column: str(column.type),
)
def test_a_column_read_at_once_is_its_values_read_by_themselves(column: pa.Array) -> None:
    at_once = table_reader._column_values(pa, column)
    assert repr(at_once) == repr([table_reader._python_value_or_none(value) for value in column])
