"""What sets names: in the whole playbook and in each step, and the sets of dotted paths that say so."""

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import NamedTuple

from noetl.dsl.document.playbook import Playbook, Step, Task, Write
from noetl.expr.use import Path


class PathSet:
    """Paths that something sets.

    `a.b` is in the set if `a`, `a.b` or `a.b.c` was added: a whole value brings its keys, and a key
    its owner.
    """

    __slots__ = ("_prefixes", "_set")

    def __init__(self, paths: Iterable[Path] = ()) -> None:
        self._set: set[Path] = set()
        self._prefixes: set[Path] = set()
        self.update(paths)

    def update(self, paths: Iterable[Path]) -> None:
        for path in paths:
            self.add(path)

    def add(self, path: Path) -> None:
        if path not in self._set:
            self._set.add(path)
            self._prefixes.update(path[:length] for length in range(1, len(path) + 1))

    def __contains__(self, path: Path) -> bool:
        return path in self._prefixes or any(path[:length] in self._set for length in range(1, len(path)))

    def __iter__(self) -> Iterator[Path]:
        return iter(self._set)


class PathBits:
    """Bits of paths that are read, found by the paths that set them.

    Every start of a path is a key, so that `set_by` costs the length of the path, not the number of paths.
    """

    __slots__ = ("_exact", "_under")

    def __init__(self) -> None:
        self._exact: dict[Path, int] = {}
        self._under: dict[Path, int] = {}

    def add(self, path: Path, bit: int) -> None:
        self._exact[path] = self._exact.get(path, 0) | bit
        for length in range(1, len(path) + 1):
            start = path[:length]
            self._under[start] = self._under.get(start, 0) | bit

    def get(self, path: Path) -> int | None:
        return self._exact.get(path)

    def set_by(self, path: Path) -> int:
        """The bits of all paths that a value at this one sets."""
        bits = self._under.get(path, 0)
        for length in range(1, len(path) if self._exact else 0):
            bits |= self._exact.get(path[:length], 0)
        return bits


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


def task_writes(task: Task) -> Iterator[Write]:
    """The writes that a task and its rules may make."""
    yield from task.writes
    for then in task.thens:
        yield from then.writes


def run_writes(step: Step) -> Iterator[Write]:
    """The writes that a run of the step may make before an arc is taken."""
    for task in step.tasks:
        yield from task_writes(task)
    yield from step.writes


def step_writes(step: Step) -> Iterator[Write]:
    """Every write that the step and its arcs may make."""
    yield from run_writes(step)
    for arc in step.arcs:
        yield from arc.writes
