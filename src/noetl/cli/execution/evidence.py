"""What the last attempts got and gave: enough to explain a failure afterwards."""

from collections.abc import Iterable

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
        self._open: dict[tuple[str, str], dict[int, Attempt]] = {}
        self._failed: dict[tuple[str, str], Attempt] = {}

    def see(self, execution_id: str, events: Iterable[Event]) -> None:
        for event in events:
            body = event.body
            # The three that come for every iteration first: there may be a hundred thousand of them.
            if isinstance(body, of.TaskStarted):
                self._started((execution_id, body.run), body)
            elif isinstance(body, of.TaskProcessed):
                self._processed((execution_id, body.run), body)
            elif isinstance(body, of.LoopIterationCompleted):
                self._iterated((execution_id, body.run), body)
            else:
                self._see_other(execution_id, body)

    def attempt(self, execution_id: str, run: str) -> Attempt | None:
        """The attempt with which this run failed; None if that was not seen, or no task did."""
        return self._failed.get((execution_id, run))

    def _see_other(self, execution_id: str, body: of.EventBody) -> None:
        match body:
            case of.StepDone() | of.LoopDone():
                self._open.pop((execution_id, body.run), None)
                self._failed.pop((execution_id, body.run), None)
            case of.StepFailed():
                self._step_failed((execution_id, body.run), body)
            case of.ExecutionRetried():
                for run in body.runs:
                    self._failed.pop((execution_id, run), None)
            case _:
                pass

    def _started(self, run: tuple[str, str], body: of.TaskStarted) -> None:
        attempts = self._open.get(run)
        if attempts is None:
            attempts = self._open[run] = {}
        attempts[body.iteration] = Attempt(body)

    def _processed(self, run: tuple[str, str], body: of.TaskProcessed) -> None:
        attempt = self._open.get(run, {}).get(body.iteration)
        if attempt is not None:
            attempt.processed = body

    def _iterated(self, run: tuple[str, str], body: of.LoopIterationCompleted) -> None:
        attempt = self._open.get(run, {}).pop(body.index, None)
        if body.status == "error" and attempt is not None:
            self._failed.setdefault(run, attempt)

    def _step_failed(self, run: tuple[str, str], body: of.StepFailed) -> None:
        attempt = self._open.pop(run, {}).get(0)
        if attempt is not None and attempt.started.task == body.task:
            self._failed.setdefault(run, attempt)
