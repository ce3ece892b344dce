"""What a process prints, as lines for the task's log."""

from collections.abc import Callable

from noetl.ports.tool import NO_SECRETS, TextMask
from noetl.tools.host.bounded_text import MARGIN

MAX_LINE = 8_192
"""Bytes of one line; the rest of it is left out."""


class LogLines:
    """Cuts bytes into lines and hands each over as soon as it is whole."""

    def __init__(self, log: Callable[[str], None], mask: TextMask = NO_SECRETS) -> None:
        self._log = log
        self._mask = mask
        self._line = bytearray()
        self._size = 0
        """Bytes of the line, of which it holds no more than are looked at."""
        self.total = 0
        """Bytes so far."""

    def feed(self, data: bytes) -> None:
        self.total += len(data)
        *parts, unfinished = data.split(b"\n")
        for part in parts:
            self._add(part)
            self._emit()
        self._add(unfinished)

    def finish(self) -> None:
        """Hands over a last line that has no end: what printed it may have been stopped there."""
        if self._line:
            self._emit(cut=True)

    def _add(self, part: bytes) -> None:
        self._line += part[: MAX_LINE + MARGIN - len(self._line)]
        self._size += len(part)

    def _emit(self, *, cut: bool = False) -> None:
        left_out = max(0, self._size - MAX_LINE)
        # A cut may fall inside a character: that it is not UTF-8 is then no fault of what was printed.
        text = self._line.decode("utf-8", "ignore" if left_out else "replace").rstrip("\r")
        if cut or left_out:
            text = self._mask.mask_excerpt(text)
        if left_out:
            text = text.encode()[:MAX_LINE].decode("utf-8", "ignore")
        self._log(f"{text} … {left_out:,} bytes left out" if left_out else text)
        self._line.clear()
        self._size = 0
