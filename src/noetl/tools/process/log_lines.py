"""What a process prints, as lines for the task's log."""

from collections.abc import Callable

MAX_LINE = 8_192
"""Bytes of one line; the rest of it is left out."""


class LogLines:
    """Cuts bytes into lines and hands each over as soon as it is whole."""

    def __init__(self, log: Callable[[str], None]) -> None:
        self._log = log
        self._line = bytearray()
        self._left_out = 0
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
        """Hands over a last line that has no end."""
        if self._line:
            self._emit()

    def _add(self, part: bytes) -> None:
        room = MAX_LINE - len(self._line)
        self._line += part[:room]
        self._left_out += max(0, len(part) - room)

    def _emit(self) -> None:
        # A cut may fall inside a character: that it is not UTF-8 is then no fault of what was printed.
        text = self._line.decode("utf-8", "ignore" if self._left_out else "replace").rstrip("\r")
        self._log(f"{text} … {self._left_out:,} bytes left out" if self._left_out else text)
        self._line.clear()
        self._left_out = 0
