"""What the last attempts got and gave: enough to explain a failure afterwards."""

from collections.abc import Iterable
from typing import NamedTuple

from noetl.events import bodies as of
from noetl.events.event import Event
from noetl.kernel.state.execution_state import ExecutionState
from noetl.model.outcome import ErrorInfo


class FailedAttempt(NamedTuple):
    """One attempt of a task that failed; `processed` is None if it never ended."""

    started: of.TaskStarted
    processed: of.TaskProcessed | None


class _RunAttempts:
    """Of each open run and iteration the last attempt, of each failed run the one that failed."""

    __slots__ = ("errors", "failed", "started")

    def __init__(self) -> None:
        self.started: dict[str, dict[int, of.TaskStarted]] = {}
        self.errors: dict[str, dict[int, of.TaskProcessed]] = {}
        self.failed: dict[str, FailedAttempt] = {}


class FailedAttempts:
    """Keeps what a report of failures needs, and little else, of however many events it is shown.

    It may be shown all events of an execution, or only the later ones.
    """

    def __init__(self) -> None:
        self._executions: dict[str, _RunAttempts] = {}

    def observe(self, execution_id: str, events: Iterable[Event]) -> None:
        seen = self._executions.get(execution_id)
        if seen is None:
            seen = self._executions[execution_id] = _RunAttempts()
        started = seen.started
        for event in events:
            body = event.body
            # The three that come for every iteration first: there may be a hundred thousand of them.
            if isinstance(body, of.TaskStarted):
                attempts = started.get(body.run)
                if attempts is None:
                    attempts = started[body.run] = {}
                attempts[body.iteration] = body
            elif isinstance(body, of.TaskProcessed):
                # A rule may make a failure of an outcome that is none.
                if body.outcome.error is not None or body.error is not None:
                    seen.errors.setdefault(body.run, {})[body.iteration] = body
            elif isinstance(body, of.LoopIterationCompleted):
                _end_iteration(seen, body)
            else:
                _observe_end(seen, body)

    def attempt_with(self, state: ExecutionState, error: ErrorInfo) -> FailedAttempt | None:
        """The attempt that left this error as an unhandled failure; None as for `attempt_of`."""
        run = next((failure.run for failure in state.failures if failure.error == error), "")
        return self.attempt_of(state.execution_id, run)

    def attempt_of(self, execution_id: str, run: str) -> FailedAttempt | None:
        """The attempt with which this run failed; None if that was not seen, or no task did."""
        seen = self._executions.get(execution_id)
        return seen.failed.get(run) if seen is not None else None


def _end_iteration(seen: _RunAttempts, body: of.LoopIterationCompleted) -> None:
    started = seen.started.get(body.run, {}).pop(body.index, None)
    error = seen.errors[body.run].pop(body.index, None) if body.run in seen.errors else None
    if body.status == "error" and started is not None:
        # Of several iterations that failed, the first to end is told.
        seen.failed.setdefault(body.run, _failed_attempt(started, error))


def _observe_end(seen: _RunAttempts, body: of.EventBody) -> None:
    match body:
        case of.StepDone() | of.LoopDone() | of.StepCompletedByHand() | of.StepSkipped():
            for by_run in (seen.started, seen.errors, seen.failed):
                by_run.pop(body.run, None)
        case of.StepFailed():
            started = seen.started.pop(body.run, {}).get(0)
            error = seen.errors.pop(body.run, {}).get(0)
            if started is not None and started.task == body.task:
                seen.failed.setdefault(body.run, _failed_attempt(started, error))
        case of.ExecutionRetried() | of.IterationsRedriven():
            for run in body.runs:
                seen.failed.pop(run, None)
        case _:
            pass


def _failed_attempt(started: of.TaskStarted, error: of.TaskProcessed | None) -> FailedAttempt:
    """The attempt with its own outcome: an error that is kept may be that of a try before."""
    same_attempt = error is not None and (error.task, error.visit, error.attempt) == (
        started.task,
        started.visit,
        started.attempt,
    )
    return FailedAttempt(started, error if same_attempt else None)
