"""What a secret looks like in a text, however it was written there, and in base64 that was split."""

import base64
import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import groupby
from typing import NamedTuple

from noetl.model.secret import SECRET_FORMS, SecretOrigin

_PLAIN = re.compile(r"[A-Za-z0-9_.~-]+")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&(?:quot|#34);", "'": "&(?:apos|#39|#x27);"}
_CONTROLS = {"\n": "n", "\r": "r", "\t": "t", "\b": "b", "\f": "f"}
_QUOTES = {
    "'": (r"\\*'", "''", r"'\\''", """'"'"'"""),
    '"': (r'\\*"', '""'),
    "/": (r"\\*/",),
}
"""How Python, JSON, SQL, CSV and shells write what would end a text."""


END_LENGTH = 6
"""Characters of a secret by which it is known where the rest was cut off."""

TRUNCATION_LENGTH = 1_000
"""Characters of a text that may be a part of a longer one; a shorter one is whole unless someone says so."""

_CUT_MARK = re.compile(r"…|\.{3,}")
"""What people and programs write where they left something out: databases quote a line as `...so...`."""
_MAX_PADDING = 8
"""Characters between a mark and what it cut: blanks, and brackets."""

_MAX_WRITTEN_LENGTH = 12
"""Characters that one of a secret may take."""

_CUT_CHARACTER = re.compile(r"(?:\\[ux]?[0-9A-Fa-f]*|%[0-9A-Fa-f]*|&[#a-z0-9]*)*")
"""What a cut leaves of a character that is written in another way."""

_BASE64_END_LENGTH = 8
"""Characters by which the beginning of a secret is known, and its end."""
_MIN_BASE64_LINE_LENGTH = 60
"""Characters that a line has at least where there are several."""

_STANDARD_ALPHABET = str.maketrans("-_", "+/")
_RUN = re.compile(rf"[A-Za-z0-9+/_-]{{{_BASE64_END_LENGTH},}}")


class SecretPattern:
    """One secret, or one `line` of it. What costs something is made when it is needed.

    Regular expressions are the slow path: `may_be_in`, `anchor` and `landmarks` say whether to try them.
    `anchor` is a part that the secret has in all forms, empty if there is none. `cores` are what base64 makes
    of it, at each of the three ways that it can lie there; `landmarks` are the texts one of which is there
    whenever a core is. `ends` are its beginning and its end, in all common forms.
    """

    def __init__(self, text: str, origin: SecretOrigin, line: int | None = None) -> None:
        self.text = text
        self.origin = origin
        self.line = line
        self.anchor = max(_PLAIN.findall(text), key=len, default="")
        self.cores = tuple(_base64_cores(text.encode(errors="surrogatepass")))
        self.landmarks = tuple(
            dict.fromkeys(
                variant
                for core in self.cores
                for variant in (core, core.translate(str.maketrans("+/", "-_")))
            )
        )
        self.ends = (_written_forms(text[:END_LENGTH]), _written_forms(text[-END_LENGTH:]))

    @cached_property
    def regex(self) -> re.Pattern[str]:
        """Finds it as it is, JSON-escaped, URL-encoded and quoted, in any mixture."""
        return re.compile(_pattern(self.text))

    @cached_property
    def written(self) -> tuple[str, ...]:
        """The common forms of all of it, in which a part of it is looked for."""
        return (*_written_forms(self.text), self.text.replace("'", "''"))

    @cached_property
    def core_patterns(self) -> tuple[re.Pattern[str], ...]:
        """Find its cores."""
        return tuple(re.compile(re.sub(r"[+/]", _either_alphabet, core)) for core in self.cores)

    def may_be_in(self, text: str) -> bool:
        """False only if it is not there in any form, nor cut off. `text` may be JSON."""
        if self.anchor in text or any(mark in text for mark in self.landmarks):
            return True
        if not may_be_truncated(text):
            return False
        if any(end in text for ends in self.ends for end in ends):
            return True
        # Of what was cut on both sides, by marks or as a long text, nothing is known in advance.
        marks = text.count("…") + text.count("...")
        long = len(text) >= TRUNCATION_LENGTH
        return marks > 1 or (long and (marks > 0 or len(self.text) > TRUNCATION_LENGTH))

    def truncated_spans(self, text: str, pieces: Iterable["CutPiece"]) -> Iterator[tuple[int, int]]:
        """Where one of these pieces of the text was cut in the middle of it."""
        begins, ends = (any(end in text for end in forms) for forms in self.ends)
        for start, end, cut_before, cut_after in pieces:
            if begins and cut_after:
                yield from self._spans_cut_at_end(text, start, end)
            if ends and cut_before:
                yield from self._spans_cut_at_start(text, start, end)
            if cut_before and cut_after and self._is_part(text[start:end]):
                yield start, end

    def _is_part(self, piece: str) -> bool:
        """Whether a piece is from the middle of it."""
        return len(piece) >= END_LENGTH and any(piece in written for written in self.written)

    def _spans_cut_at_end(self, text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Where its beginning stands before the end of a piece of the text."""
        beginning_regex = re.compile(_pattern(self.text[:END_LENGTH]))
        first = max(start, end - _MAX_WRITTEN_LENGTH * len(self.text))
        for match in beginning_regex.finditer(text, first, end):
            character_start = position = match.end()
            for character in self.text[END_LENGTH:]:
                written = re.compile(_character(character)).match(text, position, end)
                if written is None:
                    break
                character_start, position = written.span()
            # The last character may itself be cut, or its spelling be the beginning of a longer one.
            cuts = (_CUT_CHARACTER.fullmatch(text, start, end) for start in (position, character_start))
            if end - position < _MAX_WRITTEN_LENGTH and any(cuts):
                yield match.start(), end
                return  # later ones are inside of it

    def _spans_cut_at_start(self, text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Where its end stands at the beginning of a piece of the text."""
        ending_regex = re.compile(_pattern(self.text[-END_LENGTH:]))
        last = min(end, start + _MAX_WRITTEN_LENGTH * len(self.text))
        for match in reversed(list(ending_regex.finditer(text, start, last))):
            position = match.start()
            for character in reversed(self.text[:-END_LENGTH]):
                # Expressions read forwards only: what ends here is searched for in the characters before.
                written = re.compile(rf"{_character(character)}\Z").search(
                    text, max(start, position - _MAX_WRITTEN_LENGTH), position
                )
                if written is None:
                    break
                position = written.start()
            if position == start:
                yield start, match.end()
                return  # earlier ones are inside of it


class CutPiece(NamedTuple):
    """A part of a text between two marks, or before or after one, and on which sides more was left out."""

    start: int
    end: int
    cut_before: bool
    cut_after: bool


def cut_pieces(text: str, *, excerpt: bool = False) -> list[CutPiece]:
    """The text as marks divide it. A long one, and an `excerpt`, may be cut at its ends, too."""
    cut = excerpt or len(text) >= TRUNCATION_LENGTH
    pieces = []
    position, cut_before = 0, cut
    for match in _CUT_MARK.finditer(text):
        start, end = match.span()
        before, after = text[max(position, start - _MAX_PADDING) : start], text[end : end + _MAX_PADDING]
        start -= len(before) - len(before.rstrip(" \t\r\n[("))
        pieces.append(CutPiece(position, start, cut_before, cut_after=True))
        position, cut_before = end + len(after) - len(after.lstrip(" \t\r\n])")), True
    return [*pieces, CutPiece(position, len(text), cut_before, cut_after=cut)]


def may_be_truncated(text: str) -> bool:
    return len(text) >= TRUNCATION_LENGTH or "…" in text or "..." in text


def _written_forms(text: str) -> frozenset[str]:
    """With those that they have in JSON."""
    forms = {make(text) for make in SECRET_FORMS.values()}
    return frozenset(forms | {SECRET_FORMS["json-utf8"](form) for form in forms})


def _base64_cores(data: bytes) -> list[str]:
    """What base64 makes of the data alone, for each number of bytes before it modulo 3."""
    cores = []
    # `skipped` characters hold bits of what stands before, and the last one may hold bits of what follows.
    for before, skipped in ((0, 0), (1, 2), (2, 3)):
        encoded = base64.b64encode(bytes(before) + data).decode()
        cores.append(encoded[skipped : (before + len(data)) * 8 // 6])
    return cores


def _either_alphabet(match: re.Match[str]) -> str:
    return r"[+\-]" if match[0] == "+" else "[/_]"


def _pattern(text: str) -> str:
    return "".join(_character(character, len(list(same))) for character, same in groupby(text))


def _character(character: str, count: int = 1) -> str:
    """A pattern for a character that stands there so many times, in all the ways that it is written.

    All of them in the same way: to try every mixture could take for ever.
    """
    if _PLAIN.fullmatch(character):
        return re.escape(character) * count
    spellings = [f"(?:{spelling}){{{count}}}" for spelling in _spellings(character)]
    if character == "\\":
        spellings.append(rf"\\{{{count},}}")
    return f"(?:{'|'.join(spellings)})"


def _spellings(character: str) -> Iterator[str]:
    """The longer ones first: `%` begins `%25`, and `&` begins `&amp;`."""
    units = character.encode("utf-16-be", errors="surrogatepass")
    yield "".join(
        rf"\\+u{_hexadecimal(int.from_bytes(units[at : at + 2]), 4)}" for at in range(0, len(units), 2)
    )
    data = character.encode(errors="surrogatepass")
    yield "".join(rf"\\+x{_hexadecimal(byte, 2)}" for byte in data)
    if ord(character) < 0x100:
        yield rf"\\+x{_hexadecimal(ord(character), 2)}"
    yield "".join(f"%(?:25)*{_hexadecimal(byte, 2)}" for byte in data)
    if entity := _ENTITIES.get(character):
        yield entity
    if control := _CONTROLS.get(character):
        yield r"\\+" + control
    if character == " ":
        yield r"\+"
    if character != "\\":
        yield from _QUOTES.get(character, (re.escape(character),))


def _hexadecimal(number: int, digits: int) -> str:
    """The digits in either case."""
    text = f"{number:0{digits}x}"
    return "".join(f"[{digit}{digit.upper()}]" if digit.isalpha() else digit for digit in text)


class SplitBase64:
    """Knows what base64 makes of secrets, their cores."""

    def __init__(self, cores: Iterable[str]) -> None:
        self._cores = list(cores)
        self._long_cores = "\n".join(core for core in self._cores if len(core) > _MIN_BASE64_LINE_LENGTH)
        """Only of these a whole line can be a part."""

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Where a run of base64 is a part of a core, ends with its beginning or begins with its end.

        `text` may be JSON, where the ends of lines are escaped.
        """
        if len(text) < _BASE64_END_LENGTH:
            return
        standard = text.translate(_STANDARD_ALPHABET)
        # The fast path: without an end of a core in the text, and without long cores, no run is looked at.
        likely = [
            core
            for core in self._cores
            if core[:_BASE64_END_LENGTH] in standard or core[-_BASE64_END_LENGTH:] in standard
        ]
        for match in _RUN.finditer(standard) if likely or self._long_cores else ():
            start, run = match.start(), match[0]
            # The letter of an escape such as `\n` is no base64.
            if run[0] in "nrt" and text[start - 1 : start] == "\\":
                start, run = start + 1, run[1:]
            inner_line = len(run) > _BASE64_END_LENGTH * 2 and run in self._long_cores
            if inner_line or any(_continues(run, core) for core in likely):
                yield start, match.end()


def _continues(run: str, core: str) -> bool:
    """Whether a run ends with the beginning of a core, or begins with its end."""
    beginning, ending = run.rfind(core[:_BASE64_END_LENGTH]), run.find(core[-_BASE64_END_LENGTH:])
    return (beginning >= 0 and core.startswith(run[beginning:])) or (
        ending >= 0 and core.endswith(run[: ending + _BASE64_END_LENGTH])
    )
