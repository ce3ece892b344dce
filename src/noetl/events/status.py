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

Status: TypeAlias = Literal["in_progress", "success", "error", "paused"]
"""How the entity is after the event: the closed list of 000 §10.1."""


def unless_error(body: PlaybookRequestEvaluated | NextEvaluated) -> Status:
    """`success`, or `error` if `data.error` is set."""
    return "error" if body.error else "success"


def by_end(body: WorkflowFinished | PlaybookProcessed) -> Status:
    """`success` if completed, else `error`."""
    return "success" if body.status == "completed" else "error"


def by_outcome(body: TaskProcessed) -> Status:
    """`success` if the outcome is ok, else `error`."""
    return "success" if body.outcome.status == "ok" else "error"


def by_iteration(body: LoopIterationCompleted) -> Status:
    """`success` or `error`, as `data.status`."""
    return body.status


def by_loss(body: TokenDiscarded) -> Status:
    """`error`, but `success` if a join absorbed the token."""
    return "success" if body.reason == "absorbed" else "error"
