"""What a secret looks like in a text, however it was written there."""

import base64
import json
import re
from collections.abc import Iterator
from typing import NamedTuple

from noetl.model.secret import Origin

_PLAIN = re.compile(r"[A-Za-z0-9_.~-]+")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&(?:quot|#34);", "'": "&#(?:39|x27);"}
_CONTROLS = {"\n": "n", "\r": "r", "\t": "t", "\b": "b", "\f": "f"}


ENDS = 6
"""Characters of a secret by which it is known where the rest was cut off."""

CUT = 1_000
"""Characters of a text that may be a part of a longer one; a shorter one is whole unless it says `…`."""


class Needle(NamedTuple):
    """One secret, or one `line` of it.

    `pattern` finds it as it is, JSON-escaped and URL-encoded, in any mixture. `anchor` is a part that all of
    these have in common, empty if there is none. `cores` find it inside base64, at each of the three ways
    that it can lie there; `landmarks` are the texts one of which is there whenever a core is.
    """

    text: str
    origin: Origin
    line: int | None
    pattern: re.Pattern[str]
    anchor: str
    cores: tuple[re.Pattern[str], ...]
    landmarks: tuple[str, ...]
    ends: tuple[str, ...]
    """The beginning and the end of it, as they are in JSON."""

    def may_be_in(self, text: str) -> bool:
        """False only if it is not there in any form, nor cut off. `text` may be JSON."""
        return self.anchor in text or any(mark in text for mark in (*self.landmarks, *self.ends))

    def cut_off(self, text: str) -> Iterator[tuple[int, int]]:
        """Where a long text begins or ends in the middle of it, or a text was cut by `…`."""
        first, last = self.text[:ENDS], self.text[-ENDS:]
        end = text.rfind("…")
        if len(text) >= CUT:
            if (at := text.find(last, 0, len(self.text))) >= 0 and self.text.endswith(text[: at + ENDS]):
                yield 0, at + ENDS
            end = len(text)
        while end >= 0:
            at = text.rfind(first, max(0, end - len(self.text)), end)
            if at >= 0 and self.text.startswith(text[at:end]):
                yield at, end
            end = text.rfind("…", 0, end)


def needle_of(text: str, origin: Origin, line: int | None = None) -> Needle:
    cores = tuple(_cores(text.encode(errors="surrogatepass")))
    return Needle(
        text=text,
        origin=origin,
        line=line,
        pattern=re.compile("".join(map(_character, text))),
        anchor=max(_PLAIN.findall(text), key=len, default=""),
        cores=tuple(re.compile(re.sub(r"[+/]", _either, core)) for core in cores),
        ends=tuple(json.dumps(end, ensure_ascii=False)[1:-1] for end in (text[:ENDS], text[-ENDS:])),
        landmarks=tuple(
            dict.fromkeys(
                variant for core in cores for variant in (core, core.translate(str.maketrans("+/", "-_")))
            )
        ),
    )


def _cores(data: bytes) -> list[str]:
    """What base64 makes of the data alone, for each number of bytes before it modulo 3."""
    found = []
    for before, skipped in ((0, 0), (1, 2), (2, 3)):
        encoded = base64.b64encode(bytes(before) + data).decode()
        found.append(encoded[skipped : (before + len(data)) * 8 // 6])
    return found


def _either(match: re.Match[str]) -> str:
    return r"[+\-]" if match[0] == "+" else "[/_]"


def _character(character: str) -> str:
    """A pattern for one character in all the ways that it is written."""
    if _PLAIN.fullmatch(character):
        return re.escape(character)
    ways = [re.escape(character)]
    if character in "\"'/":
        ways[0] = r"\\*" + ways[0]
    elif character == "\\":
        ways[0] = r"\\+"
    elif character == " ":
        ways.append(r"\+")
    if control := _CONTROLS.get(character):
        ways.append(r"\\+" + control)
    if entity := _ENTITIES.get(character):
        ways.append(entity)
    data = character.encode(errors="surrogatepass")
    ways.append("".join(f"%{_hexadecimal(byte, 2)}" for byte in data))
    units = character.encode("utf-16-be", errors="surrogatepass")
    ways.append(
        "".join(
            rf"\\+u{_hexadecimal(int.from_bytes(units[at : at + 2]), 4)}" for at in range(0, len(units), 2)
        )
    )
    # The longer ways first: `%` begins `%25`, and `&` begins `&amp;`.
    return f"(?:{'|'.join(reversed(ways))})"


def _hexadecimal(number: int, digits: int) -> str:
    """The digits in either case."""
    text = f"{number:0{digits}x}"
    return "".join(f"[{digit}{digit.upper()}]" if digit.isalpha() else digit for digit in text)
