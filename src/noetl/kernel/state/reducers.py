"""How what the iterations of a loop write becomes one value (semantics §8)."""

from collections.abc import Callable, Sequence
from typing import Any

from noetl.expr.runtime.marker import ReferenceUnresolved
from noetl.model.errors import ExpressionError
from noetl.model.reference import append_to_list, is_reference


def combine(reducer: str, base: Any, contributions: Sequence[Any]) -> Any:
    """The base with the contributions, in their order. None as base is nothing at all.

    Raises ExpressionError where the values are not of a kind that the reducer can combine.
    """
    if not contributions:
        return base
    for value in _values_read(reducer, base, contributions):
        if is_reference(value):
            raise ReferenceUnresolved(value, f"what the reducer `{reducer}` combines")
    try:
        return _REDUCERS[reducer](base, contributions)
    except (TypeError, ValueError) as error:
        raise ExpressionError(f"the reducer `{reducer}` cannot combine these values: {error}") from None


def _values_read(reducer: str, base: Any, contributions: Sequence[Any]) -> Sequence[Any]:
    """The values that the reducer must know; others it only puts somewhere."""
    if reducer in ("count", "first", "last"):
        return ()
    if reducer == "append":
        return ()
    return contributions if reducer == "concat" else (base, *contributions)


def _sum(base: Any, contributions: Sequence[Any]) -> Any:
    total = 0 if base is None else _number(base)
    for value in contributions:
        total += _number(value)
    return total


def _number(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{value!r} is not a number")
    return value


def _count(base: Any, contributions: Sequence[Any]) -> Any:
    return _sum(base, [len(contributions)])


def _min(base: Any, contributions: Sequence[Any]) -> Any:
    return min(contributions if base is None else [base, *contributions])


def _max(base: Any, contributions: Sequence[Any]) -> Any:
    return max(contributions if base is None else [base, *contributions])


def _append(base: Any, contributions: Sequence[Any]) -> Any:
    if is_reference(base):
        return _append_to_reference(base, contributions)
    return [*_list(base), *contributions]


def _concat(base: Any, contributions: Sequence[Any]) -> Any:
    if isinstance(base, str) or (base is None and all(isinstance(value, str) for value in contributions)):
        return "".join((base or "", *contributions))
    items = [item for value in contributions for item in _list(value)]
    return _append_to_reference(base, items) if is_reference(base) else [*_list(base), *items]


def _append_to_reference(base: dict[str, Any], items: Sequence[Any]) -> dict[str, Any]:
    extended = append_to_list(base, items)
    if extended is None:
        raise ReferenceUnresolved(base, "what the reducer combines")
    return extended


def _list(value: Any) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise TypeError(f"{value!r} is not a list")
    return value


def _merge(base: Any, contributions: Sequence[Any]) -> Any:
    merged: dict[str, Any] = {}
    for value in (base, *contributions):
        if value is None:
            continue
        if not isinstance(value, dict):
            raise TypeError(f"{value!r} is not a mapping")
        merged.update(value)
    return merged


def _union(base: Any, contributions: Sequence[Any]) -> Any:
    items: list[Any] = list(_list(base))
    seen = {_identity(item) for item in items}
    for value in contributions:
        for item in value if isinstance(value, list) else [value]:
            if (identity := _identity(item)) not in seen:
                seen.add(identity)
                items.append(item)
    return items


def _identity(value: Any) -> Any:
    """Something hashable that is equal for equal JSON values alone: 1 and true differ."""
    if isinstance(value, list):
        return ("list", *map(_identity, value))
    if isinstance(value, dict):
        return ("map", frozenset((key, _identity(item)) for key, item in value.items()))
    return (isinstance(value, bool), value)


def _first(_: Any, contributions: Sequence[Any]) -> Any:
    return contributions[0]


def _last(_: Any, contributions: Sequence[Any]) -> Any:
    return contributions[-1]


_REDUCERS: dict[str, Callable[[Any, Sequence[Any]], Any]] = {
    "sum": _sum,
    "count": _count,
    "min": _min,
    "max": _max,
    "append": _append,
    "concat": _concat,
    "merge": _merge,
    "union": _union,
    "first": _first,
    "last": _last,
}
