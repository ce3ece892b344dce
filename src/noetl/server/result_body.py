"""The bytes of a stored value as an answer: all of them or a range, in pieces, with their digest."""

import asyncio
import base64
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

from starlette.responses import StreamingResponse

from noetl.model.errors import NoetlError
from noetl.model.reference import hash_of_key
from noetl.ports.results import ResultStore

OCTETS = "application/octet-stream"
_CHUNK_BYTES = 1 << 18
_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")


class RangeWrong(NoetlError):
    """There are no bytes in the range that was asked for. `headers` belong to the answer."""

    def __init__(self, size: int) -> None:
        super().__init__(f"there are {size} bytes")
        self.headers = {"Content-Range": f"bytes */{size}"}


def digest_header(digest: str) -> str:
    """A SHA-256 in hexadecimal as RFC 9530 has it."""
    return f"sha-256=:{base64.b64encode(bytes.fromhex(digest)).decode()}:"


async def result_response(results: ResultStore, key: str, range_header: str) -> StreamingResponse:
    """Raises ResultError and RangeWrong."""
    stack = AsyncExitStack()
    path = await stack.enter_async_context(results.local(key))
    size = path.stat().st_size
    chosen = _chosen_range(range_header, size)
    if chosen is None:
        await stack.aclose()
        raise RangeWrong(size)
    start, end = chosen
    digest = hash_of_key(key)
    headers = {
        "Accept-Ranges": "bytes",
        "ETag": f'"{digest}"',
        "Repr-Digest": digest_header(digest),
        "Cache-Control": "private, immutable",
        "Content-Length": str(end - start),
    }
    pieces = _file_pieces(stack, path, start, end)
    if (start, end) == (0, size):
        headers["Content-Digest"] = headers["Repr-Digest"]
        return StreamingResponse(pieces, 200, headers, OCTETS)
    headers["Content-Range"] = f"bytes {start}-{end - 1}/{size}"
    return StreamingResponse(pieces, 206, headers, OCTETS)


async def _file_pieces(stack: AsyncExitStack, path: Path, start: int, end: int) -> AsyncIterator[bytes]:
    async with stack:
        with path.open("rb") as file:
            file.seek(start)
            while start < end and (
                piece := await asyncio.to_thread(file.read, min(_CHUNK_BYTES, end - start))
            ):
                start += len(piece)
                yield piece


def _chosen_range(header: str, size: int) -> tuple[int, int] | None:
    """Where the wanted bytes begin and end, all for a header nobody understands; None if there are none."""
    match = _RANGE.fullmatch(header.strip())
    if match is None or not (match[1] or match[2]):
        return 0, size
    if not match[1]:
        start, end = max(0, size - int(match[2])), size
    else:
        start, end = int(match[1]), min(size, int(match[2]) + 1 if match[2] else size)
    return (start, end) if start < end else None
