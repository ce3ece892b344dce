from typing import NamedTuple


class Row(NamedTuple):
    """One measured figure."""

    name: str
    value: float
    unit: str
    goal: str = ""
