"""Columns of results, as the driver describes them."""

from typing import NamedTuple


class FieldOf(NamedTuple):
    type_code: int
    name: str = "c"
    charsetnr: int = 45
    length: int = 255
    scale: int = 0
    flags: int = 0
