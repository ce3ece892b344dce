"""What a secret looks like in a text, however it was written there."""

import base64
import re
from collections.abc import Iterator
from functools import cached_property
from itertools import groupby

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
"""Characters of a text that may be a part of a longer one; a shorter one is whole unless it says `…`."""

_MAX_WRITTEN_LENGTH = 12
"""Characters that one of a secret may take."""

_CUT_CHARACTER = re.compile(r"(?:\\[ux]?[0-9A-Fa-f]*|%[0-9A-Fa-f]*|&[#a-z0-9]*)*")
"""What a cut leaves of a character that is written in another way."""


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
    def core_patterns(self) -> tuple[re.Pattern[str], ...]:
        """Find its cores."""
        return tuple(re.compile(re.sub(r"[+/]", _either_alphabet, core)) for core in self.cores)

    def may_be_in(self, text: str) -> bool:
        """False only if it is not there in any form, nor cut off. `text` may be JSON."""
        if self.anchor in text or any(mark in text for mark in self.landmarks):
            return True
        return may_be_truncated(text) and any(end in text for ends in self.ends for end in ends)

    def truncated_spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Where a long text begins or ends in the middle of it, or a text was cut by `…`."""
        ends = [len(text[: match.start()].rstrip()) for match in re.finditer("…", text)]
        if len(text) >= TRUNCATION_LENGTH:
            yield from self._spans_cut_at_start(text)
            ends.append(len(text))
        for end in ends:
            yield from self._spans_cut_at_end(text, end)

    def _spans_cut_at_end(self, text: str, end: int) -> Iterator[tuple[int, int]]:
        """Where its beginning stands before the end of a text."""
        if not any(beginning in text for beginning in self.ends[0]):
            return
        beginning_regex = re.compile(_pattern(self.text[:END_LENGTH]))
        for match in beginning_regex.finditer(text, max(0, end - _MAX_WRITTEN_LENGTH * len(self.text)), end):
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

    def _spans_cut_at_start(self, text: str) -> Iterator[tuple[int, int]]:
        """Where its end stands at the beginning of a text."""
        if not any(ending in text for ending in self.ends[1]):
            return
        ending_regex = re.compile(_pattern(self.text[-END_LENGTH:]))
        for match in ending_regex.finditer(text, 0, _MAX_WRITTEN_LENGTH * len(self.text)):
            position = match.start()
            for character in reversed(self.text[:-END_LENGTH]):
                # Expressions read forwards only: what ends here is searched for in the characters before.
                written = re.compile(rf"{_character(character)}\Z").search(
                    text, max(0, position - _MAX_WRITTEN_LENGTH), position
                )
                if written is None:
                    break
                position = written.start()
            if position == 0:
                yield 0, match.end()


def may_be_truncated(text: str) -> bool:
    return len(text) >= TRUNCATION_LENGTH or "…" in text


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
