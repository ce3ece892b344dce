"""What the kinds for stored objects share: the run of one operation, what it reads, and what `put` writes."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from noetl.model.json import Json
from noetl.model.outcome import Outcome, ToolError, succeeded
from noetl.model.reference import ARROW_MEDIA_TYPE, JSON_MEDIA_TYPE, StoredReference
from noetl.ports.results import ResultError
from noetl.ports.tool import Call
from noetl.tools.host.input_rules import Format
from noetl.tools.host.tool_attempt import as_outcome
from noetl.tools.objects.content import (
    content_file,
    file_preview,
    format_by_suffix,
    media_type_by_suffix,
    read_content,
)
from noetl.tools.objects.object_inputs import ObjectInputs
from noetl.tools.objects.table_conversion import arrow_columns


async def run_operation(call: Call, work: Callable[[Call], Awaitable[Json]]) -> Outcome:
    """The outcome of the work, within the time of the call."""

    async def within() -> Outcome:
        try:
            async with asyncio.timeout(call.timeout) as bound:
                return succeeded(await work(call))
        except TimeoutError:
            if not bound.expired():
                raise  # of a client, not of ours
            message = f"it was not done within {call.timeout:g} s"
            raise ToolError("timeout", message, retryable=True) from None
        except ResultError as error:
            message = f"{error}; {error.hint}" if error.hint else str(error)
            raise ToolError(error.kind, message, retryable=error.retryable) from None
        except (FileNotFoundError, NotADirectoryError) as error:
            raise ToolError("not_found", _describe_os_error(error)) from None
        except PermissionError as error:
            raise ToolError("permission", _describe_os_error(error)) from None
        except (IsADirectoryError, FileExistsError) as error:
            raise ToolError("input", _describe_os_error(error)) from None

    return await as_outcome(within())


def _describe_os_error(error: OSError) -> str:
    if isinstance(error, FileExistsError):  # where a folder was to be made
        return f"{error.filename} is a file, not a folder"
    name = f"{error.filename}: " if error.filename else ""
    return f"{name}{error.strerror or error}"


async def store_file(call: Call, path: Path, media_type: str, **attributes: Json) -> StoredReference:
    """A file as an object of the execution; it is gone afterwards if it was a draft."""
    preview = await asyncio.to_thread(file_preview, path, media_type, call.mask)
    async with call.objects.draft() as draft:
        path.rename(draft.path)
        return await draft.keep(media_type, preview=preview, **attributes)


async def read_value(call: Call, path: Path, file_format: Format) -> Any:
    """What a file holds, in this format: a value, or the reference to a large table."""
    async with call.objects.draft() as draft:
        content = await asyncio.to_thread(read_content, path, file_format, draft.path)
        if file_format != "parquet":
            return content
        columns = await asyncio.to_thread(arrow_columns, draft.path)
        return await draft.keep(ARROW_MEDIA_TYPE, type="list", length=content, columns=list(columns))


@asynccontextmanager
async def open_put_source(call: Call, inputs: ObjectInputs) -> AsyncIterator[tuple[Path, str]]:
    """The file to write, and its media type. Raises ToolError, ResultError."""
    source = call.inputs.get("source")
    if isinstance(source, str):
        path = local_path(call, source)
        if not path.is_file():
            raise ToolError("not_found", f"there is no file {path}")
        yield path, media_type_by_suffix(source)
        return
    if source is not None and not isinstance(source, StoredReference):
        raise ToolError("input", "`source` is a file, or a reference that an earlier task gave")
    content = call.inputs.get("content") if source is None else source
    file_format = inputs.format or _format_for(inputs.url, content)
    async with content_file(call.objects, content, file_format) as (path, media_type):
        yield path, media_type


def local_path(call: Call, url: str) -> Path:
    """The file that a path or a `file://` address names. Raises ToolError."""
    path = url
    if url.startswith("file://"):
        parts = urlsplit(url)
        path = unquote(parts.netloc + parts.path)
    if not path or "\0" in path:
        raise ToolError("input", f"`{url}` is no path")
    return call.folder / path


def _format_for(url: str, content: object) -> Format | None:
    """The format that an address asks for, where the content does not say otherwise."""
    file_format = format_by_suffix(url)
    if file_format == "text" or not isinstance(content, StoredReference):
        return file_format if file_format != "text" or isinstance(content, str) else None
    # Objects are written as they are; only what stands for a value has a form to choose.
    return file_format if content["media_type"] in (JSON_MEDIA_TYPE, ARROW_MEDIA_TYPE) else None
