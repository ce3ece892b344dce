"""Runs the kind `file`."""

import asyncio
import os
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

from noetl.model.json import Json
from noetl.model.outcome import Outcome, ToolError
from noetl.ports.tool import Call
from noetl.tools.file.kind import FileInputs, check
from noetl.tools.host.tool_attempt import inputs_of
from noetl.tools.objects.content import media_type_by_suffix
from noetl.tools.objects.operation import local_path, open_put_source, read_value, run_operation, store_file

MAX_LISTED = 100_000


class FileTool:
    """Files of the machine that the worker runs on."""

    async def run(self, call: Call) -> Outcome:
        return await run_operation(call, _run_action)

    async def close(self) -> None:
        """Nothing is held."""


async def _run_action(call: Call) -> Any:
    inputs = inputs_of(call, FileInputs)
    for fault in check(dict(call.inputs), {}):
        raise ToolError("input", fault.message)
    path = local_path(call, inputs.url)
    match inputs.action:
        case "get":
            return await _get(call, inputs, _readable_path(path, inputs.url))
        case "put":
            async with open_put_source(call, inputs) as (source, _):
                return _describe(call, path, await asyncio.to_thread(_replace, source, path))
        case "copy":
            target = local_path(call, inputs.to or "")
            return _describe(call, target, await asyncio.to_thread(_replace, _check_exists(path), target))
        case "delete":
            return {"url": _playbook_path(call, path), "deleted": _delete(path)}
        case "list":
            return await asyncio.to_thread(_list, call, path, inputs.url)


def _readable_path(path: Path, url: str) -> Path:
    """The file beside the playbook, or else in the working directory, as with scripts."""
    return path if path.exists() or not Path(url).is_file() else Path(url).absolute()


async def _get(call: Call, inputs: FileInputs, path: Path) -> Any:
    if inputs.format not in (None, "bytes"):
        return await read_value(call, _check_exists(path), inputs.format)
    async with call.objects.draft() as draft:
        await asyncio.to_thread(shutil.copyfile, _check_exists(path), draft.path)
        media_type = media_type_by_suffix(path.name)
        return await store_file(call, draft.path, media_type, name=path.name, url=_playbook_path(call, path))


def _check_exists(path: Path) -> Path:
    """The file, if it is there. Raises ToolError."""
    if not path.exists():
        raise ToolError("not_found", f"there is no file {path}")
    _check_ordinary(path)
    return path


def _check_ordinary(path: Path) -> None:
    """A device or a pipe would be read without end, or replaced by a file."""
    if path.is_dir():
        raise ToolError("input", f"{path} is a folder")
    if path.exists() and not path.is_file():
        raise ToolError("input", f"{path} is no ordinary file")


def _delete(path: Path) -> bool:
    try:
        path.unlink()
    except FileNotFoundError:
        return False
    return True


def _playbook_path(call: Call, path: Path) -> str:
    """The path as a playbook writes it."""
    return str(path.relative_to(call.folder)) if path.is_relative_to(call.folder) else str(path)


def _replace(source: Path, path: Path) -> int:
    """The file, whole and durable or as it was before; its folder is made. How large it is."""
    _check_ordinary(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    # Beside it: only within one file system is a rename atomic.
    beside = path.with_name(f".{path.name[:100]}-{uuid4().hex}")
    try:
        shutil.copyfile(source, beside)
        with beside.open("rb") as file:
            os.fsync(file.fileno())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
    return path.stat().st_size


def _describe(call: Call, path: Path, size: int) -> dict[str, Json]:
    return {"url": _playbook_path(call, path), "name": path.name, "size": size}


def _list(call: Call, start: Path, url: str) -> Json:
    files: list[Json] = []
    for path in sorted(_files_below(start)):
        status = path.stat()
        modified_at = datetime.fromtimestamp(status.st_mtime, UTC).isoformat(timespec="seconds")
        files.append({**_describe(call, path, status.st_size), "modified_at": modified_at})
        if len(files) > MAX_LISTED:
            raise ToolError("limit", f"more than {MAX_LISTED:,} files begin with `{url}`")
    return files


def _files_below(start: Path) -> Iterator[Path]:
    """The files in a folder and in those below it; or, if it is none, those whose path begins so."""
    inside = start.is_dir()
    for folder, _, names in os.walk(start if inside else start.parent):
        for name in names:
            path = Path(folder, name)
            if (inside or str(path).startswith(str(start))) and path.is_file():
                yield path
