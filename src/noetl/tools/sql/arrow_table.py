"""Values as Arrow tables."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from noetl.model import Json
from noetl.model.reference import encode_value


class ArrowFile:
    """A stored Arrow stream that can be read any number of times, some rows at a time."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The table from its beginning, for whoever speaks Arrow's interface."""
        return pa.ipc.open_stream(pa.OSFile(str(self._path))).__arrow_c_stream__(requested_schema)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        with pa.OSFile(str(self._path)) as file:
            yield from pa.ipc.open_stream(file)


def arrow_table(value: Json, columns: Sequence[str] = ()) -> pa.Table:
    """A list of mappings as rows, a mapping as one; anything else in a column `value`.

    `columns` are those of an empty list.
    """
    rows: list[Any] = value if isinstance(value, list) else [value]
    if not rows:
        return pa.table({name: pa.nulls(0) for name in columns or ("value",)})
    if not all(isinstance(row, dict) and row for row in rows):
        return pa.table({"value": arrow_column(rows)})
    names = dict.fromkeys(name for row in rows for name in row)
    return pa.table({name: arrow_column([row.get(name) for row in rows]) for name in names})


_UNFIT = (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError)


def arrow_column(values: list[Any]) -> pa.Array:
    """Values of one type as they are, wide integers as decimals; of others, what is not text as its JSON."""
    try:
        return pa.array(values)
    except _UNFIT:
        if all(value is None or type(value) is int for value in values):
            with suppress(*_UNFIT):
                return pa.array([value if value is None else Decimal(value) for value in values])
    return pa.array(
        [
            value if value is None or isinstance(value, str) else encode_value(value).decode()
            for value in values
        ]
    )
