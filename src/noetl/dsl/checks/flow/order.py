"""Orders and dominators of a graph, without recursion."""

from collections.abc import Sequence

from noetl.dsl.checks.graph import Edges, reversed_edges


def forward_order(after: Edges, entry: int) -> list[int]:
    """The nodes that can be reached, each before those it leads to as far as cycles allow."""
    order: list[int] = []
    seen = {entry}
    walk = [(entry, iter(after[entry]))]
    while walk:
        node, targets = walk[-1]
        for target in targets:
            if target not in seen:
                seen.add(target)
                walk.append((target, iter(after[target])))
                break
        else:
            walk.pop()
            order.append(node)
    order.reverse()
    return order


def immediate_dominators(after: Edges, order: Sequence[int]) -> dict[int, int]:
    """For each node of a forward order the last one that every path to it passes (Cooper et al.)."""
    rank = {node: position for position, node in enumerate(order)}
    before = reversed_edges(after)
    found = {order[0]: order[0]}
    changed = True
    while changed:
        changed = False
        for node in order[1:]:
            nearest, *others = (source for source in before[node] if source in found)
            for other in others:
                nearest = _common(nearest, other, found, rank)
            if found.get(node) != nearest:
                found[node] = nearest
                changed = True
    return found


def _common(one: int, other: int, found: dict[int, int], rank: dict[int, int]) -> int:
    while one != other:
        if rank[one] > rank[other]:
            one = found[one]
        else:
            other = found[other]
    return one
