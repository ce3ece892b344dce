"""What a fork, a retry or a redrive would do, before anybody does it: what is kept, and what runs again."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence

from noetl.dsl.document.kinds import Kinds
from noetl.dsl.document.playbook import Task
from noetl.engine.history.fork import CannotFork, state_to_fork
from noetl.engine.history.read import RecordedHistory
from noetl.events.bodies import ExecutionRetried, IterationsRedriven, StepScheduled, TaskStarted
from noetl.events.event import Event
from noetl.events.identifiers import run_id
from noetl.expr.template import Constant
from noetl.kernel.net.commands import Redrive, Retry
from noetl.kernel.net.operations import decide_redrive, decide_retry
from noetl.kernel.plan import Plan
from noetl.kernel.state.execution_state import ExecutionState
from noetl.kernel.state.run_fold import all_frames, kept_frames
from noetl.kernel.state.run_state import Frame, RunState
from noetl.ports.execution_views import (
    ForkPreview,
    KeptStep,
    OpenRun,
    ReopenPreview,
    RepeatedTask,
    TaskEffect,
)

_TaskCounts = Counter[tuple[str, str]]
"""How often a task of a step begins again."""


def preview_fork(
    history: RecordedHistory, at: int, kinds: Kinds, plan: Plan | None = None, document_name: str = ""
) -> ForkPreview:
    """What a fork at event `at` keeps and repeats, perhaps with another playbook. Raises CannotFork."""
    execution_id = history.record.execution_id
    if not 1 <= at <= len(history.events):
        last = len(history.events)
        raise CannotFork(f"{execution_id} has no event {at}", f"its last one is {last}")
    cut = history.cuts[bisect_left(history.cuts, at)]
    state = state_to_fork(plan or history.plan, execution_id, history.events[:cut], document_name)
    open_runs = [run for run in state.runs.values() if run.phase != "ended"]
    begun = _begun_tasks(history.events, cut)
    for run in open_runs:
        begun.update((run.step.name, run.task(frame).label) for frame in all_frames(run) if frame.running)
    return ForkPreview(
        execution_id=execution_id,
        at=at,
        cut=cut,
        events=len(history.events),
        kept=_kept_steps(state, open_runs),
        open=[_open_run(run, list(run.frames.values())) for run in open_runs],
        tokens=dict(Counter(state.step_of(token).name for token in state.tokens.values())),
        repeats=_repeated_tasks(state.plan, begun, kinds),
    )


def preview_reopening(
    history: RecordedHistory, state: ExecutionState, command: Retry | Redrive, kinds: Kinds
) -> ReopenPreview:
    """What the command would open again in the state as it is. Raises Refused."""
    redriven = isinstance(command, Redrive)
    if isinstance(command, Redrive):
        [decided] = decide_redrive(state, command, state.last_ts)
    else:
        decided = decide_retry(state, command, state.last_ts)[0]
    assert isinstance(decided, ExecutionRetried | IterationsRedriven)  # noqa: S101 - what they decide first
    runs = [(state.redrivable if redriven else state.failed_runs)[name] for name in decided.runs]
    frames = [kept_frames(run) if redriven else _failed_frames(run) for run in runs]
    begun: _TaskCounts = Counter(
        (run.step.name, run.task(frame).label)
        for run, run_frames in zip(runs, frames, strict=True)
        for frame in run_frames
        if frame.at < len(run.step.step.tasks)
    )
    if redriven:
        # What is behind the loops is come to once more.
        begun.update(_tasks_of_steps(history.events, set(decided.steps)))
    superseded: Sequence[str] = ()
    if isinstance(decided, ExecutionRetried):
        superseded = decided.superseded or list(state.ran_after_failure)
    return ReopenPreview(
        execution_id=state.execution_id,
        runs=[_open_run(run, run_frames) for run, run_frames in zip(runs, frames, strict=True)],
        steps=list(decided.steps),
        superseded=list(superseded),
        iterations=sum(
            len(run_frames) for run, run_frames in zip(runs, frames, strict=True) if run.loop is not None
        ),
        repeats=_repeated_tasks(state.plan, begun, kinds),
    )


def _failed_frames(run: RunState) -> list[Frame]:
    """Those that go on; none where the run itself ended well and only its arcs are judged again."""
    return all_frames(run) if run.error is not None else []


def _kept_steps(state: ExecutionState, open_runs: Iterable[RunState]) -> list[KeptStep]:
    under_way = Counter(run.step.name for run in open_runs)
    return [
        KeptStep(step=plan.name, runs=ended)
        for plan in state.plan.by_number
        if (summary := state.summaries.get(plan.name)) is not None
        and (ended := summary.runs - under_way[plan.name]) > 0
    ]


def _open_run(run: RunState, frames: Sequence[Frame]) -> OpenRun:
    tasks = run.step.step.tasks
    labels = [tasks[frame.at].label for frame in frames if frame.at < len(tasks)]
    return OpenRun(
        run=run.id,
        step=run.step.name,
        task=labels[0] if labels else None,
        iterations=len(frames) if run.loop is not None else 0,
    )


def _begun_tasks(events: Sequence[Event], after: int) -> _TaskCounts:
    """The attempts that began after an event."""
    steps = _steps_of_runs(events)
    return Counter(
        (steps[event.body.run], event.body.task)
        for event in events[after:]
        if isinstance(event.body, TaskStarted)
    )


def _tasks_of_steps(events: Sequence[Event], names: set[str]) -> _TaskCounts:
    begun = _begun_tasks(events, 0)
    return Counter({key: count for key, count in begun.items() if key[0] in names})


def _steps_of_runs(events: Iterable[Event]) -> dict[str, str]:
    return {run_id(event.seq): event.body.step for event in events if isinstance(event.body, StepScheduled)}


def _repeated_tasks(plan: Plan, begun: _TaskCounts, kinds: Kinds) -> list[RepeatedTask]:
    """In the order of the playbook, those first that change something."""
    repeated = [
        RepeatedTask(
            step=step_plan.name,
            task=task.label,
            kind=task.kind,
            line=task.position.line,
            effect=task_effect(task, kinds),
            begun=count,
        )
        for step_plan in plan.by_number
        for task in step_plan.step.tasks
        if (count := begun[step_plan.name, task.label])
    ]
    return sorted(repeated, key=lambda task: task.effect == "none")


def task_effect(task: Task, kinds: Kinds) -> TaskEffect:
    """Whether a task changes something outside of its execution."""
    kind = kinds.get(task.kind)
    if kind is None:
        return "unknown"
    # To wait changes nothing, though the kernel does not take it for a pure task.
    if kind.effect == "pure" or task.kind == "wait":
        return "none"
    inputs = {name: data.value for name, data in task.inputs.items() if isinstance(data, Constant)}
    is_constant = len(inputs) == len(task.inputs)
    return "none" if is_constant and kind.repeatable is not None and kind.repeatable(inputs) else "write"
