"""One stream of a program: lines for the log, text for the result, and the whole if it is large."""

import asyncio
import codecs
from contextlib import AsyncExitStack
from io import BufferedWriter
from typing import NamedTuple

from noetl.model.reference import StoredReference
from noetl.ports.results import ObjectDraft
from noetl.ports.tool import Call
from noetl.tools.host.bounded_text import MARGIN, readable_beginning
from noetl.tools.process.log_lines import LogLines

MAX_TEXT = 1024 * 1024
"""Bytes of one stream that are a text of the result; of a longer one it is the tail."""
TAIL = 16 * 1024
"""Bytes of that tail."""
MAX_LOG = 8 * 1024 * 1024
"""Bytes of one stream that go to the log."""

_CHUNK = 256 * 1024
_PREVIEW = 1_024


class CapturedStream(NamedTuple):
    """The text, which is the tail if the stream is longer; then a reference stands for all of it."""

    text: str
    reference: StoredReference | None


class StreamCapture:
    """Takes one stream. Never holds more than `MAX_TEXT` of it; the rest is in a file, open in `stack`."""

    def __init__(self, call: Call, stack: AsyncExitStack) -> None:
        self._call = call
        self._stack = stack
        self._lines = LogLines(call.log, call.mask)
        self._held = bytearray()
        self._preview = ""
        self._draft: ObjectDraft | None = None
        self._file: BufferedWriter | None = None
        # Told as it comes, for when it is known the beginning is long out of memory.
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._is_text = True

    async def read(self, reader: asyncio.StreamReader) -> None:
        """Takes everything up to the end of the stream."""
        try:
            while data := await reader.read(_CHUNK):
                self._log(data)
                self._check_text(data)
                self._held += data
                if self._file is not None or len(self._held) > MAX_TEXT:
                    await self._spill(len(data))
        finally:
            self._lines.finish()

    async def result(self) -> CapturedStream:
        """What came so far."""
        self._check_text(b"", final=True)
        if self._file is None and not self._is_text:
            await self._spill(0)
        if self._file is None or self._draft is None:
            return CapturedStream(self._held.decode(), None)
        await asyncio.to_thread(self._file.close)
        media_type = "text/plain; charset=utf-8" if self._is_text else "application/octet-stream"
        reference = await self._draft.keep(media_type, preview=self._preview)
        text, tail = self._decode(self._held), self._decode(self._held[-TAIL:])
        start = self._call.mask.end_of_secret(text, max(0, len(text) - len(tail)))
        return CapturedStream(text[start:], reference)

    def _decode(self, data: bytearray) -> str:
        # The cut may have fallen inside a character: bytes that only continue one are dropped.
        text = data.lstrip(bytes(range(0x80, 0xC0))) if self._is_text else data
        return text.decode(errors="replace")

    async def _spill(self, new: int) -> None:
        """Writes what is not in the file yet, and keeps the tail, with room for a secret across its cut."""
        data = bytes(self._held[-new:]) if self._file is not None else bytes(self._held)
        if self._file is None:
            self._preview = readable_beginning(bytes(self._held), _PREVIEW, self._call.mask)
            self._draft = await self._stack.enter_async_context(self._call.objects.draft())
            self._file = self._stack.enter_context(self._draft.path.open("xb"))
        await asyncio.to_thread(self._file.write, data)
        del self._held[: -(TAIL + MARGIN)]

    def _log(self, data: bytes) -> None:
        room = MAX_LOG - self._lines.total
        if room <= 0:
            return
        self._lines.feed(data[:room])
        if len(data) >= room:
            self._lines.finish()
            self._call.log(f"… more than {MAX_LOG >> 20} MiB were printed: the rest is in the result alone")

    def _check_text(self, data: bytes, *, final: bool = False) -> None:
        if self._is_text:
            try:
                self._decoder.decode(data, final)
            except UnicodeDecodeError:
                self._is_text = False
