"""What a server writes beside its events: timers, and messages to other executions."""

from collections.abc import Iterable, Mapping
from typing import Any, Literal

import msgspec
from msgspec import Struct

from noetl.events.bodies import CancelRequested, ParentTask, PlaybookProcessed, RunSuspended
from noetl.events.event import Event
from noetl.events.identifiers import task_run_id
from noetl.kernel.net.commands import Cancel, ChildEnded, Command, Request, TimerFired
from noetl.kernel.state.execution_state import ExecutionState
from noetl.model.outcome import ErrorInfo


class ExecutionMessage(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one execution wants of another: that it starts, that it ends, or to know that it ended."""

    to: str
    do: Literal["start", "cancel", "ended"]
    path: str = ""
    parent: ParentTask | None = None
    run: str = ""
    iteration: int = 0
    child: str = ""
    status: Literal["completed", "failed", "cancelled"] = "completed"
    result: Any = None
    error: ErrorInfo | None = None

    @property
    def command(self) -> Command:
        match self.do:
            case "start":
                return Request(parent=self.parent)
            case "cancel":
                return Cancel(by="parent")
            case "ended":
                return ChildEnded(self.run, self.iteration, self.child, self.status, self.result, self.error)


def state_timers(state: ExecutionState) -> dict[str, int]:
    """Everything in this state that time alone will change: key and moment."""
    if state.over:
        return {}
    timers = {name: token.deadline for name, token in state.tokens.items() if token.deadline is not None}
    for run in state.runs.values():
        if run.deadline is not None and run.phase != "ended":
            timers[run.id] = run.deadline
        if run.suspended and run.phase != "ended":
            for frame in run.frames.values():
                if frame.suspension is not None and frame.suspension.until is not None:
                    timers[f"{run.id}/{frame.index}"] = frame.suspension.until
    if state.deadline is not None:
        timers["execution"] = state.deadline
    return timers


def timer_command(key: str) -> TimerFired:
    if key == "execution":
        return TimerFired()
    target, _, iteration = key.partition("/")
    return TimerFired(target, int(iteration or 0))


def timer_changes(before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, int | None]:
    """What to set and to clear so that the one becomes the other."""
    changes: dict[str, int | None] = {key: None for key in before if key not in after}
    changes.update((key, moment) for key, moment in after.items() if before.get(key) != moment)
    return changes


def outbox_messages(
    state: ExecutionState, events: Iterable[Event], parent: ParentTask | None, waiting: Iterable[str]
) -> dict[str, bytes | None]:
    """The messages of these events; `waiting` are the children that were waited for before them."""
    messages: dict[str, bytes | None] = {}
    for event in events:
        match event.body:
            case RunSuspended(reason="child") as body if body.child in awaited_children(state):
                messages[f"start {body.child}"] = msgspec.json.encode(_start_message(state, body))
            case CancelRequested():
                for child in waiting:
                    messages[f"cancel {child}"] = msgspec.json.encode(ExecutionMessage(to=child, do="cancel"))
            case PlaybookProcessed() as body if parent is not None:
                messages["ended"] = msgspec.json.encode(_end_message(state, body, parent))
            case _:
                pass
    return messages


def awaited_children(state: ExecutionState) -> list[str]:
    """The executions that tasks of this one wait for."""
    return [
        frame.suspension.child
        for run in state.runs.values()
        if run.suspended
        for frame in run.frames.values()
        if frame.suspension is not None and frame.suspension.child
    ]


def _start_message(state: ExecutionState, body: RunSuspended) -> ExecutionMessage:
    run = state.runs[body.run]
    frame = run.frames[body.iteration]
    label = run.task(frame).label
    task_run = task_run_id(body.run, body.iteration, label, frame.visits[label], frame.attempt)
    path = (frame.input or {})["path"]
    parent = ParentTask(execution_id=state.execution_id, task_run_id=task_run)
    return ExecutionMessage(to=body.child, do="start", path=path, parent=parent)


def _end_message(state: ExecutionState, body: PlaybookProcessed, parent: ParentTask) -> ExecutionMessage:
    run, iteration, *_ = parent.task_run_id.split("/")
    return ExecutionMessage(
        to=parent.execution_id,
        do="ended",
        run=run,
        iteration=int(iteration),
        child=state.execution_id,
        status=body.status,
        result=body.result,
        error=body.error,
    )
