"""What the arcs of a workflow alone tell: who has surely run before whom, and where tokens meet."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple


class GraphArc(NamedTuple):
    """An arc to a step; `after_failure` says whether a failed run may take it."""

    target: str
    after_failure: bool


class ArcGraph:
    """Steps and arcs by name. Arcs to steps that do not exist are left out."""

    def __init__(self, arcs: Mapping[str, Iterable[GraphArc]], entry: str, inclusive: Iterable[str]) -> None:
        self._arcs = {name: [arc for arc in out if arc.target in arcs] for name, out in arcs.items()}
        self._inclusive = set(inclusive)
        self._entry = entry
        self._spans = _tree_spans(self._immediate_dominators(), entry)

    def surely_done(self, step: str, before: str) -> bool:
        """Whether every token that reaches `before` comes from a run of `step` that succeeded."""
        done, reader = self._spans.get(f"{step}\n"), self._spans.get(before)
        return done is not None and reader is not None and done[0] < reader[0] <= done[1]

    def predecessors(self, step: str) -> list[str]:
        """The steps with an arc to it, in document order."""
        return [name for name, out in self._arcs.items() if any(arc.target == step for arc in out)]

    def ancestors(self, step: str) -> set[str]:
        """The steps from which arcs lead to it; itself if it stands on a cycle."""
        incoming: dict[str, list[str]] = {}
        for name, out in self._arcs.items():
            for arc in out:
                incoming.setdefault(arc.target, []).append(name)
        return _closure(incoming, incoming.get(step, []))

    def _immediate_dominators(self) -> dict[str, str]:
        r"""Whoever every token comes from last (Cooper, Harvey, Kennedy), with two nodes for each step.

        `NAME` is the step entered, `NAME\n` the step done; after a failure a token leaves from the first.
        """
        edges: dict[str, list[str]] = {}
        for name, out in self._arcs.items():
            edges[name] = [f"{name}\n", *(arc.target for arc in out if arc.after_failure)]
            edges[f"{name}\n"] = [arc.target for arc in out if not arc.after_failure]
        if self._entry not in edges:
            return {}
        order = _postorder(edges, self._entry)
        rank = {node: number for number, node in enumerate(order)}
        incoming: dict[str, list[str]] = {}
        for node in order:
            for target in edges[node]:
                incoming.setdefault(target, []).append(node)
        immediate = {self._entry: self._entry}
        changed = True
        while changed:
            changed = False
            for node in reversed(order[:-1]):
                known = [source for source in incoming[node] if source in immediate]
                nearest = known[0]
                for source in known[1:]:
                    nearest = _common(immediate, rank, nearest, source)
                if immediate.get(node) != nearest:
                    immediate[node] = nearest
                    changed = True
        return immediate

    def meeting_steps(self) -> set[str]:
        """The steps, on no cycle, at which several tokens of one inclusive router meet."""
        targets = {name: [arc.target for arc in out] for name, out in self._arcs.items()}
        meeting: set[str] = set()
        order = {name: number for number, name in enumerate(reversed(_postorder(targets, self._entry)))}
        for name in sorted((self._inclusive & set(order)), key=order.__getitem__):
            branches = list(dict.fromkeys(targets[name]))
            if len(branches) > 1:
                meeting |= _meeting(targets, name, branches, order)
        return meeting


def _meeting(
    targets: Mapping[str, list[str]], router: str, branches: list[str], order: Mapping[str, int]
) -> set[str]:
    """Where the branches of one router meet. Beyond such a step there is one token again."""
    meeting: set[str] = set()
    # By step: which branches reach it, through which step before it.
    reached: dict[str, dict[str, set[str]]] = {}
    for branch in branches:
        reached.setdefault(branch, {}).setdefault(branch, set()).add(router)
    for step in sorted(order, key=order.__getitem__):
        sources = reached.get(step)
        if sources is None or step == router:
            continue
        through = set().union(*sources.values())
        carried = sources
        if len(sources) > 1 and len(through) > 1 and step not in _closure(targets, targets[step]):
            meeting.add(step)
            carried = {step: set()}
        for target in targets[step]:
            if order.get(target, -1) > order[step]:
                for branch in carried:
                    reached.setdefault(target, {}).setdefault(branch, set()).add(step)
    return meeting


def _closure(edges: Mapping[str, list[str]], start: Iterable[str]) -> set[str]:
    """Everything that edges lead to from these, with these."""
    seen: set[str] = set()
    waiting = list(start)
    while waiting:
        node = waiting.pop()
        if node not in seen:
            seen.add(node)
            waiting.extend(edges.get(node, ()))
    return seen


def _postorder(edges: Mapping[str, list[str]], entry: str) -> list[str]:
    """The nodes that can be reached, each after those it leads to first; no recursion: chains are long."""
    order: list[str] = []
    seen = {entry}
    stack = [(entry, iter(edges.get(entry, ())))]
    while stack:
        node, targets = stack[-1]
        for target in targets:
            if target not in seen:
                seen.add(target)
                stack.append((target, iter(edges.get(target, ()))))
                break
        else:
            order.append(node)
            stack.pop()
    return order


def _tree_spans(immediate: Mapping[str, str], entry: str) -> dict[str, tuple[int, int]]:
    """Each node's number in the tree and the last one below it, so that one comparison tells."""
    children: dict[str, list[str]] = {}
    for node, parent in immediate.items():
        if node != entry:
            children.setdefault(parent, []).append(node)
    order = _postorder(children, entry) if immediate else []
    sizes: dict[str, int] = {}
    for node in order:
        sizes[node] = 1 + sum(sizes[child] for child in children.get(node, ()))
    first = {entry: 0}
    for node in reversed(order):
        number = first[node] + 1
        for child in children.get(node, ()):
            first[child] = number
            number += sizes[child]
    return {node: (first[node], first[node] + sizes[node] - 1) for node in order}


def _common(immediate: Mapping[str, str], rank: Mapping[str, int], left: str, right: str) -> str:
    """The nearest node that both surely come from."""
    while left != right:
        while rank[left] < rank[right]:
            left = immediate[left]
        while rank[right] < rank[left]:
            right = immediate[right]
    return left
