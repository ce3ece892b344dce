"""What `put` writes: content in a format, a file of the user's, or a reference."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import unquote, urlsplit

from noetl.model.outcome import ToolError
from noetl.model.reference import StoredReference
from noetl.ports.tool import Call
from noetl.tools.host.input_rules import Format
from noetl.tools.objects.content import content_file, format_by_suffix, media_type_by_suffix
from noetl.tools.objects.object_inputs import ObjectInputs


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
    async with content_file(call.objects, content, inputs.format or _told_by(inputs.url, content)) as found:
        yield found


def local_path(call: Call, url: str) -> Path:
    """The file that a path or a `file://` address names. Raises ToolError."""
    path = url
    if url.startswith("file://"):
        parts = urlsplit(url)
        path = unquote(parts.netloc + parts.path)
    if not path or "\0" in path:
        raise ToolError("input", f"`{url}` is no path")
    return call.folder / path


def _told_by(url: str, content: object) -> Format | None:
    """The format that an address asks for, where the content does not say otherwise."""
    form = format_by_suffix(url)
    if form == "text" or not isinstance(content, StoredReference):
        return form if form != "text" or isinstance(content, str) else None
    # Objects are written as they are; only what stands for a value has a form to choose.
    values = ("application/json", "application/vnd.apache.arrow.stream")
    return form if content["media_type"] in values else None
