"""Results of other tasks as tables."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa

from noetl.model.json import Json
from noetl.model.reference import ARROW_MEDIA_TYPE, JSON_MEDIA_TYPE, StoredReference, encode_value
from noetl.ports.results import ExecutionObjects
from noetl.tools.duckdb.text import quote_literal
from noetl.tools.host.read_reference import read_reference
from noetl.tools.sql.arrow_stream import ArrowFile
from noetl.tools.sql.target_table import quote_identifier

_READERS = {
    "application/vnd.apache.parquet": "read_parquet",
    "application/x-parquet": "read_parquet",
    "text/csv": "read_csv",
    "text/tab-separated-values": "read_csv",
    "application/x-ndjson": "read_json",
    "application/jsonl": "read_json",
}
_NO_ARROW_TYPE = (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError)


class QueriedFile(NamedTuple):
    """A file that DuckDB reads itself: the function, and its argument as SQL text."""

    reader: str
    path: Path

    @property
    def query(self) -> str:
        return f"FROM {self.reader}({quote_literal(str(self.path))})"


class SourceTables(NamedTuple):
    """What can be queried by name. `unfit` says of other names why there is no such table."""

    sources: dict[str, Any]
    unfit: dict[str, str]


async def source_tables(
    values: Mapping[str, Json], objects: ExecutionObjects, files: AsyncExitStack
) -> SourceTables:
    """The values as tables, whose files are at hand while `files` lasts. Raises ResultError.

    Of a mapping with `rows`, as SQL tasks give it, these are the table; else of one with a list or a
    file in `data`, as `http` gives it, that.
    """
    tables = SourceTables({}, {})
    for name, value in values.items():
        try:
            source = await _source(value, objects, files)
        except _NotTable as reason:
            tables.unfit[name] = str(reason)
        else:
            tables.sources[name] = source
    return tables


class _NotTable(Exception):
    """Why a value is no table."""


async def _source(value: Any, objects: ExecutionObjects, files: AsyncExitStack) -> Any:
    if value is None:
        raise _NotTable("nothing has set it")
    if isinstance(value, StoredReference):
        return await _stored_source(value, objects, files)
    if not isinstance(value, dict):
        return await asyncio.to_thread(arrow_table, value)
    for key in ("rows", "data"):
        inner = value.get(key)
        if isinstance(inner, StoredReference):
            return await _stored_source(inner, objects, files)
        if isinstance(inner, list):
            columns = value.get("columns")
            return await asyncio.to_thread(arrow_table, inner, columns if isinstance(columns, list) else ())
    return await asyncio.to_thread(arrow_table, value)


async def _stored_source(reference: StoredReference, objects: ExecutionObjects, files: AsyncExitStack) -> Any:
    media_type = str(reference.get("media_type", JSON_MEDIA_TYPE)).partition(";")[0].strip().lower()
    reader = _READERS.get(media_type)
    if media_type not in (ARROW_MEDIA_TYPE, JSON_MEDIA_TYPE) and reader is None:
        raise _NotTable(f"it is a file of type `{media_type}`, and no table")
    if media_type == JSON_MEDIA_TYPE:
        return await _source(await read_reference(reference, objects), objects, files)
    path = await files.enter_async_context(objects.local(reference))
    return ArrowFile(path) if reader is None else QueriedFile(reader, path)


def register_table(cursor: duckdb.DuckDBPyConnection, name: str, source: Any) -> None:
    """Makes the table known under this name, whatever else has it."""
    if isinstance(source, QueriedFile):
        cursor.execute(f"CREATE OR REPLACE TEMP VIEW {quote_identifier(name)} AS {source.query}")
    else:
        cursor.register(name, source)


def as_variable(cursor: duckdb.DuckDBPyConnection, source: Any) -> Any:
    """The table as DuckDB takes it from a variable, where no table of the database has its name."""
    return cursor.sql(source.query) if isinstance(source, QueriedFile) else source


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


def arrow_column(values: list[Any]) -> pa.Array:
    """Values of one type as they are, wide integers as decimals; of others, what is not text as its JSON."""
    try:
        return pa.array(values)
    except _NO_ARROW_TYPE:
        if all(value is None or type(value) is int for value in values):
            with suppress(*_NO_ARROW_TYPE):
                return pa.array([value if value is None else Decimal(value) for value in values])
    return pa.array(
        [
            value if value is None or isinstance(value, str) else encode_value(value).decode()
            for value in values
        ]
    )
