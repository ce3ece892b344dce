"""The body of an answer: a value that is read at once, or an object that is stored as it comes."""

import asyncio
from pathlib import PurePosixPath

from aiohttp import ClientResponse

from noetl.model.json import Json
from noetl.model.outcome import ToolError
from noetl.model.reference import JSON_MEDIA_TYPE
from noetl.ports.tool import Call, TextMask
from noetl.tools.host.bounded_text import MARGIN, MAX_EXCERPT, shorten_text
from noetl.tools.http.response import BodyContent, decode_body, is_binary

_LARGE_BYTES = 1024 * 1024
"""Bytes that are decoded or written at once; more of them would hold up the loop, so a thread has them."""
_PREVIEW = 1_024


async def read_body(response: ClientResponse, limit: int) -> bytes:
    """The whole body, unpacked. ToolError of kind `limit` if it is longer."""
    length = response.content_length or 0
    body = bytearray()
    if length <= limit or response.method == "HEAD":
        async for chunk in response.content.iter_any():
            body += chunk
            if len(body) > limit:
                break
        else:
            return bytes(body)
    raise ToolError("limit", f"the body is longer than {limit:,} bytes: `spec.save_as: file` can store it")


async def body_content(
    response: ClientResponse, call: Call, *, max_bytes: int, max_value: int
) -> BodyContent:
    """The body as its content type says. What is neither JSON nor text is stored.

    ToolError of kind `limit` if a value is longer than `max_value` bytes, or an object than `max_bytes`.
    """
    content_type = response.headers.get("Content-Type", "")
    if is_binary(content_type):
        return await store_body(response, call, max_bytes=max_bytes)
    body = await read_body(response, max_value)
    if not content_type and not _is_utf8(body):
        if len(body) > max_bytes:
            raise _too_long(max_bytes)
        return BodyContent(await _store_bytes(call, response, body))
    if len(body) > _LARGE_BYTES:
        return await asyncio.to_thread(decode_body, body, content_type)
    return decode_body(body, content_type)


async def store_body(
    response: ClientResponse, call: Call, *, max_bytes: int, keep_empty: bool = False
) -> BodyContent:
    """A reference to the body; null if there is none, unless `keep_empty` asks for one all the same.

    Holds little of it at any time. ToolError of kind `limit` if it is longer than `max_bytes` bytes.
    """
    first = await response.content.readany()
    if not first and (not keep_empty or response.method == "HEAD"):
        return BodyContent(None)
    if (response.content_length or 0) > max_bytes:
        raise _too_long(max_bytes)
    async with call.objects.draft() as draft:
        with draft.path.open("xb") as file:
            size, buffered, chunk = 0, bytearray(first), first
            while chunk:
                chunk = await response.content.readany()
                buffered += chunk
                if size + len(buffered) > max_bytes:
                    raise _too_long(max_bytes)
                if len(buffered) >= _LARGE_BYTES or not chunk:
                    size += await asyncio.to_thread(file.write, buffered)
                    buffered = bytearray()
        return BodyContent(await draft.keep(**_object_details(response, first, call.mask)))


def _too_long(max_bytes: int) -> ToolError:
    return ToolError("limit", f"the body is longer than {max_bytes:,} bytes: `spec.max_size` can allow more")


async def _store_bytes(call: Call, response: ClientResponse, body: bytes) -> Json:
    async with call.objects.draft() as draft:
        await asyncio.to_thread(draft.path.write_bytes, body)
        return await draft.keep(**_object_details(response, body, call.mask))


def _object_details(response: ClientResponse, first: bytes, mask: TextMask) -> dict[str, str]:
    """Media type, preview and file name of what is stored."""
    content_type = shorten_text(response.headers.get("Content-Type", ""), MAX_EXCERPT, mask)
    kind = content_type or "application/octet-stream"
    if kind == JSON_MEDIA_TYPE:
        kind += "; charset=utf-8"  # alone it would stand for the value, and this is a file
    filename = response.content_disposition.filename if response.content_disposition else None
    path = PurePosixPath((filename or response.url.name).replace("\\", "/"))
    name = shorten_text(path.name, MAX_EXCERPT, mask)
    details = {"media_type": kind, "preview": ""}
    if not is_binary(content_type):
        text = decode_body(first[: _PREVIEW + MARGIN], "text/plain").data
        details["preview"] = mask.mask_excerpt(text)[:_PREVIEW] if isinstance(text, str) else ""
    if name:
        details["filename"] = name
    return details


def _is_utf8(body: bytes) -> bool:
    try:
        body.decode("utf-8-sig")
    except UnicodeDecodeError:
        return False
    return True
