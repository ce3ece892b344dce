"""Large values on their way to users' Python and back: as files, not through the pipe."""

import asyncio
import shutil
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Literal, TypeAlias

from noetl.guest.frame import Answer, File, file_mark, with_files
from noetl.kernel.references.reference_builder import preview_of
from noetl.model import Json
from noetl.model.reference import ARROW, MEDIA_TYPE, Stored
from noetl.ports.tool import Call
from noetl.tools.host.read_reference import value_of
from noetl.tools.sql.statement_result import preview_limit

Form: TypeAlias = Literal["rows", "arrow", "pandas"]


async def with_marks(call: Call, form: Form, opened: AsyncExitStack) -> tuple[dict[str, Any], list[File]]:
    """The args with a mark for each reference in them, and the files of these while `opened` lasts.

    Tables come in this form. Raises ResultError.
    """
    files: list[File] = []

    async def marked(value: Any) -> Any:
        if isinstance(value, Stored):
            if value.get("media_type", MEDIA_TYPE) == MEDIA_TYPE:
                return await marked(await value_of(value, call.objects))
            path = await opened.enter_async_context(call.objects.local(value))
            files.append(_file(path, value, form))
            return file_mark(len(files) - 1)
        if isinstance(value, dict):
            return {key: await marked(item) for key, item in value.items()}
        if isinstance(value, list):
            return [await marked(item) for item in value]
        return value

    return {name: await marked(value) for name, value in call.args.items()}, files


def _file(path: Path, reference: Stored, form: Form) -> File:
    if reference["media_type"] == ARROW:
        return File(path=str(path), form=form)
    return File(path=str(path), form="path", about=dict(reference))


async def result_of(call: Call, answer: Answer, objects: Path) -> Json:
    """The result with a reference in the place of each file that it names. Raises ResultError."""
    stored = []
    for number, made in enumerate(answer.made):
        async with call.objects.draft() as draft:
            await asyncio.to_thread(shutil.move, f"{objects}-{number}", draft.path)
            preview = preview_of(made.preview.encode(), preview_limit(call))
            stored.append(await draft.keep(made.media_type, preview=preview, **made.about))
    found: Json = with_files(answer.result, stored)
    return found


def remove_files(objects: Path) -> None:
    """Removes what code that failed has left."""
    for path in objects.parent.glob(f"{objects.name}-*"):
        path.unlink(missing_ok=True)
