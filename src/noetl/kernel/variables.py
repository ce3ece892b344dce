"""State that playbooks write: `ctx`, `run`, `iter`."""

from collections.abc import Mapping
from typing import Any, TypeAlias

Path: TypeAlias = tuple[str, ...]


class Variables:
    """A mapping that is copied when it is written and somebody else still reads it."""

    __slots__ = ("shared", "values")

    def __init__(self, values: dict[str, Any] | None = None, *, shared: bool = False) -> None:
        self.values: dict[str, Any] = {} if values is None else values
        self.shared = shared

    def pinned(self) -> "Variables":
        """As it is now, whatever is written here later."""
        self.shared = True
        return Variables(self.values, shared=True)

    def write(self, path: Path, value: Any) -> None:
        """`a.b` under something that is no mapping makes it one."""
        if self.shared:
            self.values = dict(self.values)
            self.shared = False
        key = path[0]
        self.values[key] = value if len(path) == 1 else written(self.values.get(key), path[1:], value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Variables) and self.values == other.values and self.shared == other.shared

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Variables({self.values!r}, shared={self.shared})"


def written(values: object, path: Path, value: Any) -> dict[str, Any]:
    """A copy with the value at this path; what is not on the way is shared."""
    copy = dict(values) if isinstance(values, Mapping) else {}
    key = path[0]
    copy[key] = value if len(path) == 1 else written(copy.get(key), path[1:], value)
    return copy


def read(values: object, path: Path) -> Any:
    """The value at this path; None where there is none."""
    for key in path:
        if not isinstance(values, Mapping) or key not in values:
            return None
        values = values[key]
    return values
