"""What objects hold, by format: from values and references to files, and back."""

import asyncio
import base64
import binascii
import csv
import json
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import Any

import msgspec

from noetl.model.json import Json
from noetl.model.normalisation import NotJson, normalise
from noetl.model.outcome import ToolError
from noetl.model.reference import (
    ARROW_MEDIA_TYPE,
    JSON_MEDIA_TYPE,
    MARKER,
    StoredReference,
    may_hold_marker,
    unescape,
    wrap_references,
)
from noetl.model.table_reader import table_rows
from noetl.ports.results import ExecutionObjects
from noetl.ports.tool import TextMask
from noetl.tools.host.bounded_text import MARGIN, text_preview
from noetl.tools.host.input_rules import Format
from noetl.tools.objects.table_conversion import convert_table, read_parquet, write_parquet

MAX_VALUE_BYTES = 64 << 20
"""The most bytes that are read as a value; more is worked on by reference."""
PREVIEW_BYTES = 1_024

MEDIA_TYPES: dict[str, str] = {
    # Not the type of values in the log: a user's file never stands for one.
    "json": "application/json; charset=utf-8",
    "text": "text/plain; charset=utf-8",
    "csv": "text/csv; charset=utf-8",
    "parquet": "application/vnd.apache.parquet",
    "bytes": "application/octet-stream",
}
_KEY_END = f'{MARKER}"'.encode()
"""How a key ends that marks a reference, or escapes a user's key that looks like one."""
_SUFFIXES: dict[str, Format] = {
    ".json": "json",
    ".txt": "text",
    ".md": "text",
    ".log": "text",
    ".csv": "csv",
    ".parquet": "parquet",
}


def format_by_suffix(address: str) -> Format | None:
    """What the end of an address says."""
    return _SUFFIXES.get(Path(address).suffix.lower())


def media_type_by_suffix(address: str) -> str:
    return MEDIA_TYPES[format_by_suffix(address) or "bytes"]


@asynccontextmanager
async def content_file(
    objects: ExecutionObjects, content: Any, file_format: Format | None
) -> AsyncIterator[tuple[Path, str]]:
    """A file with a value, or with what a reference stands for, in this format; and its media type.

    Raises ToolError, ResultError.
    """
    # The fast path of `_write_content`: bytes that are in the format already are not read, parsed and written
    # anew, so that an object of any size passes through.
    if isinstance(content, StoredReference) and (media_type := _unchanged_media_type(content, file_format)):
        async with objects.local(content) as path:
            if content["media_type"] != JSON_MEDIA_TYPE or not await asyncio.to_thread(_has_marker, path):
                yield path, media_type
                return
    async with objects.draft() as draft:
        yield draft.path, await _write_content(objects, content, file_format, draft.path)


def _unchanged_media_type(reference: StoredReference, file_format: Format | None) -> str:
    """The media type of what a reference stands for, if its bytes are in this format already."""
    media_type: str = reference["media_type"]
    if media_type == JSON_MEDIA_TYPE:
        return MEDIA_TYPES["json"] if file_format in (None, "json") else ""
    if file_format == "bytes" and media_type != ARROW_MEDIA_TYPE:
        return media_type
    return media_type if file_format is None or media_type == MEDIA_TYPES[file_format] else ""


async def _write_content(
    objects: ExecutionObjects, content: Any, file_format: Format | None, target: Path
) -> str:
    if (
        isinstance(content, StoredReference)
        and content["media_type"] == ARROW_MEDIA_TYPE
        and file_format is not None
    ):
        if file_format == "text" or file_format == "bytes":  # noqa: PLR1714 - only so do the types follow
            raise ToolError(
                "input", f"a table cannot be written as {file_format}: choose csv, json or parquet"
            )
        async with objects.local(content) as path:
            await asyncio.to_thread(convert_table, path, file_format, target)
        return MEDIA_TYPES[file_format]
    value = await _resolve(objects, content)
    if isinstance(value, StoredReference):
        raise ToolError(
            "input", f"the object is `{value['media_type']}`: it cannot be written as {file_format}"
        )
    file_format = file_format or ("text" if isinstance(value, str) else "json")
    await asyncio.to_thread(_write_value, value, file_format, target)
    return MEDIA_TYPES[file_format]


def _write_value(value: Any, file_format: Format, target: Path) -> None:
    match file_format:
        case "json":
            target.write_bytes(msgspec.json.encode(value))
        case "text":
            if not isinstance(value, str):
                raise ToolError("input", f"`format: text` writes text, not {_describe_type(value)}")
            target.write_bytes(value.encode())
        case "bytes":
            target.write_bytes(_decode_base64(value))
        case "csv":
            _write_csv(_row_list(value, file_format), target)
        case "parquet":
            write_parquet(_row_list(value, file_format), target)


def read_content(path: Path, file_format: Format, target: Path) -> Json | int:
    """The value that a file holds; for parquet, its number of rows, which are written to `target` as a table.

    Raises ToolError.
    """
    if file_format == "parquet":
        return read_parquet(path, target)
    if (size := path.stat().st_size) > MAX_VALUE_BYTES:
        hint = "leave out `format` and hand on the reference"
        raise ToolError("limit", f"{size:,} bytes are too many for a value ({MAX_VALUE_BYTES:,}): {hint}")
    try:
        match file_format:
            case "json":
                return normalise(json.loads(path.read_bytes()))
            case "text":
                return path.read_bytes().decode("utf-8-sig")
            case _:
                with path.open(encoding="utf-8-sig", newline="") as file:
                    return list(_csv_rows(file))
    except UnicodeDecodeError as error:
        raise ToolError(
            "input", f"it is not {file_format} in UTF-8: {error.reason} at byte {error.start}"
        ) from None
    except (ValueError, csv.Error, NotJson, RecursionError) as error:
        raise ToolError("input", f"it is not {file_format}: {error}") from None


def file_preview(path: Path, media_type: str, mask: TextMask) -> str:
    """A readable beginning of a file, if it is text."""
    if not media_type.endswith("charset=utf-8"):
        return ""
    with path.open("rb") as file:
        return text_preview(file.read(PREVIEW_BYTES + MARGIN), PREVIEW_BYTES, mask)


def _csv_rows(file: TextIOWrapper) -> Iterator[dict[str, Json]]:
    csv.field_size_limit(MAX_VALUE_BYTES)  # Python's own limit is 128 KiB
    rows = csv.DictReader(file, restkey="…")
    for row in rows:
        if None in row.values() or "…" in row:
            raise ValueError(f"line {rows.line_num} has not as many fields as the first")
        yield dict(row)


def _write_csv(rows: list[dict[str, Json]], target: Path) -> None:
    names = list(dict.fromkeys(name for row in rows for name in row))
    with target.open("w", encoding="utf-8", newline="") as file:
        out = csv.writer(file)
        out.writerow(names)
        for row in rows:
            out.writerow([_cell(row.get(name)) for name in names])


def _cell(value: Json) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _row_list(value: Any, file_format: str) -> list[dict[str, Json]]:
    if isinstance(value, Mapping) and isinstance(value.get("rows"), list):
        value = value["rows"]
    if not isinstance(value, list) or not all(isinstance(row, dict) for row in value):
        actual = "a list of other values" if isinstance(value, list) else _describe_type(value)
        raise ToolError("input", f"`format: {file_format}` writes a list of mappings, not {actual}")
    return value


def _decode_base64(value: Any) -> bytes:
    if isinstance(value, dict) and value.get("encoding") == "base64":
        value = value.get("content")
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, TypeError, ValueError):
        raise ToolError("input", "`format: bytes` writes bytes as base64 text") from None


def _describe_type(value: Any) -> str:
    names = {list: "a list", dict: "a mapping", str: "text", type(None): "null", bool: "true or false"}
    return names.get(type(value), "a number")


async def _resolve(objects: ExecutionObjects, value: Any) -> Any:
    """The value with what is stored apart in its place; objects that are no values stay references."""
    if isinstance(value, StoredReference):
        if value["media_type"] not in (ARROW_MEDIA_TYPE, JSON_MEDIA_TYPE):
            return value
        if value["size"] > MAX_VALUE_BYTES:
            raise ToolError("limit", f"a part of {value['size']:,} bytes is too large: hand it on by itself")
        async with objects.local(value) as path:
            stored = _stored_rows(path) if value["media_type"] == ARROW_MEDIA_TYPE else _stored_value(path)
        return await _resolve(objects, stored)
    if not may_hold_marker(value):
        return value
    if isinstance(value, dict):
        return {key: await _resolve(objects, item) for key, item in value.items()}
    return [await _resolve(objects, item) for item in value]


def _stored_rows(path: Path) -> Json:
    return list(table_rows(path.read_bytes()))


def _stored_value(path: Path) -> Any:
    if path.stat().st_size > MAX_VALUE_BYTES:
        raise ToolError(
            "limit", f"a value of {path.stat().st_size:,} bytes cannot be turned into that format"
        )
    return unescape(wrap_references(msgspec.json.decode(path.read_bytes())))


def _has_marker(path: Path) -> bool:
    """Whether something in a stored value stands for something else, or is escaped."""
    tail = b""
    with path.open("rb") as file:
        while piece := file.read(1 << 20):
            if _KEY_END in tail + piece:
                return True
            tail = piece[-len(_KEY_END) :]  # it may lie across two pieces
    return False
