"""What sets names at all: in the whole playbook, and in each step."""

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from noetl.dsl.checks.flow.path_sets import Path, Paths
from noetl.dsl.checks.flow.rule_effects import writes_of
from noetl.dsl.document.playbook import Playbook, Task


class Local(NamedTuple):
    """What is set for one step: by the arcs that lead to it, and by itself."""

    args: Paths
    iter: Paths
    run: Paths
    labels: frozenset[str]


class Sources:
    """Everything that can set a name, found out when it is asked for."""

    def __init__(self, playbook: Playbook, given: frozenset[str]) -> None:
        self._playbook = playbook
        self._local: dict[str, Local] = {}
        self.workload = given | frozenset(playbook.workload)

    @cached_property
    def ctx(self) -> Paths:
        writes = (write for step in self._playbook.workflow for write in writes_of(step))
        return Paths(write.path for write in writes if write.scope == "ctx")

    @cached_property
    def everywhere(self) -> Local:
        """What is set for any step at all."""
        parts = [self.of_step(step.name) for step in self._playbook.workflow]
        args = Paths(path for part in parts for path in part.args)
        for step in self._playbook.workflow:
            for task in step.tasks:
                args.update(own_args(task))
        return Local(
            args=args,
            iter=Paths(path for part in parts for path in part.iter),
            run=Paths(path for part in parts for path in part.run),
            labels=frozenset(label for part in parts for label in part.labels),
        )

    def of_step(self, name: str) -> Local:
        found = self._local.get(name)
        if found is None:
            step = self._playbook.steps[name]
            found = self._local[name] = Local(
                args=Paths(map(argument, (*step.args, *self._brought.get(name, ())))),
                iter=Paths(write.path for write in writes_of(step) if write.scope == "iter"),
                run=Paths(write.path for write in writes_of(step) if write.scope == "run"),
                labels=frozenset(task.label for task in step.tasks),
            )
            if step.loop is not None:
                found.iter.add((step.loop.iterator,))
        return found

    @cached_property
    def _brought(self) -> dict[str, set[str]]:
        """The args that arcs bring to each step."""
        brought: dict[str, set[str]] = {}
        for step in self._playbook.workflow:
            for arc in step.arcs:
                brought.setdefault(arc.step, set()).update(arc.args)
        return brought


def argument(key: str) -> Path:
    """An arg's key as a path: arcs may set parts of one."""
    return tuple(key.split("."))


def own_args(task: Task) -> Iterator[Path]:
    return map(argument, task.args or ())
