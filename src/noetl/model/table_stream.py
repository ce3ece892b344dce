"""Tables on their way: few rows become values, more of them an Arrow stream in a file. Needs pyarrow."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from noetl.model.json import Json
from noetl.model.reference import encode_value
from noetl.model.table_reader import batch_rows

PREVIEW_ROWS = 100
"""Rows that a preview is made of."""


class TableRows(NamedTuple):
    """All rows of a table, as values; `lost` counts by column those that JSON has no form for."""

    columns: list[str]
    rows: list[dict[str, Json]]
    lost: dict[str, int]


class TableStream(NamedTuple):
    """A table that is too large for values: the batches that were read, and those to come."""

    schema: pa.Schema
    read: list[pa.RecordBatch]
    more: Iterator[pa.RecordBatch]

    @property
    def columns(self) -> list[str]:
        return list(self.schema.names)

    @property
    def preview_rows(self) -> list[dict[str, Json]]:
        """The rows for a preview, as long as nothing is written."""
        return batch_rows(self.read[0].slice(0, PREVIEW_ROWS)) if self.read else []

    def write(self, path: Path) -> int:
        """Writes everything to the file; the number of rows."""
        count = 0
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, self.schema) as out:
            while self.read:
                batch = self.read.pop(0)
                count += batch.num_rows
                out.write_batch(batch)
            for batch in self.more:
                count += batch.num_rows
                out.write_batch(batch)
        return count


def read_batches(reader: Any, names: Sequence[str], limit: int) -> TableRows | TableStream:
    """The rows that a reader of record batches gives, its columns with these names.

    If they take more than `limit` bytes of JSON, they are not all read yet.
    """
    schema = pa.schema([field.with_name(name) for field, name in zip(reader.schema, names, strict=True)])
    batches = (pa.RecordBatch.from_arrays(batch.columns, schema=schema) for batch in reader)
    read: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        read.append(batch)
        size += batch.nbytes  # rows in JSON repeat the names of columns and are hardly ever smaller
        if size > limit:
            return TableStream(schema, read, batches)
    rows = [row for batch in read for row in batch_rows(batch)]
    if len(encode_value(rows)) > limit:
        return TableStream(schema, read, batches)
    return TableRows(list(names), rows, _count_lost(read, rows))


def _count_lost(batches: list[pa.RecordBatch], rows: list[dict[str, Json]]) -> dict[str, int]:
    """How many values of each column are null in the rows and were not."""
    counts = {}
    for index, name in enumerate(batches[0].schema.names if batches else ()):
        null = sum(batch.column(index).null_count for batch in batches)
        if lost := sum(row[name] is None for row in rows) - null:
            counts[name] = lost
    return counts
