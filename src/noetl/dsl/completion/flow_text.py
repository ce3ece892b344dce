"""Mappings and lists between brackets, as far as they are written."""

from typing import Any, TypeAlias

OutlinePath: TypeAlias = tuple[str | int, ...]

_QUOTES = "'\""
_BEHIND_KEY = ("", " ", "\n", ",", "}", "]")


class FlowText:
    """Reads `{…}` and `[…]` piece by piece, whatever is missing at the end.

    `value` is what stands there, with scalars as text. Of the end of what was read: `path` leads from the
    value to what is open, `is_key` says that a key is expected, and `word` is how much of one is written.
    """

    def __init__(self) -> None:
        self._root: list[Any] = []
        self._open: list[tuple[dict[str, Any] | list[Any], str | None]] = [(self._root, None)]
        self._quote = ""
        self._in_comment = False
        self.word = ""

    @property
    def value(self) -> Any:
        return self._root[0] if self._root else None

    @property
    def closed(self) -> bool:
        return len(self._open) == 1

    @property
    def is_key(self) -> bool:
        container, key = self._open[-1]
        return isinstance(container, dict) and key is None

    @property
    def path(self) -> OutlinePath:
        """Without the outermost list, which is no part of the text; with the key whose value is open."""
        path: list[str | int] = []
        for number, (container, key) in enumerate(self._open):
            if isinstance(container, dict):
                if key is not None:
                    path.append(key)
            elif number:
                is_last = number == len(self._open) - 1
                path.append(len(container) if is_last else len(container) - 1)
        return tuple(path)

    def feed(self, text: str) -> None:
        """Reads on, up to the end of the text or of the outermost brackets."""
        for at, character in enumerate(text):
            if self._in_comment:
                self._in_comment = character != "\n"
            elif self._quote:
                self._read_quoted(character)
            elif character in _QUOTES and not self.word:
                self._quote = character
            elif character == "#" and (at == 0 or text[at - 1].isspace()):
                self._in_comment = True
            elif character in "{[":
                self._begin({} if character == "{" else [])
            elif character in "}]":
                self._flush()
                self._end()
                if self.closed:
                    return
            elif character == ",":
                self._flush()
            elif character == ":" and text[at + 1 : at + 2] in _BEHIND_KEY:
                self._end_key()
            elif not character.isspace() or self.word:
                self.word += character

    def _read_quoted(self, character: str) -> None:
        if character == self._quote:
            self._quote = ""
        else:
            self.word += character

    def _end(self) -> None:
        if len(self._open) > 1:
            self._open.pop()
            self._drop_key()

    def _begin(self, container: dict[str, Any] | list[Any]) -> None:
        self.word = ""
        self._put(container)
        self._open.append((container, None))

    def _put(self, value: Any) -> None:
        container, key = self._open[-1]
        if isinstance(container, list):
            container.append(value)
        elif key is not None:
            container[key] = value

    def _end_key(self) -> None:
        container, _ = self._open[-1]
        word = self.word.strip()
        if isinstance(container, dict) and word:
            container[word] = None
            self._open[-1] = (container, word)
        self.word = ""

    def _flush(self) -> None:
        container, key = self._open[-1]
        word = self.word.strip()
        if word and (isinstance(container, list) or key is not None):
            self._put(word)
        elif word and isinstance(container, dict):
            container[word] = None
        self.word = ""
        self._drop_key()

    def _drop_key(self) -> None:
        container, _ = self._open[-1]
        self._open[-1] = (container, None)
