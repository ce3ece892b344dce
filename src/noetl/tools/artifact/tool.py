"""Runs the kind `artifact`."""

import asyncio
import shutil
from pathlib import Path
from typing import Any

from noetl.model.outcome import Outcome, ToolError
from noetl.model.reference import (
    HOLDS_SECRETS,
    JSON_MEDIA_TYPE,
    MARKER,
    OWN_STORE,
    StoredReference,
    object_reference,
)
from noetl.ports.tool import Call
from noetl.tools.artifact.kind import ArtifactInputs, check
from noetl.tools.host.input_rules import Format
from noetl.tools.host.read_reference import read_reference
from noetl.tools.host.tool_attempt import inputs_of
from noetl.tools.objects.content import MEDIA_TYPES, content_file, file_preview
from noetl.tools.objects.operation import read_value, run_operation

_ABOUT_VALUES = ("type", "length", "columns", "preview", "extracted", "absent")
"""Fields of a reference that say something of the value it stands for."""


class ArtifactTool:
    """Objects with names that every execution can read."""

    async def run(self, call: Call) -> Outcome:
        return await run_operation(call, _run_action)

    async def close(self) -> None:
        """Nothing is held."""


async def _run_action(call: Call) -> Any:
    inputs = inputs_of(call, ArtifactInputs)
    for fault in check(dict(call.inputs), {}):
        raise ToolError("input", fault.message)
    store = inputs.store if inputs.store and inputs.store != OWN_STORE else ""
    key = inputs.key or ""
    if inputs.key == "" and inputs.action != "list":
        raise ToolError("input", "`key` is empty")
    try:
        match inputs.action:
            case "put":
                return await _put(call, inputs, store)
            case "get":
                return await _get(call, inputs, store)
            case "list":
                return list(await call.objects.artifacts(key, store))
            case "delete":
                key = key or _name_in(call.inputs.get("ref"))
                return {"key": key, "deleted": await call.objects.withdraw(key, store)}
    except ValueError as error:
        raise ToolError("input", str(error)) from None


async def _put(call: Call, inputs: ArtifactInputs, store: str) -> StoredReference:
    content = call.inputs.get("content")
    file_format = inputs.format
    async with content_file(call.objects, content, file_format) as (path, media_type):
        is_unchanged = isinstance(content, StoredReference) and content["media_type"] == media_type
        reference = content if isinstance(content, StoredReference) and is_unchanged else None
        if reference is None:
            async with call.objects.draft() as draft:
                preview = file_preview(path, media_type, call.mask)
                await asyncio.to_thread(_link_or_copy, path, draft.path)
                reference = await draft.keep(media_type, preview=preview)
    if not inputs.key:
        return reference
    entry = await call.objects.publish(inputs.key, reference, store)
    return StoredReference({**reference, "name": inputs.key, "created_at": entry["created_at"]})


def _link_or_copy(path: Path, target: Path) -> None:
    try:
        target.hardlink_to(path)
    except OSError:
        shutil.copyfile(path, target)


async def _get(call: Call, inputs: ArtifactInputs, store: str) -> Any:
    if inputs.key is not None:
        published = await call.objects.published(inputs.key, store)
        if published is None:
            in_store = f" in the store `{store}`" if store else ""
            raise ToolError("not_found", f"there is no artifact `{inputs.key}`{in_store}")
        reference = StoredReference({**published, "name": inputs.key})
    else:
        ref = call.inputs.get("ref")
        if isinstance(ref, dict) and MARKER not in ref:  # `event.result_ref`
            if ref.get(HOLDS_SECRETS):
                raise ToolError("input", "`ref` is of a value that holds secrets: read it by the step's name")
            is_json = ref.get("media_type", JSON_MEDIA_TYPE) == JSON_MEDIA_TYPE
            if "chunks" in ref or "path" in ref or ("key" in ref and is_json and inputs.format == "json"):
                return await _stored_value(call, ref, inputs.format)
        reference = await _reference_from(call, ref)
    if inputs.format is None or inputs.format == "bytes":
        return reference
    async with call.objects.local(reference) as path:
        return await read_value(call, path, inputs.format)


async def _reference_from(call: Call, ref: Any) -> StoredReference:
    match ref:
        case StoredReference():
            return ref
        case str() as key:
            media_type = MEDIA_TYPES["bytes"]
        case {"key": str(key), **fields} if MARKER not in ref:  # user data cannot pretend to be a reference
            media_type = str(fields.get("media_type", JSON_MEDIA_TYPE))
        case _:
            message = "`ref` is a reference that an earlier task gave, its key, or `event.result_ref`"
            raise ToolError("input", message)
    async with call.objects.local({"key": key}) as path:
        reference = object_reference(key, size=path.stat().st_size, media_type=media_type)
    about = {name: ref[name] for name in _ABOUT_VALUES if name in ref} if isinstance(ref, dict) else {}
    return StoredReference({**reference, **about})


async def _stored_value(call: Call, ref: dict[str, Any], file_format: Format | None) -> Any:
    """The value that `event.result_ref` describes, whole or in parts."""
    if file_format not in (None, "json"):
        raise ToolError("input", f"`ref` is a list in chunks, or a part of a value: no {file_format}")
    try:
        return await read_reference({MARKER: "manifest" if "chunks" in ref else "ref", **ref}, call.objects)
    except (TypeError, LookupError):
        raise ToolError("input", "`ref` is not as `event.result_ref` gave it") from None


def _name_in(ref: Any) -> str:
    name = ref.get("name") if isinstance(ref, dict) else None
    if not isinstance(name, str):
        raise ToolError("input", "`ref` is no artifact with a name: only those can be deleted")
    return name
