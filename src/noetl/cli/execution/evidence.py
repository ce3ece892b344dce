"""What the last attempts got and gave: enough to explain a failure afterwards."""

from collections.abc import Callable, Iterable
from typing import Any

from msgspec import Struct

from noetl.events import bodies as of
from noetl.events.event import Event


class Attempt(Struct):
    """One attempt of a task; `processed` is None while it runs or if it never ended."""

    started: of.TaskStarted
    processed: of.TaskProcessed | None = None


class Evidence:
    """Of each open run the last attempt of each iteration; of each failed run the attempt that failed.

    It may be shown all events of an execution, or only the later ones.
    """

    def __init__(self) -> None:
        self._open: dict[str, dict[int, Attempt]] = {}
        self._failed: dict[str, Attempt] = {}
        self._see: dict[type, Callable[[Any], None]] = {
            of.TaskStarted: self._started,
            of.TaskProcessed: self._processed,
            of.LoopIterationCompleted: self._iterated,
            of.StepDone: self._done,
            of.LoopDone: self._done,
            of.StepFailed: self._step_failed,
            of.ExecutionRetried: self._retried,
        }

    def see(self, events: Iterable[Event]) -> None:
        known = self._see
        for event in events:
            body = event.body
            handler = known.get(type(body))
            if handler is not None:
                handler(body)

    def attempt(self, run: str) -> Attempt | None:
        """The attempt with which this run failed; None if that was not seen, or no task did."""
        return self._failed.get(run)

    def _started(self, body: of.TaskStarted) -> None:
        run = self._open.get(body.run)
        if run is None:
            run = self._open[body.run] = {}
        run[body.iteration] = Attempt(body)

    def _processed(self, body: of.TaskProcessed) -> None:
        attempt = self._open.get(body.run, {}).get(body.iteration)
        if attempt is not None:
            attempt.processed = body

    def _iterated(self, body: of.LoopIterationCompleted) -> None:
        attempt = self._open.get(body.run, {}).pop(body.index, None)
        if body.status == "error" and attempt is not None:
            self._failed.setdefault(body.run, attempt)

    def _done(self, body: of.StepDone | of.LoopDone) -> None:
        self._open.pop(body.run, None)
        self._failed.pop(body.run, None)

    def _step_failed(self, body: of.StepFailed) -> None:
        attempts = self._open.pop(body.run, {})
        attempt = attempts.get(0)
        if attempt is not None and attempt.started.task == body.task:
            self._failed.setdefault(body.run, attempt)

    def _retried(self, body: of.ExecutionRetried) -> None:
        for run in body.runs:
            self._failed.pop(run, None)
