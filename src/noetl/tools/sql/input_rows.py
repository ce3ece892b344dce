"""The rows that a SQL task is given: values, or a stored table, batch by batch."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeAlias

from noetl.model.outcome import ToolError
from noetl.model.reference import ARROW_MEDIA_TYPE, JSON_MEDIA_TYPE, StoredReference, decode_value, unescape
from noetl.ports.tool import Call
from noetl.tools.host.extras import install_command
from noetl.tools.sql.column import DriverRow

BATCH = 1_000
"""Rows that are handed to a driver at a time."""

Keys: TypeAlias = Sequence[str | int]


class InputRows:
    """Rows in batches. `columns` are the names of all their values; None if the rows are lists."""

    def __init__(self, columns: list[str] | None, batches: Callable[[], Iterator[Sequence[Any]]]) -> None:
        self.columns = columns
        self._batches = batches

    def pick(self, keys: Keys, *, lenient: bool = False) -> Iterator[Sequence[DriverRow]]:
        """The values under these keys of each row. A missing one is null, or a ToolError if not lenient."""
        if not keys:
            yield from ([()] * len(batch) for batch in self._batches())
            return
        # The fast path of `_pick_key_by_key`: most batches lack nothing, and an itemgetter takes all values
        # of a row without a step of Python for each. One whose rows do lack something is picked again.
        picker: Callable[[Any], DriverRow] = (
            itemgetter(*keys) if len(keys) > 1 else lambda row: (row[keys[0]],)
        )
        start = 0
        for batch in self._batches():
            try:
                yield list(map(picker, batch))
            except (KeyError, IndexError):
                yield [
                    _pick_key_by_key(row, keys, number, lenient=lenient)
                    for number, row in enumerate(batch, start=start + 1)
                ]
            start += len(batch)

    def columns_to_load(self, named: list[str]) -> list[str]:
        """The columns to load: those that are named, or all that the rows have; none of rows that are lists.

        ToolError if there are rows and nothing in them.
        """
        if not named and self.columns == [] and any(map(len, self._batches())):
            raise ToolError("input", "the rows are mappings without keys: there is nothing to load")
        return named or self.columns or []

    def load_batches(self, columns: Sequence[str]) -> Iterator[Sequence[DriverRow]]:
        """The rows as values for these columns: by name, and null where there is none; lists as they are.

        ToolError if a list has too many values or too few; without columns the first says how many.
        """
        if self.columns is not None:
            yield from self.pick([self._key(name) for name in columns], lenient=True)
            return
        start, width = 0, len(columns)
        for batch in self._batches():
            width = width or len(batch[0]) or 1
            if set(map(len, batch)) != {width}:
                odd = next(index for index, row in enumerate(batch) if len(row) != width)
                message = f"row {start + odd + 1} has {len(batch[odd])} values for {width} columns"
                raise ToolError("input", message)
            yield batch
            start += len(batch)

    def _key(self, name: str) -> str:
        """What the rows call a column: it may be in other case, as SQL has it."""
        known = self.columns or []
        candidates = [key for key in known if key.lower() == name.lower()]
        return candidates[0] if name not in known and len(candidates) == 1 else name


def _pick_key_by_key(row: Any, keys: Keys, number: int, *, lenient: bool) -> DriverRow:
    values = []
    for key in keys:
        try:
            values.append(row[key])
        except KeyError:
            if not lenient:
                raise ToolError("input", f"row {number} has no `{key}`") from None
            values.append(None)
        except IndexError:
            raise ToolError("input", f"row {number} has only {len(row)} values") from None
    return values


@asynccontextmanager
async def open_input_rows(call: Call) -> AsyncIterator[InputRows]:
    """The input `rows` of a call. ToolError if they are no rows, ResultError if they cannot be read."""
    rows: Any = call.inputs["rows"]
    if not isinstance(rows, StoredReference):
        yield rows_from_list(rows)
        return
    media_type = rows.get("media_type")
    if media_type not in (ARROW_MEDIA_TYPE, JSON_MEDIA_TYPE):
        message = f"`rows` is a stored object of type `{media_type}`, which is no table"
        raise ToolError("input", f"{message}: read it with `duckdb` or `python` first")
    async with call.objects.local(rows) as path:
        read = _rows_from_json if media_type == JSON_MEDIA_TYPE else _rows_from_arrow
        yield await asyncio.to_thread(read, path)


def _rows_from_json(path: Path) -> InputRows:
    return rows_from_list(unescape(decode_value(path.read_bytes())))


def _rows_from_arrow(path: Path) -> InputRows:
    try:
        from noetl.tools.sql.arrow_stream import read_arrow_rows  # noqa: PLC0415 - imports pyarrow, an extra
    except ImportError:
        message = f"`rows` is an Arrow table, and pyarrow is not installed: {install_command('arrow')}"
        raise ToolError("tool", message) from None
    names, batches = read_arrow_rows(path, BATCH)
    return _PositionalRows(names, batches)


class _PositionalRows(InputRows):
    """Rows as tuples in the order of the columns."""

    def pick(self, keys: Keys, *, lenient: bool = False) -> Iterator[Sequence[DriverRow]]:
        assert self.columns is not None  # noqa: S101 - an Arrow table has names
        indexes = {name: index for index, name in enumerate(self.columns)}
        for key in keys:
            if isinstance(key, str) and key not in indexes:
                raise ToolError("input", f"the table has no column `{key}`: it has {', '.join(indexes)}")
        return super().pick([indexes[key] if isinstance(key, str) else key for key in keys], lenient=lenient)


def rows_from_list(rows: Any) -> InputRows:
    """Rows that are values. ToolError of kind `input` if they are none."""
    if not isinstance(rows, list):
        raise ToolError("input", f"`rows` is no list of rows, but of type `{type(rows).__name__}`")
    kind: Any = type(rows[0]) if rows else dict
    if kind not in (dict, list):
        raise ToolError("input", f"row 1 is neither a mapping nor a list, but of type `{kind.__name__}`")

    def batches() -> Iterator[Sequence[Any]]:
        for start in range(0, len(rows), BATCH):
            batch = rows[start : start + BATCH]
            if set(map(type, batch)) != {kind}:
                odd = next(index for index, row in enumerate(batch) if type(row) is not kind)
                words: dict[Any, str] = {dict: "a mapping", list: "a list"}
                wrong = words.get(type(batch[odd]), f"of type `{type(batch[odd]).__name__}`")
                raise ToolError("input", f"row {start + odd + 1} is {wrong}, and the first is {words[kind]}")
            yield batch

    if kind is list:
        return InputRows(None, batches)
    return InputRows(_all_keys(batches()), batches)


def _all_keys(batches: Iterator[Sequence[Any]]) -> list[str]:
    """All keys of the rows, those of the first in front."""
    first: list[str] = []
    names: set[str] = set()
    for batch in batches:
        first = first or list(batch[0])
        names.update(*batch)
    return first + sorted(names.difference(first))
