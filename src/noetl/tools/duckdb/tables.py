"""Results of other tasks as tables."""

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, NamedTuple

import duckdb

from noetl.model import Json
from noetl.model.reference import ARROW, MEDIA_TYPE, Stored
from noetl.ports.results import Objects
from noetl.tools.duckdb.text import quoted_name, quoted_text
from noetl.tools.host.read_reference import value_of
from noetl.tools.sql.arrow_table import ArrowFile, table_of

_READERS = {
    "application/vnd.apache.parquet": "read_parquet",
    "application/x-parquet": "read_parquet",
    "text/csv": "read_csv",
    "text/tab-separated-values": "read_csv",
    "application/x-ndjson": "read_json",
    "application/jsonl": "read_json",
}


class File(NamedTuple):
    """A file that DuckDB reads itself: the function, and its argument as SQL text."""

    reader: str
    path: Path

    @property
    def query(self) -> str:
        return f"FROM {self.reader}({quoted_text(str(self.path))})"


class Tables(NamedTuple):
    """What can be queried by name. `unfit` says of other names why there is no such table."""

    sources: dict[str, Any]
    unfit: dict[str, str]


async def tables_of(values: Mapping[str, Json], objects: Objects, files: AsyncExitStack) -> Tables:
    """The values as tables, whose files are at hand while `files` lasts. Raises ResultError.

    Of a mapping with `rows`, as SQL tasks give it, these are the table; else of one with a list or a
    file in `data`, as `http` gives it, that.
    """
    tables = Tables({}, {})
    for name, value in values.items():
        try:
            source = await _source(value, objects, files)
        except _Unfit as reason:
            tables.unfit[name] = str(reason)
        else:
            tables.sources[name] = source
    return tables


class _Unfit(Exception):
    """Why a value is no table."""


async def _source(value: Any, objects: Objects, files: AsyncExitStack) -> Any:
    if value is None:
        raise _Unfit("nothing has set it")
    if isinstance(value, Stored):
        return await _stored(value, objects, files)
    if not isinstance(value, dict):
        return await asyncio.to_thread(table_of, value)
    for key in ("rows", "data"):
        inner = value.get(key)
        if isinstance(inner, Stored):
            return await _stored(inner, objects, files)
        if isinstance(inner, list):
            columns = value.get("columns")
            return await asyncio.to_thread(table_of, inner, columns if isinstance(columns, list) else ())
    return await asyncio.to_thread(table_of, value)


async def _stored(reference: Stored, objects: Objects, files: AsyncExitStack) -> Any:
    media_type = str(reference.get("media_type", MEDIA_TYPE)).partition(";")[0].strip().lower()
    reader = _READERS.get(media_type)
    if media_type not in (ARROW, MEDIA_TYPE) and reader is None:
        raise _Unfit(f"it is a file of type `{media_type}`, and no table")
    if media_type == MEDIA_TYPE:
        return await _source(await value_of(reference, objects), objects, files)
    path = await files.enter_async_context(objects.local(reference))
    return ArrowFile(path) if reader is None else File(reader, path)


def register(cursor: duckdb.DuckDBPyConnection, name: str, source: Any) -> None:
    """Makes the table known under this name, whatever else has it."""
    if isinstance(source, File):
        cursor.execute(f"CREATE OR REPLACE TEMP VIEW {quoted_name(name)} AS {source.query}")
    else:
        cursor.register(name, source)


def as_variable(cursor: duckdb.DuckDBPyConnection, source: Any) -> Any:
    """The table as DuckDB takes it from a variable, where no table of the database has its name."""
    return cursor.sql(source.query) if isinstance(source, File) else source
