"""Which parts of values the server reads: found once in the expressions of a playbook.

What a worker reads it reads whole, so only expressions that the server evaluates count here: arcs,
admission, the args, writes and timeout of steps, and what belongs to the executor.
"""

from collections.abc import Iterable, Iterator

from noetl.dsl.document.playbook import Playbook, Step
from noetl.expr import NAMESPACES, Use
from noetl.kernel.expression_reads import expressions_in

Tail = tuple[str, ...]


class Need:
    """The keys that are read below a value. `whole`: the value itself is read, or handed on."""

    __slots__ = ("below", "entire")

    def __init__(self) -> None:
        self.below: dict[str, Need] = {}
        self.entire = False

    def add(self, tail: Iterable[str], *, whole: bool = True) -> None:
        here = self
        for key in tail:
            here = here.below.setdefault(key, Need())
        here.entire = here.entire or whole

    def at(self, path: Iterable[str]) -> "Need":
        """What is read below this path. What is handed on above it is handed on, too."""
        here, whole = self, False
        for key in path:
            whole = whole or here.entire
            if key not in here.below:
                return ENTIRE if whole else NOTHING
            here = here.below[key]
        return here.joined(ENTIRE) if whole and not here.entire else here

    def joined(self, other: "Need") -> "Need":
        found = Need()
        found.entire = self.entire or other.entire
        found.below = {**self.below, **other.below}
        for name in self.below.keys() & other.below.keys():
            found.below[name] = self.below[name].joined(other.below[name])
        return found


NOTHING = Need()
ENTIRE = Need()
ENTIRE.entire = True


class Needs:
    """What is read of results, and of the values in each namespace. `everything` is all of it together."""

    __slots__ = ("args", "ctx", "everything", "result", "run", "workload")

    def __init__(self, playbook: Playbook) -> None:
        self.result = Need()
        self.ctx = Need()
        self.args = Need()
        self.workload = Need()
        self.run = Need()
        self.everything = Need()
        names = frozenset(playbook.steps)
        for use in _server_uses(playbook):
            self._add(use, names)

    def _add(self, use: Use, names: frozenset[str]) -> None:
        whole = not use.length_only
        name, *rest = use.path
        match name:
            case "event":
                self._add_event(tuple(rest), whole=whole)
            case "steps":
                if len(rest) < 3:
                    self._of_result((), whole=whole)
                elif rest[1] == "result":
                    self._of_result(tuple(rest[2:]), whole=whole)
            case "joined":
                self.args.add((), whole=True)
            case "ctx" | "args" | "workload" | "run":
                self._of_space(getattr(self, name), tuple(rest), whole=whole)
            case _ if name not in NAMESPACES:
                for space in (self.ctx, self.args, self.workload):
                    self._of_space(space, use.path, whole=whole)
                if name in names:
                    self._of_result(tuple(rest), whole=whole)
                    if rest and rest[0] == "data":
                        self._of_result(tuple(rest[1:]), whole=whole)

    def _add_event(self, rest: Tail, *, whole: bool) -> None:
        match rest:
            case () | ("data",):
                self._of_result((), whole=True)
            case ("result", *tail) | ("data", "result", *tail):
                self._of_result(tuple(tail), whole=whole)
                if tail and tail[0] == "extracted":
                    self._of_result(tuple(tail[1:]), whole=whole)

    def _of_result(self, tail: Tail, *, whole: bool) -> None:
        self.result.add(tail, whole=whole)
        self.everything.add(tail, whole=whole)

    def _of_space(self, space: Need, path: Tail, *, whole: bool) -> None:
        space.add(path, whole=whole)
        for start in range(1, len(path) + 1):
            self.everything.add(path[start:], whole=whole)


def reads_extracted(step: Step) -> bool:
    """Whether the arcs or writes of a step read `event.result.extracted`."""
    uses = _uses((step.router, step.writes))
    return any(use.path[:3] == ("event", "result", "extracted") for use in uses)


def _server_uses(playbook: Playbook) -> Iterator[Use]:
    executor = playbook.executor
    yield from _uses((executor.output, executor.timeout, playbook.workload))
    for step in playbook.workflow:
        yield from _uses((step.router, step.admit, step.args, step.writes, step.timeout))


def _uses(values: object) -> Iterator[Use]:
    for expression in expressions_in(values):
        yield from expression.uses
