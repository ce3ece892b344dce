"""State that playbooks write: `ctx`, `run`, `iter`; and which parked tokens a write concerns.

Those are found by what their rules read, not by asking them all.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from noetl.expr.runtime.marker import write_at_path
from noetl.kernel.plan import Watch
from noetl.model.reference import MARKER, encode_value

Path: TypeAlias = tuple[str, ...]
Watchers = dict[str, dict[str, dict[str, None]]]
"""Tokens by `space.key` and the key below it; "" stands for everything from there on."""


class Variables:
    """A mapping that is copied when it is written and somebody else still reads it.

    `size` is about what it takes in JSON, kept up to date by every write.
    """

    __slots__ = ("shared", "size", "values")

    def __init__(
        self, values: dict[str, Any] | None = None, *, shared: bool = False, size: int | None = None
    ) -> None:
        self.values: dict[str, Any] = {} if values is None else values
        self.shared = shared
        self.size = size if size is not None else mapping_size(values) if values else 0

    def pinned(self) -> "Variables":
        """As it is now, whatever is written here later."""
        # Both sides share the mapping until one of them writes. Every run pins ctx when it is scheduled and
        # few write to it: copies would cost the size of ctx for each run.
        self.shared = True
        return Variables(self.values, shared=True, size=self.size)

    def write(self, path: Path, value: Any) -> None:
        """`a.b` under something that is no mapping makes it one."""
        if self.shared:
            self.values = dict(self.values)
            self.shared = False
        # Counted by what changes: encoding all of ctx after each write would make a loop's writes quadratic.
        self.size += size_growth(self.values, path, value)
        key = path[0]
        self.values[key] = value if len(path) == 1 else write_at_path(self.values.get(key), path[1:], value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Variables) and self.values == other.values and self.shared == other.shared

    __hash__ = None  # type: ignore[assignment]  # it changes

    def __repr__(self) -> str:
        return f"Variables({self.values!r}, shared={self.shared})"


def mapping_size(values: Mapping[str, Any]) -> int:
    """About what a mapping takes in JSON."""
    return sum(len(key) + json_size(value) for key, value in values.items())


def json_size(value: Any) -> int:
    """About what a value takes in JSON."""
    kind = type(value)
    if kind is str:
        return len(value) + 2
    # Numbers and the rest count as eight: a limit of a megabyte does not need their digits.
    return len(encode_value(value)) if kind is dict or kind is list else 8


def size_growth(values: Mapping[str, Any], path: Path, value: Any) -> int:
    """By how much the size changes if this is written."""
    current: Any = values
    for key in path:
        if type(current) is not dict:
            return len(path[-1]) + json_size(value) - json_size(current)
        # Below a reference nothing is replaced that counts: the write is kept beside it.
        if key not in current or MARKER in current:
            return len(path[-1]) + json_size(value)
        current = current[key]
    return json_size(value) - json_size(current)


def variable_at(values: object, path: Path) -> Any:
    """The value at this path; None where there is none."""
    for key in path:
        if not isinstance(values, Mapping) or key not in values:
            return None
        values = values[key]
    return values


def watch(watchers: Watchers, token: str, watches: Iterable[Watch]) -> None:
    for space, key, below in watches:
        watchers.setdefault(f"{space}.{key}", {}).setdefault(below, {})[token] = None


def unwatch(watchers: Watchers, token: str, watches: Iterable[Watch]) -> None:
    for space, key, below in watches:
        variable = f"{space}.{key}"
        levels = watchers.get(variable, {})
        tokens = levels.get(below, {})
        tokens.pop(token, None)
        if not tokens:
            levels.pop(below, None)
        if not levels:
            watchers.pop(variable, None)


# The fast path of asking all parked tokens again after every write, which is quadratic where many wait.
# test_kernel_fast_paths.py holds that it finds all whose rules read what was written.
def watching_tokens(watchers: Watchers, space: str, path: Path) -> Iterator[str]:
    """The tokens that watch this path, something above it, or something below it."""
    for variable in (f"{space}.", f"{space}.{path[0]}"):
        levels = watchers.get(variable)
        if not levels:
            continue
        if len(path) == 1:
            for tokens in levels.values():
                yield from tokens
        else:
            yield from levels.get("", ())
            yield from levels.get(path[1], ())
