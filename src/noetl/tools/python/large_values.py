"""Large values on their way to users' Python and back: as files, not through the pipe."""

import asyncio
import shutil
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Literal, TypeAlias

from noetl.guest.frame import CodeAnswer, InputFile, file_mark, replace_file_marks
from noetl.kernel.references.reference_builder import value_preview
from noetl.model import Json
from noetl.model.reference import ARROW_MEDIA_TYPE, JSON_MEDIA_TYPE, StoredReference
from noetl.ports.tool import Call
from noetl.tools.host.read_reference import read_reference
from noetl.tools.sql.statement_result import preview_limit

TableForm: TypeAlias = Literal["rows", "arrow", "pandas"]


async def mark_references(
    call: Call, form: TableForm, opened: AsyncExitStack
) -> tuple[dict[str, Any], list[InputFile]]:
    """The args with a mark for each reference in them, and the files of these while `opened` lasts.

    Tables come in this form. Raises ResultError.
    """
    files: list[InputFile] = []

    async def marked(value: Any) -> Any:
        if isinstance(value, StoredReference):
            if value.get("media_type", JSON_MEDIA_TYPE) == JSON_MEDIA_TYPE:
                return await marked(await read_reference(value, call.objects))
            path = await opened.enter_async_context(call.objects.local(value))
            files.append(_file(path, value, form))
            return file_mark(len(files) - 1)
        if isinstance(value, dict):
            return {key: await marked(item) for key, item in value.items()}
        if isinstance(value, list):
            return [await marked(item) for item in value]
        return value

    return {name: await marked(value) for name, value in call.args.items()}, files


def _file(path: Path, reference: StoredReference, form: TableForm) -> InputFile:
    if reference["media_type"] == ARROW_MEDIA_TYPE:
        return InputFile(path=str(path), form=form)
    return InputFile(path=str(path), form="path", about=dict(reference))


async def store_result_files(call: Call, answer: CodeAnswer, objects: Path) -> Json:
    """The result with a reference in the place of each file that it names. Raises ResultError."""
    stored = []
    for number, made in enumerate(answer.made):
        async with call.objects.draft() as draft:
            await asyncio.to_thread(shutil.move, f"{objects}-{number}", draft.path)
            preview = value_preview(made.preview.encode(), preview_limit(call))
            stored.append(await draft.keep(made.media_type, preview=preview, **made.about))
    found: Json = replace_file_marks(answer.result, stored)
    return found


def remove_result_files(objects: Path) -> None:
    """Removes what code that failed has left."""
    for path in objects.parent.glob(f"{objects.name}-*"):
        path.unlink(missing_ok=True)
