"""A repaired document for an execution that failed: whether all that happened fits it (semantics §10)."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from msgspec import Struct

from noetl.dsl.document.playbook import Position, Step
from noetl.engine.catalog.playbooks import PlaybookDocument
from noetl.engine.history.lookup import HistoryUnreadable
from noetl.engine.history.read import fold_history
from noetl.kernel.errors import Refused
from noetl.kernel.net.commands import Retry
from noetl.kernel.net.operations import decide_retry
from noetl.kernel.state.execution_state import ExecutionState
from noetl.kernel.state.run_fold import all_frames, kept_frames
from noetl.kernel.state.run_state import RunState
from noetl.ports.store import Store

ReopenedRuns: TypeAlias = Callable[[ExecutionState], list[RunState]]
"""The runs that go on with a repaired document. Raises Refused if there are none."""


class CannotRepair(Refused):
    """The execution cannot go on with this document."""

    hint = "`noetl executions fork --at SEQ --playbook FILE` runs again from an earlier event"


def retried_runs(state: ExecutionState) -> list[RunState]:
    """What a retry opens again. Raises Refused."""
    if not state.over:
        raise Refused("only an execution that has ended goes on with another playbook")
    decide_retry(state, Retry(), state.last_ts)
    return list(state.failed_runs.values())


async def fold_with_repair(
    store: Store, state: ExecutionState, repaired: PlaybookDocument, reopened: ReopenedRuns
) -> ExecutionState:
    """What has become of an execution, folded with the repaired document.

    Raises CannotRepair; Refused if nothing of it can be opened again.
    """
    runs = reopened(state)
    name = repaired.source.name
    path, its_path = state.plan.playbook.metadata.path, repaired.playbook.metadata.path
    if path != its_path:
        raise CannotRepair(f"{name} is the playbook `{its_path}`, and the execution runs `{path}`")
    if changes := list(_changes(state, repaired.playbook.steps, runs)):
        raise CannotRepair(f"the execution cannot go on with {name}: {'; '.join(changes)}")
    try:
        return await fold_history(store, repaired.plan, state.execution_id)
    except HistoryUnreadable as fault:
        raise CannotRepair(f"the execution cannot go on with {name}: {fault}") from fault


def _changes(state: ExecutionState, repaired: Mapping[str, Step], reopened: list[RunState]) -> Iterator[str]:
    """What may not have changed but has: of ended steps anything, of failed ones what came before."""
    failed: dict[str, list[RunState]] = {}
    for run in reopened:
        failed.setdefault(run.step.name, []).append(run)
    for name, summary in state.summaries.items():
        if not summary.runs:
            continue
        step, new = state.plan.by_name[name].step, repaired.get(name)
        if new is None:
            yield f"step `{name}`, which has run, is not in it"
        elif name not in failed:
            if not _is_same(step, new):
                yield f"step `{name}`, which has ended, is changed"
        else:
            yield from _changes_in_failed(step, new, failed[name])


def _changes_in_failed(step: Step, new: Step, runs: list[RunState]) -> Iterator[str]:
    if not _is_same(step.join, new.join):
        yield f"the join of step `{step.name}`, which has run, is changed"
    if any(run.loop is not None for run in runs) and not _is_same(step.loop, new.loop):
        yield f"the loop of step `{step.name}`, which has begun, is changed"
    if step.arcs and not new.arcs:
        yield f"step `{step.name}`, whose arcs were followed when it failed, has none in it"
    ended, failed = _ended_tasks(step, runs)
    for position, task in enumerate(step.tasks[: max(*ended, *failed, -1, -1) + 1]):
        its = new.tasks[position] if position < len(new.tasks) else None
        if its is None or its.label != task.label:
            yield f"task `{task.label}` of step `{step.name}`, which has run, is not at its place in it"
        elif position in ended and not _is_same(task, its):
            yield f"task `{task.label}` of step `{step.name}`, which ended before the failure, is changed"


def _ended_tasks(step: Step, runs: list[RunState]) -> tuple[set[int], set[int]]:
    """The positions of the tasks that ended before the failure, and of those that failed."""
    ended: set[int] = set()
    failed: set[int] = set()
    for run in runs:
        redriven = run.error is None and not run.unhandled and kept_frames(run)
        if run.error is None and not redriven:  # its arcs failed: all of its tasks had ended
            ended |= set(range(len(step.tasks)))
        for frame in redriven or all_frames(run):
            labels = set(frame.visits)
            ended |= set(range(frame.at))
            ended |= {at for at, task in enumerate(step.tasks) if task.label in labels and at != frame.at}
            failed.add(frame.at)
    return ended, failed


def _is_same(first: Any, second: Any) -> bool:
    """Whether both mean the same, wherever they stand and whatever is said about them."""
    match first:
        case Position():
            return True
        case Struct():
            names = [name for name in first.__struct_fields__ if name != "desc"]
            return type(first) is type(second) and all(
                _is_same(getattr(first, name), getattr(second, name)) for name in names
            )
        case Mapping():
            return (
                isinstance(second, Mapping)
                and first.keys() == second.keys()
                and all(_is_same(value, second[name]) for name, value in first.items())
            )
        case tuple() | list():
            return (
                type(first) is type(second)
                and len(first) == len(second)
                and all(map(_is_same, first, second))
            )
        case _:
            return type(first) is type(second) and bool(first == second)
