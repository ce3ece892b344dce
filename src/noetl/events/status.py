"""The statuses that depend on what a body says. The docstrings stand in the documentation."""

from typing import Literal, TypeAlias

from noetl.events.bodies import (
    LoopIterationCompleted,
    NextEvaluated,
    PlaybookProcessed,
    PlaybookRequestEvaluated,
    TaskProcessed,
    TokenDiscarded,
    WorkflowFinished,
)

EventStatus: TypeAlias = Literal["in_progress", "success", "error", "paused"]
"""How the entity is after the event: the closed list of 000 §10.1."""


def status_by_error(body: PlaybookRequestEvaluated | NextEvaluated) -> EventStatus:
    """`success`, or `error` if `data.error` is set."""
    return "error" if body.error else "success"


def status_by_end(body: WorkflowFinished | PlaybookProcessed) -> EventStatus:
    """`success` if completed, else `error`."""
    return "success" if body.status == "completed" else "error"


def status_by_outcome(body: TaskProcessed) -> EventStatus:
    """`success` if the outcome is ok, else `error`."""
    return "success" if body.outcome.status == "ok" else "error"


def status_by_iteration(body: LoopIterationCompleted) -> EventStatus:
    """`success` or `error`, as `data.status`."""
    return body.status


def status_by_discard(body: TokenDiscarded) -> EventStatus:
    """`error`, but `success` if a join absorbed the token."""
    return "success" if body.reason == "absorbed" else "error"
