"""What sets names at all: in the whole playbook, and in each step."""

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from noetl.dsl.checks.flow.path_sets import Path, PathSet
from noetl.dsl.checks.flow.rule_effects import step_writes
from noetl.dsl.document.playbook import Playbook, Task


class StepNameSources(NamedTuple):
    """What is set for one step: by the arcs that lead to it, and by itself."""

    args: PathSet
    iter: PathSet
    run: PathSet
    labels: frozenset[str]


class NameSources:
    """Everything that can set a name, found out when it is asked for."""

    def __init__(self, playbook: Playbook, workload_keys: frozenset[str]) -> None:
        self._playbook = playbook
        self._local: dict[str, StepNameSources] = {}
        self.workload = workload_keys | frozenset(playbook.workload)

    @cached_property
    def ctx(self) -> PathSet:
        writes = (write for step in self._playbook.workflow for write in step_writes(step))
        return PathSet(write.path for write in writes if write.scope == "ctx")

    @cached_property
    def everywhere(self) -> StepNameSources:
        """What is set for any step at all."""
        step_sources = [self.of_step(step.name) for step in self._playbook.workflow]
        args = PathSet(path for sources in step_sources for path in sources.args)
        for step in self._playbook.workflow:
            for task in step.tasks:
                args.update(task_arg_paths(task))
        return StepNameSources(
            args=args,
            iter=PathSet(path for sources in step_sources for path in sources.iter),
            run=PathSet(path for sources in step_sources for path in sources.run),
            labels=frozenset(label for sources in step_sources for label in sources.labels),
        )

    def of_step(self, name: str) -> StepNameSources:
        sources = self._local.get(name)
        if sources is None:
            step = self._playbook.steps[name]
            sources = self._local[name] = StepNameSources(
                args=PathSet(map(argument_path, (*step.args, *self._brought.get(name, ())))),
                iter=PathSet(write.path for write in step_writes(step) if write.scope == "iter"),
                run=PathSet(write.path for write in step_writes(step) if write.scope == "run"),
                labels=frozenset(task.label for task in step.tasks),
            )
            if step.loop is not None:
                sources.iter.add((step.loop.iterator,))
        return sources

    @cached_property
    def _brought(self) -> dict[str, set[str]]:
        """The args that arcs bring to each step."""
        brought: dict[str, set[str]] = {}
        for step in self._playbook.workflow:
            for arc in step.arcs:
                brought.setdefault(arc.step, set()).update(arc.args)
        return brought


def argument_path(key: str) -> Path:
    """An arg's key as a path: arcs may set parts of one."""
    return tuple(key.split("."))


def task_arg_paths(task: Task) -> Iterator[Path]:
    return map(argument_path, task.args or ())
