"""The part of the model that is about loops: the order of iterations, and what reducers make of writes."""

from collections.abc import Sequence
from typing import Any

from noetl.testing.oracle.abstract_playbook import AbstractLoop


def loop_problem(loop: AbstractLoop, moves: Sequence[tuple[int, str]]) -> str:
    """What is wrong with how the iterations of a run began and ended, in that order; empty if nothing is."""
    open_ones: set[int] = set()
    begun: set[int] = set()
    stopped = False
    for index, move in moves:
        if move == "begins":
            waiting = [other for other in range(len(loop.items)) if other not in begun]
            lowest = min([*open_ones, *waiting[:1]])
            full = len(open_ones) >= (loop.in_flight if loop.parallel else 1)
            # Workers that share a loop have ranges of it, so that one may be ahead of another.
            early = index != waiting[0] and not (loop.distributed and loop.parallel and index in waiting)
            if early or stopped or full or index >= lowest + loop.window:
                return f"iteration {index} begins too early"
            open_ones.add(index)
            begun.add(index)
        else:
            if index not in open_ones or move != ("error" if index in loop.failing else "success"):
                return f"iteration {index} ends with {move}"
            open_ones.remove(index)
            stopped = stopped or (move == "error" and not loop.best_effort)
    if open_ones or (len(begun) < len(loop.items) and not stopped):
        return f"{len(begun)} of {len(loop.items)} iterations began, and {len(open_ones)} never ended"
    return ""


def reduced_value(reducer: str, base: Any, writes: Sequence[Any]) -> Any:
    """The writes, in their order, onto what was there; None if nothing was."""
    values = [*writes] if base is None else [base, *writes]
    match reducer:
        case "sum":
            return sum(values)
        case "count":
            return (base or 0) + len(writes)
        case "min":
            return min(values)
        case "max":
            return max(values)
        case "first":
            return writes[0]
        case "last":
            return writes[-1]
        case "append":
            return [*(base or []), *writes]
        case "concat":
            return "".join(values) if isinstance(values[0], str) else [x for value in values for x in value]
        case "merge":
            return {key: value for mapping in values for key, value in mapping.items()}
        case "union":
            return _union(base or [], writes)
        case _:
            raise ValueError(reducer)


def _union(base: list[Any], writes: Sequence[Any]) -> list[Any]:
    """A list counts as its items. What was there stays as it was."""
    items = list(base)
    for write in writes:
        for item in write if isinstance(write, list) else [write]:
            if not any(_same(item, other) for other in items):
                items.append(item)
    return items


def _same(first: Any, second: Any) -> bool:
    """Equal as JSON: true is no number."""
    if isinstance(first, bool) or isinstance(second, bool):
        return first is second
    if isinstance(first, list) and isinstance(second, list):
        return len(first) == len(second) and all(map(_same, first, second))
    if isinstance(first, dict) and isinstance(second, dict):
        return first.keys() == second.keys() and all(_same(first[key], second[key]) for key in first)
    return bool(first == second)
