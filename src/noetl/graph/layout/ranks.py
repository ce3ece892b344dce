"""Which way is down: a row for every box, and the links that run upwards against the flow."""

from collections.abc import Sequence

from msgspec import Struct

from noetl.graph.layout.geometry import BoxLink


class Ranking(Struct, frozen=True):
    """Rows counted from 0; a link whose number is in `back` points to a row above its source.

    Links of more weight are straighter: the main flow goes on below a step, side branches bend.
    """

    rows: list[int]
    back: frozenset[int]
    weights: list[int]


def rank_boxes(count: int, links: Sequence[BoxLink], root: int) -> Ranking:
    """Every link points downwards, except those that close a cycle when the flow is read from `root`."""
    leaving: list[list[int]] = [[] for _ in range(count)]
    for number, link in enumerate(links):
        if link.source != link.target:
            leaving[link.source].append(number)
    back, order = _depth_first(leaving, links, root)
    rows = [0] * count
    for box in order:
        for number in leaving[box]:
            if number not in back:
                rows[links[number].target] = max(rows[links[number].target], rows[box] + 1)
    _tighten(rows, order, links, back)
    return Ranking(rows, back, _weights(leaving, order, links, back))


def _depth_first(
    leaving: list[list[int]], links: Sequence[BoxLink], root: int
) -> tuple[frozenset[int], list[int]]:
    """The links that point to a box still open, and all boxes in topological order without them."""
    back: set[int] = set()
    closed: list[int] = []
    state = [0] * len(leaving)
    for start in (root, *range(len(leaving))):
        if state[start]:
            continue
        state[start] = 1
        # No recursion: a chain of a thousand steps is deeper than Python goes.
        stack = [(start, iter(leaving[start]))]
        while stack:
            box, open_links = stack[-1]
            for number in open_links:
                target = links[number].target
                if state[target] == 1:
                    back.add(number)
                elif state[target] == 0:
                    state[target] = 1
                    stack.append((target, iter(leaving[target])))
                    break
            else:
                state[box] = 2
                closed.append(box)
                stack.pop()
    return frozenset(back), closed[::-1]


def _tighten(rows: list[int], order: list[int], links: Sequence[BoxLink], back: frozenset[int]) -> None:
    """Moves a box down to its targets where more links leave it than come in."""
    targets: list[list[int]] = [[] for _ in rows]
    incoming = [0] * len(rows)
    for number, link in enumerate(links):
        if number not in back and link.source != link.target:
            targets[link.source].append(link.target)
            incoming[link.target] += 1
    for box in reversed(order):
        if len(targets[box]) > incoming[box]:
            rows[box] = max(rows[box], min(rows[target] for target in targets[box]) - 1)
    lowest = min(rows, default=0)
    for box, row in enumerate(rows):
        rows[box] = row - lowest


def _weights(
    leaving: list[list[int]], order: list[int], links: Sequence[BoxLink], back: frozenset[int]
) -> list[int]:
    """Where two or three links leave a box, the one with the longest way still to go outweighs the others."""
    depth = [0] * len(leaving)
    weights = [1] * len(links)
    for box in reversed(order):
        down = [number for number in leaving[box] if number not in back]
        depths = sorted((depth[links[number].target] for number in down), reverse=True)
        depth[box] = depths[0] + 1 if depths else 0
        if 2 <= len(down) <= 3 and depths[0] > depths[1]:
            main = next(number for number in down if depth[links[number].target] == depths[0])
            weights[main] = len(down)
    return weights
