from typing import NamedTuple


class Measurement(NamedTuple):
    """One measured figure. `p95` belongs to a `value` that is a median, in the same unit."""

    name: str
    value: float
    unit: str
    goal: str = ""
    n: int = 0
    p95: float | None = None
    durability: str = ""
    note: str = ""
