"""Keeps the secrets of one execution out of everything that is written about it."""

import base64
import binascii
import math
import re
import string
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Set
from typing import Any, NamedTuple

from msgspec import structs

from noetl.credentials.secret_pattern import SecretPattern, SplitBase64, cut_pieces, may_be_truncated
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
MIN_DIGITS = 4
"""Characters below which a number is not masked at all: it would hide every count."""
MIN_LINE_LENGTH = 12
"""Characters of a line of a secret above which it is masked on its own: logs are written line by line."""
MAX_LEARNED = 1_000
"""How many secrets that tasks gave are known at a time; the oldest go first."""
_MAX_RUN_LENGTH = 65_536
"""Characters of base64 that are masked as a whole where a secret is inside."""
_CONTROL = re.compile(r"\\(?:[bf]|u00[01][0-9a-f])")
"""Control characters in JSON, but for those that `SplitBase64` knows."""
_URL_ALPHABET = frozenset(string.ascii_letters + string.digits + "-_")
_ALPHABET = _URL_ALPHABET | {"+", "/"}


class _Span(NamedTuple):
    start: int
    end: int
    piece: dict[str, Any]


class Masker:
    """Knows secrets, and finds them in texts and values. An empty one costs nothing.

    `remember` is given what cannot be made again from the secrets in it, and says where it can be had.
    """

    def __init__(self, remember: Callable[[Any], SecretOrigin | None] = lambda _: None) -> None:
        self._remember = remember
        self._patterns: dict[str, SecretPattern] = {}
        self._short_texts: dict[str, SecretOrigin] = {}
        self._secret_numbers: dict[float, SecretOrigin] = {}
        self._newest_values: dict[str, Any] = {}
        self._learned: deque[tuple[Any, SecretOrigin]] = deque()
        self._split_base64: SplitBase64 | None = None

    @property
    def empty(self) -> bool:
        return not (self._patterns or self._short_texts or self._secret_numbers)

    def knows(self, value: Any) -> bool:
        """Whether exactly this is masked already."""
        return str(value) in self._patterns or str(value) in self._short_texts

    def add(self, value: Any, origin: SecretOrigin) -> bool:
        """Masks a value from now on, a text or a number. False if it is too short to be masked in texts."""
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            return True
        self._split_base64 = None  # made of all secrets, and anew when it is needed
        # The newest wins: a marker is resolved to what its origin has by then. Older ones stay masked.
        self._newest_values[origin.key] = value
        text = value if isinstance(value, str) else repr(value)
        if not isinstance(value, str) and len(text) >= MIN_DIGITS:
            self._secret_numbers.setdefault(value, origin)
        if len(text) < MIN_TEXT_LENGTH:
            if text and (isinstance(value, str) or len(text) >= MIN_DIGITS):
                self._short_texts.setdefault(text, origin)
            return not text
        self._patterns.setdefault(text, SecretPattern(text, origin))
        lines = text.splitlines()
        for number, line in enumerate(lines) if len(lines) > 1 else ():
            # Not the frame of a PEM file, which every key has.
            if len(line) >= MIN_LINE_LENGTH and not line.startswith("-----"):
                self._patterns.setdefault(line, SecretPattern(line, origin, number))
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
            self._split_base64 = None
            self._patterns.pop(str(oldest), None)
            self._short_texts.pop(str(oldest), None)
            self._secret_numbers.pop(oldest, None)
            self._newest_values.pop(inner.key, None)

    def mask_text(self, text: str, *, excerpt: bool = False) -> str:
        """The text for people: `***` in place of secrets."""
        if text in self._short_texts:
            return MASK
        spans = self._spans(text, excerpt=excerpt)
        if not spans:
            return text
        return "".join(piece if isinstance(piece, str) else MASK for piece in _pieces(text, spans))

    def mask_excerpt(self, text: str) -> str:
        """The same for a text that someone may have cut at its ends, in the middle of a secret."""
        return self.mask_text(text, excerpt=True)

    def end_of_secret(self, text: str, position: int) -> int:
        """Where the secret ends that lies across a position; the position itself if none does."""
        return next((end for start, end, _ in self._spans(text) if start < position < end), position)

    def mask_for_display(self, value: Any) -> Any:
        """A value whose texts are for people."""
        return _same_if_equal(value, self._mask_texts(value)) if self._may_be_in(value) else value

    def _mask_texts(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.mask_text(value)
        if isinstance(value, Mapping):
            return {self.mask_text(key): self._mask_texts(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self._mask_texts(item) for item in value]
        return MASK if _is_number(value) and value in self._secret_numbers else value

    def mask_value(self, value: Any) -> Any:
        """What a tool gave, with what stands for them in place of secrets; the same object without any."""
        return _same_if_equal(value, self._mask(value, in_log=False)) if self._may_be_in(value) else value

    def mask_recorded(self, value: Any) -> Any:
        """The same for a value in the form of the log, where some secrets may stand already."""
        return _same_if_equal(value, self._mask(value, in_log=True)) if self._may_be_in(value) else value

    def contains_secret(self, text: str) -> bool:
        """Whether a secret is in the text."""
        return bool(self._spans(text))

    @property
    def reach(self) -> int:
        """Characters that the longest secret may take in a text."""
        # Six for each unit of UTF-16, as `\u0041`: a character beyond U+FFFF is written as two of them.
        return max((len(text) + sum(map("\uffff".__lt__, text)) for text in self._patterns), default=0) * 6

    def _may_be_in(self, value: Any) -> bool:
        """The fast path of all masking: False if `_mask` and `_mask_texts`, the slow path, change nothing.

        One search in the JSON of a value saves a walk through it, and leaves it the same object.
        """
        if self.empty or value is None:
            return False
        try:
            text = encode_value(value).decode()
        except (TypeError, ValueError, RecursionError):
            return True  # what has no JSON is walked through
        return (
            any(pattern.may_be_in(text) for pattern in self._patterns.values())
            or any(True for _ in self._split_spans(text))
            # The letter of an escape looks like base64 that goes on; without it the run begins where it does.
            or ("\\" in text and any(True for _ in self._split_spans(_CONTROL.sub(" ", text))))
            or any(encode_value(short).decode() in text for short in self._short_texts)
            or any(written in text for number in self._secret_numbers for written in _written_numbers(number))
        )

    def _mask(self, value: Any, *, in_log: bool) -> Any:
        if isinstance(value, str):
            return self._mask_string(value)
        if isinstance(value, SecretMarker | StoredReference) or (in_log and is_secret(value)):
            return value
        if isinstance(value, Mapping):
            # A marker cannot stand for a key, so the whole mapping goes.
            if any(self.mask_text(key) != key for key in value if len(key) >= MIN_TEXT_LENGTH):
                return secret_text_marker([lost_part()], self._remember(value))
            return {key: self._mask(item, in_log=in_log) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self._mask(item, in_log=in_log) for item in value]
        origin = self._secret_numbers.get(value) if _is_number(value) else None
        return self._marker_for(value, origin) if origin is not None else value

    def _mask_string(self, text: str) -> Any:
        if (origin := self._short_texts.get(text)) is not None:
            return self._marker_for(text, origin)
        pattern = self._patterns.get(text)
        if pattern is not None and self._newest_values.get(pattern.origin.key) == text:
            return secret_marker(pattern.origin)
        spans = self._spans(text)
        return self._marker_of_pieces(text, _pieces(text, spans)) if spans else text

    def _marker_for(self, value: Any, origin: SecretOrigin) -> SecretMarker:
        """What stands for a whole value, which may be an older one of its origin, or the text of a number."""
        same = self._newest_values.get(origin.key) == value
        return secret_marker(origin) if same else self._marker_of_pieces(value, [secret_part(origin)])

    def _marker_of_pieces(self, value: Any, pieces: list[Any]) -> SecretMarker:
        marker = secret_text_marker(pieces)
        # Tried out: a text in a mixture of forms, or of an older value, would come back as another one.
        if self._restores(marker, value):
            return marker
        return secret_text_marker(_blank_secrets(pieces), self._remember(value))

    def _restores(self, marker: SecretMarker, value: Any) -> bool:
        try:
            return bool(restore_secret(marker, self._newest_values) == value)
        except (KeyError, SecretLost):
            return False

    def _spans(self, text: str, depth: int = 0, *, excerpt: bool = False) -> list[_Span]:
        """Where secrets stand, in order, none inside another. `depth` 1 is inside base64, where it ends.

        A plain search for the `anchor` and the `landmarks` comes before each regular expression: it is many
        times faster, and without it the expression finds nothing either, base64 being in one alphabet.
        """
        candidates: list[_Span] = []
        truncated = depth == 0 and (excerpt or may_be_truncated(text))
        pieces = cut_pieces(text, excerpt=excerpt) if truncated else []
        for pattern in self._patterns.values():
            if pattern.anchor in text:
                candidates += [
                    _Span(*match.span(), self._piece(pattern, match[0]))
                    for match in pattern.regex.finditer(text)
                ]
            if pieces:
                candidates += [
                    _Span(start, end, lost_part()) for start, end in pattern.truncated_spans(text, pieces)
                ]
            if depth == 0 and any(mark in text for mark in pattern.landmarks):
                for core in pattern.core_patterns:
                    candidates += [self._base64_span(text, *match.span()) for match in core.finditer(text)]
        if depth == 0:
            candidates += [
                split
                for split in self._split_spans(text)
                if not any(span.start < split.end and split.start < span.end for span in candidates)
            ]
        # Of those that begin together the longest first: it covers the others.
        candidates.sort(key=lambda span: (span.start, -span.end))
        spans: list[_Span] = []
        for span in candidates:
            if spans and span.start < spans[-1].end:
                if span.end > spans[-1].end:
                    spans[-1] = _Span(spans[-1].start, span.end, lost_part())
            else:
                spans.append(span)
        return spans

    def _split_spans(self, text: str) -> Iterator[_Span]:
        if self._split_base64 is None:
            cores = (core for pattern in self._patterns.values() for core in pattern.cores)
            self._split_base64 = SplitBase64(cores)
        return (_Span(start, end, lost_part()) for start, end in self._split_base64.spans(text))

    def _piece(self, pattern: SecretPattern, written: str) -> dict[str, Any]:
        for form, make in SECRET_FORMS.items():
            if make(pattern.text) == written:
                return secret_part(pattern.origin, form=form, line=pattern.line)
        return lost_part()

    def _base64_span(self, text: str, start: int, end: int) -> _Span:
        """The base64 around a secret inside."""
        first, last = start, end
        # First without `+` and `/`, which also stand between words: `a/b64=` would else be one run.
        for alphabet in (_URL_ALPHABET, _ALPHABET):
            first, last = _base64_run(text, start, end, alphabet)
            if last - first > _MAX_RUN_LENGTH:
                continue
            if (piece := self._base64_piece(text[first:last])) is not None:
                return _Span(first, last, piece)
        if last - first <= _MAX_RUN_LENGTH:
            return _Span(first, last, lost_part())
        # One more on both sides: the characters at its edges hold some bits of the secret.
        return _Span(max(first, start - 1), min(last, end + 1), lost_part())

    def _base64_piece(self, run: str) -> dict[str, Any] | None:
        """What stands for a run of base64, if it can be made again."""
        bare = run.rstrip("=").translate(str.maketrans("-_", "+/"))
        try:
            inside = base64.b64decode(bare + "=" * (-len(bare) % 4), validate=True).decode()
        except (binascii.Error, ValueError):
            return None
        spans = self._spans(inside, depth=1)
        for form in BASE64_FORMS if spans else ():
            piece = encoded_part(form, _pieces(inside, spans))
            if self._restores(secret_text_marker([piece]), run):
                return piece
        return None


def _base64_run(text: str, start: int, end: int, alphabet: Set[str]) -> tuple[int, int]:
    """The characters of an alphabet on both sides of a span, as far as it matters how many there are."""
    first, last = start, end
    while first > 0 and start - first <= _MAX_RUN_LENGTH and text[first - 1] in alphabet:
        first -= 1
    while last < len(text) and last - end <= _MAX_RUN_LENGTH and text[last] in alphabet:
        last += 1
    for _ in range(2):
        last += text[last : last + 1] == "="
    return first, last


def _same_if_equal(value: Any, masked: Any) -> Any:
    """The value itself if nothing in it was masked: what looked like a secret in its JSON may be none."""
    return value if masked == value else masked


def _pieces(text: str, spans: list[_Span]) -> list[Any]:
    pieces: list[Any] = []
    position = 0
    for start, end, piece in spans:
        if start > position:
            pieces.append(text[position:start])
        pieces.append(piece)
        position = end
    if position < len(text):
        pieces.append(text[position:])
    return pieces


def _blank_secrets(parts: list[Any]) -> list[Any]:
    return [piece if isinstance(piece, str) else lost_part() for piece in parts]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _written_numbers(number: float) -> Iterator[str]:
    """All that JSON writes for numbers that are equal to this one."""
    yield encode_value(number).decode()
    if isinstance(number, float):
        if number.is_integer():
            yield str(int(number))
    elif abs(number) < 1 << 1023 and math.trunc(float(number)) == number:
        yield encode_value(float(number)).decode()


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
