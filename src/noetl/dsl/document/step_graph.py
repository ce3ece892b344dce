"""Steps and arcs as a graph of numbers: reachability, cycles, ancestors, dominators.

Nothing here recurses: a workflow may be a chain of more steps than Python's stack is deep. Sets of nodes
are bits of a number where they are combined, because `|` and `&` of thousands of bits are one step in C.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias

from noetl.dsl.document.playbook import Playbook

Edges: TypeAlias = Sequence[Sequence[int]]
"""The successors of each node."""


class StepGraph(NamedTuple):
    """The steps of a playbook by their index in the workflow; arcs to unknown steps are left out."""

    names: tuple[str, ...]
    number: dict[str, int]
    successors: list[list[int]]
    entry: int


def step_graph_of(playbook: Playbook) -> StepGraph:
    names = tuple(playbook.steps)
    number = {name: index for index, name in enumerate(names)}
    successors = [
        [number[arc.step] for arc in step.arcs if arc.step in number] for step in playbook.steps.values()
    ]
    return StepGraph(names, number, successors, number[playbook.entry])


def reverse_edges(successors: Edges) -> list[list[int]]:
    """The predecessors of each node, one for each edge."""
    predecessors: list[list[int]] = [[] for _ in successors]
    for node, targets in enumerate(successors):
        for target in targets:
            predecessors[target].append(node)
    return predecessors


def reachable_nodes(successors: Edges, starts: Iterable[int]) -> set[int]:
    """The nodes that can be reached from the starts, themselves included."""
    reached = set(starts)
    waiting = list(reached)
    while waiting:
        for target in successors[waiting.pop()]:
            if target not in reached:
                reached.add(target)
                waiting.append(target)
    return reached


def strong_components(successors: Edges) -> list[list[int]]:
    """The strongly connected components, each after those that it leads to (Tarjan, with its own stack)."""
    unseen = -1
    order = [unseen] * len(successors)
    low = [0] * len(successors)
    on_stack = bytearray(len(successors))
    stack: list[int] = []
    components: list[list[int]] = []
    counter = 0
    for root in range(len(successors)):
        if order[root] != unseen:
            continue
        walk = [(root, iter(successors[root]))]
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
                    walk.append((target, iter(successors[target])))
                    break
                if on_stack[target]:
                    low[node] = min(low[node], order[target])
            else:
                walk.pop()
                if walk:
                    parent = walk[-1][0]
                    low[parent] = min(low[parent], low[node])
                if low[node] == order[node]:
                    components.append(_pop_component(stack, on_stack, node))
    return components


def _pop_component(stack: list[int], on_stack: bytearray, until: int) -> list[int]:
    members = []
    while True:
        member = stack.pop()
        on_stack[member] = 0
        members.append(member)
        if member == until:
            return sorted(members)


def is_cycle(successors: Edges, component: Sequence[int]) -> bool:
    """Whether a component goes round: several nodes, or one that leads to itself."""
    return len(component) > 1 or component[0] in successors[component[0]]


def nodes_on_cycles(successors: Edges) -> set[int]:
    """The nodes from which a path leads back to themselves."""
    return {
        node
        for component in strong_components(successors)
        if is_cycle(successors, component)
        for node in component
    }


def ancestor_masks(successors: Edges) -> list[int]:
    """For each node the set of nodes that reach it, itself included, as bits of a number."""
    # All nodes of a component have the same ancestors. Components come with the last first, so that
    # backwards the mask of each is complete before it is handed on.
    components = strong_components(successors)
    component_of = [0] * len(successors)
    for index, component in enumerate(components):
        for node in component:
            component_of[node] = index
    masks = [0] * len(components)
    for index in range(len(components) - 1, -1, -1):
        component = components[index]
        mask = masks[index]
        for node in component:
            mask |= 1 << node
        masks[index] = mask
        for node in component:
            for target in successors[node]:
                if component_of[target] != index:
                    masks[component_of[target]] |= mask
    return [masks[component_of[node]] for node in range(len(successors))]


def forward_order(successors: Edges, entry: int) -> list[int]:
    """The nodes that can be reached, each before those it leads to as far as cycles allow."""
    order: list[int] = []
    seen = {entry}
    walk = [(entry, iter(successors[entry]))]
    while walk:
        node, targets = walk[-1]
        for target in targets:
            if target not in seen:
                seen.add(target)
                walk.append((target, iter(successors[target])))
                break
        else:
            walk.pop()
            order.append(node)
    order.reverse()
    return order


def immediate_dominators(successors: Edges, order: Sequence[int]) -> dict[int, int]:
    """For each node of a forward order the last one that every path to it passes (Cooper et al.)."""
    rank = {node: index for index, node in enumerate(order)}
    predecessors = reverse_edges(successors)
    dominators = {order[0]: order[0]}
    changed = True
    while changed:
        changed = False
        for node in order[1:]:
            nearest, *other_sources = (source for source in predecessors[node] if source in dominators)
            for source in other_sources:
                nearest = _common_dominator(nearest, source, dominators, rank)
            if dominators.get(node) != nearest:
                dominators[node] = nearest
                changed = True
    return dominators


def _common_dominator(left: int, right: int, dominators: dict[int, int], rank: dict[int, int]) -> int:
    while left != right:
        if rank[left] > rank[right]:
            left = dominators[left]
        else:
            right = dominators[right]
    return left
