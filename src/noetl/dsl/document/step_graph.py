"""Steps and arcs as a graph of numbers: reachability, cycles, ancestors, dominators. Never recursive."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias

from noetl.dsl.document.playbook import Playbook

Edges: TypeAlias = Sequence[Sequence[int]]
"""The successors of each node."""


class StepGraph(NamedTuple):
    """The steps of a playbook by their position in the workflow; arcs to unknown steps are left out."""

    names: tuple[str, ...]
    number: dict[str, int]
    successors: list[list[int]]
    entry: int


def step_graph_of(playbook: Playbook) -> StepGraph:
    names = tuple(playbook.steps)
    number = {name: position for position, name in enumerate(names)}
    after = [
        [number[arc.step] for arc in step.arcs if arc.step in number] for step in playbook.steps.values()
    ]
    return StepGraph(names, number, after, number[playbook.entry])


def reverse_edges(after: Edges) -> list[list[int]]:
    """The predecessors of each node, one for each edge."""
    before: list[list[int]] = [[] for _ in after]
    for node, targets in enumerate(after):
        for target in targets:
            before[target].append(node)
    return before


def reachable_nodes(after: Edges, starts: Iterable[int]) -> set[int]:
    """The nodes that can be reached from the starts, themselves included."""
    found = set(starts)
    waiting = list(found)
    while waiting:
        for target in after[waiting.pop()]:
            if target not in found:
                found.add(target)
                waiting.append(target)
    return found


def strong_components(after: Edges) -> list[list[int]]:
    """The strongly connected components, each after those that it leads to (Tarjan, with its own stack)."""
    unseen = -1
    order = [unseen] * len(after)
    low = [0] * len(after)
    on_stack = bytearray(len(after))
    stack: list[int] = []
    found: list[list[int]] = []
    counter = 0
    for root in range(len(after)):
        if order[root] != unseen:
            continue
        walk = [(root, iter(after[root]))]
        order[root] = low[root] = counter
        counter += 1
        stack.append(root)
        on_stack[root] = 1
        while walk:
            node, targets = walk[-1]
            for target in targets:
                if order[target] == unseen:
                    order[target] = low[target] = counter
                    counter += 1
                    stack.append(target)
                    on_stack[target] = 1
                    walk.append((target, iter(after[target])))
                    break
                if on_stack[target]:
                    low[node] = min(low[node], order[target])
            else:
                walk.pop()
                if walk:
                    parent = walk[-1][0]
                    low[parent] = min(low[parent], low[node])
                if low[node] == order[node]:
                    found.append(_popped(stack, on_stack, node))
    return found


def _popped(stack: list[int], on_stack: bytearray, until: int) -> list[int]:
    members = []
    while True:
        member = stack.pop()
        on_stack[member] = 0
        members.append(member)
        if member == until:
            return sorted(members)


def is_cycle(after: Edges, component: Sequence[int]) -> bool:
    """Whether a component goes round: several nodes, or one that leads to itself."""
    return len(component) > 1 or component[0] in after[component[0]]


def nodes_on_cycles(after: Edges) -> set[int]:
    """The nodes from which a path leads back to themselves."""
    return {node for part in strong_components(after) if is_cycle(after, part) for node in part}


def ancestor_masks(after: Edges) -> list[int]:
    """For each node the set of nodes that reach it, itself included, as bits of a number."""
    parts = strong_components(after)
    home = [0] * len(after)
    for position, part in enumerate(parts):
        for node in part:
            home[node] = position
    masks = [0] * len(parts)
    for position in range(len(parts) - 1, -1, -1):
        part = parts[position]
        mask = masks[position]
        for node in part:
            mask |= 1 << node
        masks[position] = mask
        for node in part:
            for target in after[node]:
                if home[target] != position:
                    masks[home[target]] |= mask
    return [masks[home[node]] for node in range(len(after))]


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
    before = reverse_edges(after)
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
