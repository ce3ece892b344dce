"""THE table of events: what each one is called, what it is about, who says it, what it means."""

import re
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import cached_property
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from noetl.events.bodies import (
    CancelRequested,
    CtxPatched,
    EventBody,
    EventSource,
    ExecutionForked,
    ExecutionPaused,
    ExecutionResumed,
    ExecutionRetried,
    IterationsRedriven,
    LeaseExpired,
    LoopDone,
    LoopIterationCompleted,
    LoopIterationStarted,
    LoopStarted,
    NextEvaluated,
    PlaybookExecutionRequested,
    PlaybookProcessed,
    PlaybookRequestEvaluated,
    Reported,
    RunResumed,
    RunSuspended,
    SignalDropped,
    SignalReceived,
    StepCompletedByHand,
    StepDone,
    StepFailed,
    StepScheduled,
    StepSkipped,
    TaskProcessed,
    TaskStarted,
    TokenAdmitted,
    TokenClaimed,
    TokenDiscarded,
    TokenEnqueued,
    TokenParked,
    WorkflowFinished,
    WorkflowStarted,
)
from noetl.events.errors import EventNameUnknown, EventUnreadable

EventEntity: TypeAlias = Literal["playbook", "workflow", "step", "task", "loop", "next"]
"""What an event is about: the closed list of 000 §10.1."""

EventStatus: TypeAlias = Literal["in_progress", "success", "error", "paused"]
"""How the entity is after the event: the closed list of 000 §10.1."""


# The statuses that depend on what a body says. Their docstrings stand in the documentation.


def _status_by_error(body: PlaybookRequestEvaluated | NextEvaluated) -> EventStatus:
    """`success`, or `error` if `data.error` is set."""
    return "error" if body.error else "success"


def _status_by_end(body: WorkflowFinished | PlaybookProcessed) -> EventStatus:
    """`success` if completed, else `error`."""
    return "success" if body.status == "completed" else "error"


def _status_by_outcome(body: TaskProcessed) -> EventStatus:
    """`success` if the outcome is ok, else `error`."""
    return "success" if body.outcome.status == "ok" else "error"


def _status_by_iteration(body: LoopIterationCompleted) -> EventStatus:
    """`success` or `error`, as `data.status`."""
    return body.status


def _status_by_discard(body: TokenDiscarded) -> EventStatus:
    """`error`, but `success` if a join absorbed the token."""
    return "success" if body.reason == "absorbed" else "error"


class EventKind(Struct, frozen=True, dict=True):
    """One row. `number` is what is stored: it fits 16 bits, and is never changed or given again."""

    number: int
    body: type[EventBody]
    entity: EventEntity
    status: EventStatus | Callable[[Any], EventStatus]
    meaning: str
    aliases: tuple[str, ...] = ()

    @cached_property
    def name(self) -> str:
        return self.body.__name__

    @cached_property
    def dotted(self) -> str:
        """The name as templates and filters write it: `step.done`."""
        return re.sub(r"\B(?=[A-Z])", ".", self.name).lower()

    @cached_property
    def source(self) -> EventSource:
        """Who says it, unless the body tells otherwise."""
        return "worker" if issubclass(self.body, Reported) else "server"

    def status_of(self, body: EventBody) -> EventStatus:
        return self.status(body) if callable(self.status) else self.status


_Row = EventKind

EVENT_KINDS: tuple[EventKind, ...] = (
    _Row(1, PlaybookExecutionRequested, "playbook", "in_progress", "Somebody asked for an execution."),
    _Row(2, PlaybookRequestEvaluated, "playbook", _status_by_error, "The request is accepted or refused."),
    _Row(3, WorkflowStarted, "workflow", "in_progress", "The workflow begins with its merged workload."),
    _Row(4, WorkflowFinished, "workflow", _status_by_end, "No token is left that could run."),
    _Row(5, PlaybookProcessed, "playbook", _status_by_end, "The execution has ended."),
    _Row(
        6, TokenEnqueued, "next", "in_progress", "A token goes to a step.", ("token.created", "next.enqueued")
    ),
    _Row(7, TokenParked, "next", "paused", "Admission was denied for now; the token waits."),
    _Row(8, TokenAdmitted, "next", "in_progress", "A token entered a step and waits there for others."),
    _Row(9, TokenDiscarded, "next", _status_by_discard, "A token ended without a run of its own."),
    _Row(10, StepScheduled, "step", "in_progress", "A run of a step begins.", ("step.started",)),
    _Row(11, TokenClaimed, "next", "in_progress", "A worker owns the run."),
    _Row(12, LeaseExpired, "step", "error", "The worker that owned the run is gone."),
    _Row(13, TaskStarted, "task", "in_progress", "An attempt of a task begins."),
    _Row(14, TaskProcessed, "task", _status_by_outcome, "An attempt of a task has ended.", ("task.done",)),
    _Row(15, LoopStarted, "loop", "in_progress", "The items of a loop are known."),
    _Row(16, LoopIterationStarted, "loop", "in_progress", "An iteration begins."),
    _Row(17, LoopIterationCompleted, "loop", _status_by_iteration, "An iteration has ended."),
    _Row(18, RunSuspended, "step", "paused", "A run, or an iteration of it, waits and holds no worker."),
    _Row(19, RunResumed, "step", "in_progress", "What a run waited for has come."),
    _Row(20, StepDone, "step", "success", "A run has ended well."),
    _Row(21, StepFailed, "step", "error", "A run has failed."),
    _Row(22, LoopDone, "loop", "success", "All iterations of a run have ended."),
    _Row(23, NextEvaluated, "next", _status_by_error, "The arcs of a run were judged.", ("next.selected",)),
    _Row(24, CtxPatched, "workflow", "success", "Somebody changed `ctx` from outside."),
    _Row(25, SignalReceived, "workflow", "success", "Somebody sent a signal."),
    _Row(26, CancelRequested, "workflow", "error", "Somebody cancelled the execution."),
    _Row(27, ExecutionPaused, "workflow", "paused", "Nothing new is scheduled until it is resumed."),
    _Row(28, ExecutionResumed, "workflow", "in_progress", "A paused execution goes on."),
    _Row(29, ExecutionRetried, "workflow", "in_progress", "A failed execution goes on from its failed runs."),
    _Row(30, ExecutionForked, "workflow", "in_progress", "The history so far is a copy."),
    _Row(31, StepCompletedByHand, "step", "success", "Somebody ended a run as done, with a result."),
    _Row(32, StepSkipped, "step", "success", "Somebody ended a run as done, without a result."),
    _Row(33, IterationsRedriven, "workflow", "in_progress", "Failed iterations of ended loops run again."),
    _Row(34, SignalDropped, "workflow", "error", "A signal that was kept does not fit what waits for it."),
)

_OF_BODY = {kind.body: kind for kind in EVENT_KINDS}
_NUMBERED = {kind.number: kind for kind in EVENT_KINDS}
KIND_NUMBERS: Mapping[type[EventBody], int] = {kind.body: kind.number for kind in EVENT_KINDS}
"""What stands in a store for the kind of a body."""


def kind_of_body(body: EventBody) -> EventKind:
    """The row of a body."""
    return _OF_BODY[type(body)]


def kind_numbered(number: int) -> EventKind:
    """The row of a stored number; `EventUnreadable` if this release has none."""
    try:
        return _NUMBERED[number]
    except KeyError:
        raise EventUnreadable(
            f"event kind {number} is unknown here: a newer release of noetl wrote it"
        ) from None


_NAMED = {name: kind for kind in EVENT_KINDS for name in (kind.name, kind.dotted, *kind.aliases)}


def kind_named(name: str) -> EventKind:
    """The row of a name as people write it: `StepDone`, `step.done`, or an alias from the drafts.

    `EventNameUnknown`, with the nearest name as its hint, if there is none.
    """
    try:
        return _NAMED[name]
    except KeyError:
        raise EventNameUnknown(name, _hint(name)) from None


def _hint(name: str) -> str:
    known = {known.lower(): known for known in _NAMED}
    near = get_close_matches(name.lower(), known, 1)
    return f"did you mean `{known[near[0]]}`?" if near else ""
