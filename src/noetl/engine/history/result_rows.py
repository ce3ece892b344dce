"""Some rows of a stored value, without all of it as Python objects."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Raw

from noetl.kernel.expression_reads import truncate_value
from noetl.model.errors import NoetlError
from noetl.model.secret import printable_value
from noetl.model.table_reader import is_table, table_rows
from noetl.ports.execution_views import ResultRows
from noetl.ports.results import ResultStore
from noetl.stores.results.result_reader import read_table_rows


class NoSuchPart(NoetlError):
    """A stored value has nothing at this path."""


async def read_result_rows(
    results: ResultStore, key: str, path: Sequence[str], offset: int, limit: int
) -> ResultRows:
    """The rows from `offset` on of what lies at a path in a stored value. Raises ResultError, NoSuchPart."""
    async with results.local(key) as file:
        return await asyncio.to_thread(_rows_of_file, file, path, offset, limit)


def _rows_of_file(file: Path, path: Sequence[str], offset: int, limit: int) -> ResultRows:
    with file.open("rb") as opened:
        if is_table(opened.read(8)):
            return _table_page(file, path, offset, limit)
    data = file.read_bytes()
    try:
        value = _part_at(Raw(data), path)
        return _value_page(value, offset, limit)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise NoSuchPart("what is stored is neither JSON nor a table: read its bytes") from None


def _table_page(file: Path, path: Sequence[str], offset: int, limit: int) -> ResultRows:
    if path:
        raise NoSuchPart(f"a table has no part `{path[0]}`")
    # One more than is asked for tells whether there is one; how many there are, only reading all of it would.
    rows = table_rows(read_table_rows(file, offset, offset + limit + 1))
    more = len(rows) > limit
    return _page("table", rows[:limit], offset, None if more else offset + len(rows), more=more)


def _part_at(value: Raw, path: Sequence[str]) -> Raw:
    """What is not on the way is passed over as bytes."""
    for key in path:
        match bytes(value).lstrip()[:1]:
            case b"{":
                entries = msgspec.json.decode(value, type=dict[str, Raw])
                part = entries.get(key)
            case b"[" if key.isascii() and key.isdigit() and len(key) < 16:
                items = msgspec.json.decode(value, type=list[Raw])
                part = items[int(key)] if int(key) < len(items) else None
            case _:
                part = None
        if part is None:
            raise NoSuchPart(f"the stored value has no part `{key}`")
        value = part
    return value


def _value_page(value: Raw, offset: int, limit: int) -> ResultRows:
    end = offset + limit
    match bytes(value).lstrip()[:1]:
        case b"[":
            items = msgspec.json.decode(value, type=list[Raw])
            rows: list[Any] = [msgspec.json.decode(item) for item in items[offset:end]]
            return _page("list", rows, offset, len(items), more=end < len(items))
        case b"{":
            entries = list(msgspec.json.decode(value, type=dict[str, Raw]).items())
            rows = [{"key": key, "value": msgspec.json.decode(item)} for key, item in entries[offset:end]]
            return _page("mapping", rows, offset, len(entries), more=end < len(entries))
        case b'"':
            lines = msgspec.json.decode(value, type=str).splitlines()
            return _page("text", list(lines[offset:end]), offset, len(lines), more=end < len(lines))
        case _:
            return _page("value", [msgspec.json.decode(value)][offset:end], offset, 1, more=False)


def _page(
    kind: Literal["list", "table", "mapping", "text", "value"],
    rows: list[Any],
    offset: int,
    total: int | None,
    *,
    more: bool,
) -> ResultRows:
    printed = [truncate_value(printable_value(row)) for row in rows]
    columns: dict[str, None] = {}
    if kind in ("list", "table") and printed and all(isinstance(row, dict) for row in printed):
        columns = {name: None for row in printed for name in row}
    return ResultRows(
        type=kind,
        columns=list(columns),
        offset=offset,
        total=total,
        rows=printed,
        next_offset=offset + len(rows) if more else None,
    )
