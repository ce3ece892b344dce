"""Expressions so plain that a pattern reads them: a path, or a path compared with one constant."""

import re
from typing import NamedTuple

from noetl.expr.use import Path

_PLAIN = re.compile(
    r"\{\{ *(?P<path>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*){0,15})"
    r""" *(?:(?P<operator>[=!]=|[<>]=?) *(?:'[^'\\\n]*'|"[^"\\\n]*"|0|[1-9][0-9]{0,8}) *)?\}\}""",
    re.ASCII,
)
_LONGEST = 1_000
_KEYWORDS = frozenset(
    {"and", "else", "elif", "false", "if", "in", "is", "none", "not", "or", "self", "true"}
    | {"False", "None", "True"}
)


class PlainSource(NamedTuple):
    """`path` begins at `offset`; `operator` is empty where it is all there is."""

    path: Path
    offset: int
    operator: str


def read_plain(source: str) -> PlainSource | None:
    """What a plain source says; None for every other, which the parser has to read.

    A document may have a hundred thousand guards, each of them another: a pattern is 20 times as fast as
    `parse_syntax`.
    """
    match = _PLAIN.fullmatch(source) if len(source) <= _LONGEST else None
    if match is None:
        return None
    path = tuple(match["path"].split("."))
    return None if path[0] in _KEYWORDS else PlainSource(path, match.start("path"), match["operator"] or "")
