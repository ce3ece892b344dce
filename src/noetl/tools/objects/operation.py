"""What the kinds for stored objects do alike: keep what was read, and tell what went wrong."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from noetl.model import Json
from noetl.model.outcome import Outcome, ToolError, succeeded
from noetl.model.reference import ARROW_MEDIA_TYPE, StoredReference
from noetl.ports.results import ResultError
from noetl.ports.tool import Call
from noetl.tools.host.input_rules import Format
from noetl.tools.host.tool_attempt import as_outcome
from noetl.tools.objects.content import file_preview, read_content
from noetl.tools.objects.table_conversion import arrow_columns


async def run_operation(call: Call, work: Callable[[Call], Awaitable[Json]]) -> Outcome:
    """The outcome of the work, within the time of the call."""

    async def within() -> Outcome:
        try:
            async with asyncio.timeout(call.timeout) as bound:
                return succeeded(await work(call))
        except TimeoutError:
            if not bound.expired():
                raise
            message = f"it was not done within {call.timeout:g} s"
            raise ToolError("timeout", message, retryable=True) from None
        except ResultError as error:
            message = f"{error}; {error.hint}" if error.hint else str(error)
            raise ToolError(error.kind, message) from None
        except (FileNotFoundError, NotADirectoryError) as error:
            raise ToolError("not_found", _said(error)) from None
        except PermissionError as error:
            raise ToolError("permission", _said(error)) from None
        except (IsADirectoryError, FileExistsError) as error:
            raise ToolError("input", _said(error)) from None

    return await as_outcome(within())


def _said(error: OSError) -> str:
    if isinstance(error, FileExistsError):  # where a folder was to be made
        return f"{error.filename} is a file, not a folder"
    name = f"{error.filename}: " if error.filename else ""
    return f"{name}{error.strerror or error}"


async def store_file(call: Call, path: Path, media_type: str, **about: Json) -> StoredReference:
    """A file as an object of the execution; it is gone afterwards if it was a draft."""
    preview = await asyncio.to_thread(file_preview, path, media_type)
    async with call.objects.draft() as draft:
        path.rename(draft.path)
        return await draft.keep(media_type, preview=preview, **about)


async def read_value(call: Call, path: Path, form: Format) -> Any:
    """What a file holds, in this format: a value, or the reference to a large table."""
    async with call.objects.draft() as draft:
        found = await asyncio.to_thread(read_content, path, form, draft.path)
        if form != "parquet":
            return found
        columns = await asyncio.to_thread(arrow_columns, draft.path)
        return await draft.keep(ARROW_MEDIA_TYPE, type="list", length=found, columns=list(columns))
