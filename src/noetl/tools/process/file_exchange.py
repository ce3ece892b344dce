"""Large values on their way to a child's code and back: as files, not through the pipe."""

import asyncio
import shutil
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from msgspec import structs

from noetl.guest.frame import CodeAnswer, CodeRequest, InputFile, TableForm, file_mark, replace_file_marks
from noetl.model.json import Json
from noetl.model.reference import ARROW_MEDIA_TYPE, JSON_MEDIA_TYPE, StoredReference, may_hold_marker
from noetl.ports.tool import Call
from noetl.tools.host.bounded_text import text_preview
from noetl.tools.host.read_reference import read_reference
from noetl.tools.host.result_limits import preview_limit


async def run_with_files(
    call: Call, request: CodeRequest, tables: TableForm, run: Callable[[CodeRequest], Awaitable[CodeAnswer]]
) -> CodeAnswer:
    """What `run` makes of the request, with a reference for each file that the result names.

    References among the args come as files, tables in this form. What code that failed has left is
    removed. Raises ResultError.
    """
    # Most args hold no reference: one search in their JSON saves the walk, which would change nothing.
    if not may_hold_marker(request.args):
        return await _run_storing(call, request, run)
    async with AsyncExitStack() as opened:
        args, files = await _mark_references(call, request.args, tables, opened)
        return await _run_storing(call, structs.replace(request, args=args, files=files), run)


async def _run_storing(
    call: Call, request: CodeRequest, run: Callable[[CodeRequest], Awaitable[CodeAnswer]]
) -> CodeAnswer:
    succeeded = False
    try:
        answer = await run(request)
        if answer.result_files and not answer.failure:
            result = await _store_files(call, answer, request.file_prefix)
            answer = structs.replace(answer, result=result)
        succeeded = answer.failure is None
        return answer
    finally:
        if not succeeded:
            prefix = Path(request.file_prefix)
            for path in prefix.parent.glob(f"{prefix.name}-*"):
                path.unlink(missing_ok=True)


async def _mark_references(
    call: Call, args: dict[str, Any], tables: TableForm, opened: AsyncExitStack
) -> tuple[dict[str, Any], list[InputFile]]:
    """The args with a mark for each reference in them, and the files of these while `opened` lasts."""
    files: list[InputFile] = []

    async def mark(value: Any) -> Any:
        if isinstance(value, StoredReference):
            if value.get("media_type", JSON_MEDIA_TYPE) == JSON_MEDIA_TYPE:
                return await mark(await read_reference(value, call.objects))
            path = await opened.enter_async_context(call.objects.local(value))
            files.append(_input_file(path, value, tables))
            return file_mark(len(files) - 1)
        if isinstance(value, dict):
            return {key: await mark(item) for key, item in value.items()}
        if isinstance(value, list):
            return [await mark(item) for item in value]
        return value

    return {name: await mark(value) for name, value in args.items()}, files


def _input_file(path: Path, reference: StoredReference, tables: TableForm) -> InputFile:
    if reference["media_type"] == ARROW_MEDIA_TYPE:
        return InputFile(path=str(path), form=tables)
    return InputFile(path=str(path), form="path", details=dict(reference))


async def _store_files(call: Call, answer: CodeAnswer, prefix: str) -> Json:
    """The result with a reference in the place of each file that it names."""
    references = []
    for number, file in enumerate(answer.result_files):
        async with call.objects.draft() as draft:
            await asyncio.to_thread(shutil.move, f"{prefix}-{number}", draft.path)
            preview = text_preview(file.preview.encode(), preview_limit(call), call.mask)
            references.append(await draft.keep(file.media_type, preview=preview, **file.details))
    result: Json = replace_file_marks(answer.result, references)
    return result
