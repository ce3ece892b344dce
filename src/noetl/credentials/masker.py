"""Keeps the secrets of one execution out of everything that is written about it."""

import base64
import binascii
import string
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Set
from typing import Any, NamedTuple

from msgspec import structs

from noetl.credentials.secret_pattern import SecretPattern, may_be_truncated
from noetl.credentials.split_base64 import SplitBase64
from noetl.model.reference import SecretMarker, StoredReference, encode_value
from noetl.model.secret import (
    BASE64_FORMS,
    MASK,
    SECRET_FORMS,
    SecretLost,
    SecretOrigin,
    encoded_part,
    is_secret,
    lost_part,
    restore_secret,
    secret_marker,
    secret_part,
    secret_text_marker,
)

MIN_TEXT_LENGTH = 6
"""Characters below which a secret is masked only where it is a whole value."""
DIGITS = 4
"""Characters below which a number is not masked at all: it would hide every count."""
LINE = 12
"""Characters of a line of a secret above which it is masked on its own: logs are written line by line."""
MAX_LEARNED = 1_000
"""How many secrets that tasks gave are known at a time; the oldest go first."""
_RUN = 65_536
"""Characters of base64 that are masked as a whole where a secret is inside."""
_URL_ALPHABET = frozenset(string.ascii_letters + string.digits + "-_")
_ALPHABET = _URL_ALPHABET | {"+", "/"}


class _Span(NamedTuple):
    start: int
    end: int
    piece: dict[str, Any]


class Masker:
    """Knows secrets, and finds them in texts and values. An empty one costs nothing.

    `keep` is given what cannot be made again from the secrets in it, and says where it can be had.
    """

    def __init__(self, keep: Callable[[Any], SecretOrigin | None] = lambda _: None) -> None:
        self._keep = keep
        self._needles: dict[str, SecretPattern] = {}
        self._short: dict[str, SecretOrigin] = {}
        self._numbers: dict[float, SecretOrigin] = {}
        self._values: dict[str, Any] = {}
        self._learned: deque[tuple[Any, SecretOrigin]] = deque()
        self._pieces_of: SplitBase64 | None = None

    @property
    def empty(self) -> bool:
        return not (self._needles or self._short or self._numbers)

    def knows(self, value: Any) -> bool:
        """Whether exactly this is masked already."""
        return str(value) in self._needles or str(value) in self._short

    def add(self, value: Any, origin: SecretOrigin) -> bool:
        """Masks a value from now on, a text or a number. False if it is too short to be masked in texts."""
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            return True
        self._pieces_of = None
        self._values[origin.key] = value  # the newest, which is what can be had again
        text = value if isinstance(value, str) else repr(value)
        if not isinstance(value, str) and len(text) >= DIGITS:
            self._numbers.setdefault(value, origin)
        if len(text) < MIN_TEXT_LENGTH:
            if text and (isinstance(value, str) or len(text) >= DIGITS):
                self._short.setdefault(text, origin)
            return not text
        self._needles.setdefault(text, SecretPattern(text, origin))
        lines = text.splitlines()
        for at, line in enumerate(lines) if len(lines) > 1 else ():
            if len(line) >= LINE and not line.startswith("-----"):
                self._needles.setdefault(line, SecretPattern(line, origin, at))
        return True

    def learn(self, value: Any, origin: SecretOrigin) -> None:
        """Masks what a task gave: every text and number in it."""
        for path, leaf in leaves(value):
            if not self.knows(leaf):
                inner = structs.replace(origin, path=(*origin.path, *path))
                self.add(leaf, inner)
                self._learned.append((leaf, inner))
        while len(self._learned) > MAX_LEARNED:
            oldest, inner = self._learned.popleft()
            self._pieces_of = None
            self._needles.pop(str(oldest), None)
            self._short.pop(str(oldest), None)
            self._numbers.pop(oldest, None)
            self._values.pop(inner.key, None)

    def mask_text(self, text: str) -> str:
        """The text for people: `***` in place of secrets."""
        if text in self._short:
            return MASK
        spans = self._spans(text)
        if not spans:
            return text
        return "".join(piece if isinstance(piece, str) else MASK for piece in _pieces(text, spans))

    def mask_for_display(self, value: Any) -> Any:
        """A value whose texts are for people."""
        return self._told(value) if self._may_be_in(value) else value

    def _told(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.mask_text(value)
        if isinstance(value, Mapping):
            return {self.mask_text(key): self._told(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self._told(item) for item in value]
        return MASK if _number(value) and value in self._numbers else value

    def mask_value(self, value: Any) -> Any:
        """What a tool gave, with what stands for them in place of secrets; the same object without any."""
        return self._walk(value, in_log=False) if self._may_be_in(value) else value

    def mask_recorded(self, value: Any) -> Any:
        """The same for a value in the form of the log, where some secrets may stand already."""
        return self._walk(value, in_log=True) if self._may_be_in(value) else value

    def contains_secret(self, text: str) -> bool:
        """Whether a secret is in the text."""
        return bool(self._spans(text))

    @property
    def reach(self) -> int:
        """Characters that the longest secret may take in a text."""
        return max((len(text) for text in self._needles), default=0) * 6

    def _may_be_in(self, value: Any) -> bool:
        if self.empty or value is None:
            return False
        try:
            text = encode_value(value).decode()
        except (TypeError, ValueError, RecursionError):
            return True
        return (
            any(needle.may_be_in(text) for needle in self._needles.values())
            or any(True for _ in self._torn(text))
            or any(encode_value(short).decode() in text for short in self._short)
            or any(repr(number) in text for number in self._numbers)
        )

    def _walk(self, value: Any, *, in_log: bool) -> Any:
        if isinstance(value, str):
            return self._string(value)
        if isinstance(value, SecretMarker | StoredReference) or (in_log and is_secret(value)):
            return value
        if isinstance(value, Mapping):
            if any(self.mask_text(key) != key for key in value if len(key) >= MIN_TEXT_LENGTH):
                return secret_text_marker([lost_part()], self._keep(value))
            return {key: self._walk(item, in_log=in_log) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self._walk(item, in_log=in_log) for item in value]
        origin = self._numbers.get(value) if _number(value) else None
        return self._standing_for(value, origin) if origin is not None else value

    def _string(self, text: str) -> Any:
        if (origin := self._short.get(text)) is not None:
            return self._standing_for(text, origin)
        needle = self._needles.get(text)
        if needle is not None and self._values.get(needle.origin.key) == text:
            return secret_marker(needle.origin)
        spans = self._spans(text)
        return self._woven(text, _pieces(text, spans)) if spans else text

    def _standing_for(self, value: Any, origin: SecretOrigin) -> SecretMarker:
        """What stands for a whole value, which may be an older one of its origin, or the text of a number."""
        same = self._values.get(origin.key) == value
        return secret_marker(origin) if same else self._woven(value, [secret_part(origin)])

    def _woven(self, value: Any, pieces: list[Any]) -> SecretMarker:
        marker = secret_text_marker(pieces)
        return (
            marker if self._makes(marker, value) else secret_text_marker(_blanked(pieces), self._keep(value))
        )

    def _makes(self, marker: SecretMarker, value: Any) -> bool:
        try:
            return bool(restore_secret(marker, self._values) == value)
        except (KeyError, SecretLost):
            return False

    def _spans(self, text: str, depth: int = 0) -> list[_Span]:
        """Where secrets stand, in order, none inside another."""
        found: list[_Span] = []
        cut = depth == 0 and may_be_truncated(text)
        for needle in self._needles.values():
            if needle.anchor in text:
                found += [
                    _Span(*match.span(), self._piece(needle, match[0]))
                    for match in needle.pattern.finditer(text)
                ]
            if cut:
                found += [_Span(start, end, lost_part()) for start, end in needle.truncated_spans(text)]
            if depth == 0 and any(mark in text for mark in needle.landmarks):
                for core in needle.core_patterns:
                    found += [self._packed(text, *match.span()) for match in core.finditer(text)]
        if depth == 0:
            found += [
                torn
                for torn in self._torn(text)
                if not any(span.start < torn.end and torn.start < span.end for span in found)
            ]
        found.sort(key=lambda span: (span.start, -span.end))
        spans: list[_Span] = []
        for span in found:
            if spans and span.start < spans[-1].end:
                if span.end > spans[-1].end:
                    spans[-1] = _Span(spans[-1].start, span.end, lost_part())
            else:
                spans.append(span)
        return spans

    def _torn(self, text: str) -> Iterator[_Span]:
        if self._pieces_of is None:
            self._pieces_of = SplitBase64(core for needle in self._needles.values() for core in needle.cores)
        return (_Span(start, end, lost_part()) for start, end in self._pieces_of.spans(text))

    def _piece(self, needle: SecretPattern, written: str) -> dict[str, Any]:
        for form, make in SECRET_FORMS.items():
            if make(needle.text) == written:
                return secret_part(needle.origin, form=form, line=needle.line)
        return lost_part()

    def _packed(self, text: str, start: int, end: int) -> _Span:
        """The base64 around a place where a secret is inside."""
        first, last = start, end
        for alphabet in (_URL_ALPHABET, _ALPHABET):
            first, last = _around(text, start, end, alphabet)
            if last - first <= _RUN and (piece := self._unpacked(text[first:last])) is not None:
                return _Span(first, last, piece)
        if last - first <= _RUN:
            return _Span(first, last, lost_part())
        return _Span(max(first, start - 1), min(last, end + 1), lost_part())

    def _unpacked(self, run: str) -> dict[str, Any] | None:
        """What stands for a run of base64, if it can be made again."""
        bare = run.rstrip("=").translate(str.maketrans("-_", "+/"))
        try:
            inside = base64.b64decode(bare + "=" * (-len(bare) % 4), validate=True).decode()
        except (binascii.Error, ValueError):
            return None
        spans = self._spans(inside, depth=1)
        for form in BASE64_FORMS if spans else ():
            piece = encoded_part(form, _pieces(inside, spans))
            if self._makes(secret_text_marker([piece]), run):
                return piece
        return None


def _around(text: str, start: int, end: int, alphabet: Set[str]) -> tuple[int, int]:
    """The characters of an alphabet on both sides of a place, as far as it matters how many there are."""
    first, last = start, end
    while first > 0 and start - first <= _RUN and text[first - 1] in alphabet:
        first -= 1
    while last < len(text) and last - end <= _RUN and text[last] in alphabet:
        last += 1
    for _ in range(2):
        last += text[last : last + 1] == "="
    return first, last


def _pieces(text: str, spans: list[_Span]) -> list[Any]:
    pieces: list[Any] = []
    at = 0
    for start, end, piece in spans:
        if start > at:
            pieces.append(text[at:start])
        pieces.append(piece)
        at = end
    if at < len(text):
        pieces.append(text[at:])
    return pieces


def _blanked(parts: list[Any]) -> list[Any]:
    return [piece if isinstance(piece, str) else lost_part() for piece in parts]


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def leaves(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """Every value that holds no others, with the way to it."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from leaves(item, (*path, key))
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from leaves(item, (*path, index))
    else:
        yield path, value
