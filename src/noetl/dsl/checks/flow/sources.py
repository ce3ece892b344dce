"""What sets names at all: in the whole playbook, and in each step."""

from collections.abc import Iterator
from typing import NamedTuple

from noetl.dsl.checks.flow.paths import Path, Paths
from noetl.dsl.checks.guards import thens
from noetl.dsl.playbook import Playbook, Step, Task, Write


class Local(NamedTuple):
    """What is set for one step: by the arcs that lead to it, and by itself."""

    args: Paths
    iter: Paths
    run: Paths
    labels: frozenset[str]


class Sources(NamedTuple):
    """Everything that can set a name. `everywhere` is what is set for any step at all."""

    ctx: Paths
    local: dict[str, Local]
    everywhere: Local
    workload: frozenset[str]


def sources_of(playbook: Playbook, given: frozenset[str]) -> Sources:
    ctx = Paths()
    everywhere = Local(Paths(), Paths(), Paths(), _labels(playbook))
    local = {name: _local(step) for name, step in playbook.steps.items()}
    for step in playbook.workflow:
        for write in writes_of(step):
            if write.scope == "ctx":
                ctx.add(write.path)
        for arc in step.arcs:
            if (target := local.get(arc.step)) is not None:
                for key in arc.args:
                    target.args.add(argument(key))
    for step in playbook.workflow:
        for task in step.tasks:
            everywhere.args.update(own_args(task))
    for part in local.values():
        for here, there in zip(part[:3], everywhere[:3], strict=True):
            there.update(here)
    return Sources(ctx, local, everywhere, given | frozenset(playbook.workload))


def writes_of(step: Step) -> Iterator[Write]:
    """Every write that a run of the step may make, those of its arcs included."""
    for task in step.tasks:
        yield from task.writes
        if task.policy is not None:
            for then in thens(task.policy):
                yield from then.writes
    yield from step.writes
    for arc in step.arcs:
        yield from arc.writes


def argument(key: str) -> Path:
    """An arg's key as a path: arcs may set parts of one."""
    return tuple(key.split("."))


def own_args(task: Task) -> Iterator[Path]:
    return map(argument, task.args or ())


def _local(step: Step) -> Local:
    writes = tuple(writes_of(step))
    iter_ = Paths(write.path for write in writes if write.scope == "iter")
    if step.loop is not None:
        iter_.add((step.loop.iterator,))
    return Local(
        args=Paths(map(argument, step.args)),
        iter=iter_,
        run=Paths(write.path for write in writes if write.scope == "run"),
        labels=frozenset(task.label for task in step.tasks),
    )


def _labels(playbook: Playbook) -> frozenset[str]:
    return frozenset(task.label for step in playbook.workflow for task in step.tasks)
