"""Which parts of values the server reads: found once in the expressions of a playbook.

What a worker reads it reads entire, so only expressions that the server evaluates count here: arcs,
admission, the args, writes and timeout of steps, and what belongs to the executor.
"""

from collections.abc import Container, Iterable

from noetl.dsl.document.playbook import Playbook, Step
from noetl.expr.expression import Expression
from noetl.expr.runtime.scope import NAMESPACES
from noetl.expr.use import Use
from noetl.kernel.expression_reads import expressions_in

Tail = tuple[str, ...]


class StepExpressions:
    """The expressions of a step, collected once: every playbook that is loaded is walked for them."""

    __slots__ = ("of_server", "of_worker", "reads_extracted")

    def __init__(self, step: Step) -> None:
        arcs, writes = expressions_in(step.router), expressions_in(step.writes)
        # In this order: what is kept of a value beside its reference is kept in the order of the reads.
        self.of_server = [
            *arcs,
            *expressions_in(step.admit),
            *expressions_in(step.args),
            *writes,
            *expressions_in(step.timeout),
        ]
        self.of_worker = expressions_in((step.tasks, step.loop))
        self.reads_extracted = any(
            use.path[:3] == ("event", "result", "extracted")
            for expression in (*arcs, *writes)
            for use in expression.uses
        )
        """Whether the arcs or writes read `event.result.extracted`."""


def playbook_expressions(playbook: Playbook) -> list[Expression]:
    """Those that stand outside of steps: the server evaluates all of them."""
    executor = playbook.executor
    return expressions_in((executor.output, executor.timeout, playbook.workload))


class Need:
    """The keys that are read below a value. `entire`: the value itself is read, or handed on."""

    __slots__ = ("below", "entire")

    def __init__(self) -> None:
        self.below: dict[str, Need] = {}
        self.entire = False

    def add(self, tail: Iterable[str], *, entire: bool = True) -> None:
        need = self
        for key in tail:
            need = need.below.setdefault(key, Need())
        need.entire = need.entire or entire

    def at(self, path: Iterable[str]) -> "Need":
        """What is read below this path. What is handed on above it is handed on, too."""
        need, entire = self, False
        for key in path:
            entire = entire or need.entire
            if key not in need.below:
                return ENTIRE if entire else NOTHING
            need = need.below[key]
        return need.union(ENTIRE) if entire and not need.entire else need

    def union(self, other: "Need") -> "Need":
        both = Need()
        both.entire = self.entire or other.entire
        both.below = {**self.below, **other.below}
        for name in self.below.keys() & other.below.keys():
            both.below[name] = self.below[name].union(other.below[name])
        return both


NOTHING = Need()
ENTIRE = Need()
ENTIRE.entire = True


class Needs:
    """What is read of results, and of the values in each namespace. `everything` is all of it together."""

    __slots__ = ("args", "ctx", "everything", "result", "run", "workload")

    def __init__(self, expressions: Iterable[Expression], names: Container[str]) -> None:
        """Of all expressions that the server evaluates, in a playbook whose steps have these names."""
        self.result = Need()
        self.ctx = Need()
        self.args = Need()
        self.workload = Need()
        self.run = Need()
        self.everything = Need()
        for expression in expressions:
            for use in expression.uses:
                self._add(use, names)

    def _add(self, use: Use, names: Container[str]) -> None:
        entire = not use.length_only
        name, *keys = use.path
        match name:
            case "event":
                self._add_event(tuple(keys), entire=entire)
            case "steps":
                if len(keys) < 3:
                    self._add_result((), entire=entire)
                elif keys[1] == "result":
                    self._add_result(tuple(keys[2:]), entire=entire)
            case "joined":
                self.args.add((), entire=True)
            case "ctx" | "args" | "workload" | "run":
                self._add_namespace(getattr(self, name), tuple(keys), entire=entire)
            case _ if name not in NAMESPACES:
                for space in (self.ctx, self.args, self.workload):
                    self._add_namespace(space, use.path, entire=entire)
                if name in names:
                    self._add_result(tuple(keys), entire=entire)
                    if keys and keys[0] == "data":
                        self._add_result(tuple(keys[1:]), entire=entire)

    def _add_event(self, keys: Tail, *, entire: bool) -> None:
        match keys:
            case () | ("data",):
                self._add_result((), entire=True)
            case ("result", *tail) | ("data", "result", *tail):
                self._add_result(tuple(tail), entire=entire)
                if tail and tail[0] == "extracted":
                    self._add_result(tuple(tail[1:]), entire=entire)

    def _add_result(self, tail: Tail, *, entire: bool) -> None:
        self.result.add(tail, entire=entire)
        self.everything.add(tail, entire=entire)

    def _add_namespace(self, space: Need, path: Tail, *, entire: bool) -> None:
        space.add(path, entire=entire)
        # Values move: what is read as `ctx.a.b.c` may have been the `b` of a result, or the `c` of args.
        for start in range(1, len(path) + 1):
            self.everything.add(path[start:], entire=entire)
