"""An expression that somebody asks, evaluated on the state as it was after an event."""

from collections.abc import Iterable, Mapping
from typing import Any

from noetl.events.bodies import (
    LoopDone,
    StepCompletedByHand,
    StepDone,
    StepFailed,
    StepScheduled,
    StepSkipped,
)
from noetl.events.event import Event
from noetl.events.identifiers import run_id
from noetl.expr.expression import Expression, parse
from noetl.expr.runtime.marker import ReferenceUnresolved
from noetl.kernel.expression_reads import PathRead, paths_read
from noetl.kernel.net.routing import run_end_scope
from noetl.kernel.plan import Plan
from noetl.kernel.references.resolve import Fetched
from noetl.kernel.scopes import EvaluationScope, console_scope, loop_scope, state_scope, task_scope
from noetl.kernel.state.execution_state import new_state
from noetl.kernel.state.fold import evolve
from noetl.kernel.state.marking import step_outcome
from noetl.kernel.state.run_state import Frame, RunState
from noetl.model.errors import ExpressionError
from noetl.model.json import Json


def parse_question(text: str) -> Expression:
    """The expression that a person typed, with or without its braces. Raises ExpressionError."""
    expression = parse(text if "{{" in text or "{%" in text else f"{{{{ {text} }}}}")
    if any(use.path[0] == "keychain" for use in expression.uses):
        message = "`keychain` cannot be read here: secrets are for tasks alone"
        raise ExpressionError(message, hint="ask for what a task was given")
    return expression


class ExpressionConsole:
    """What can be read after these events: the state's names, or those of the last run of a step.

    `iteration` is one of an open loop; without it, that which began first. Beyond what a playbook reads,
    `steps` has the outcomes of all steps.
    """

    def __init__(
        self,
        plan: Plan,
        execution_id: str,
        events: Iterable[Event],
        *,
        step: str = "",
        iteration: int | None = None,
    ) -> None:
        """Raises WrongSequence."""
        self.state = new_state(plan, execution_id)
        self.run: RunState | None = None
        self._iteration = iteration
        self.outcomes: dict[str, Any] = {}
        """Of all steps, how the run of each ended that was the last to."""
        for event in events:
            self._fold(event, step)

    def _fold(self, event: Event, step: str) -> None:
        body, state = event.body, self.state
        ending = None
        if isinstance(body, StepDone | StepFailed | LoopDone | StepCompletedByHand | StepSkipped):
            ending = state.runs[body.run]  # what is routed at once is forgotten by the fold
        evolve(state, event)
        if ending is not None:
            outcome = step_outcome(ending.result, ending.error)
            status = "skipped" if ending.skipped else outcome["status"]
            self.outcomes[ending.step.name] = {**outcome, "status": status}
        elif isinstance(body, StepScheduled) and body.step == step:
            self.run = state.runs[run_id(event.seq)]

    def evaluate(self, expression: Expression, fetched: Fetched) -> tuple[Json, tuple[PathRead, ...]]:
        """The value and what it read. Raises ExpressionError, and Unfetched for stored values it needs."""
        scope = self._scope(fetched)
        try:
            value = expression.evaluate(scope.expression_scope)
            return value, paths_read(expression, scope.expression_scope)
        except ReferenceUnresolved as error:
            raise scope.unfetched(error) from None

    @property
    def names(self) -> list[str]:
        """The namespaces that can be read."""
        return sorted(self._scope({}).namespaces)

    def _scope(self, fetched: Fetched) -> EvaluationScope:
        state, run = self.state, self.run
        now = state.last_ts
        if self._iteration is not None and (run is None or run.phase == "ended"):
            raise self._not_open()
        if run is None:
            scope = state_scope(state.inputs, state.ctx.values, self.outcomes, now)
            return console_scope(scope.namespaces, now, fetched)
        if run.phase == "ended":
            return self._console_scope(run_end_scope(state, run, now).namespaces, fetched)
        frame = self._frame(run)
        if frame is None:
            return self._console_scope(loop_scope(run, now).namespaces, fetched)
        loop = run.step.step.loop
        return self._console_scope(
            task_scope(run, frame, now, None, fetched).namespaces,
            fetched,
            frame.results,
            loop.iterator if loop is not None and run.loop is not None else "",
        )

    def _console_scope(
        self,
        namespaces: Mapping[str, Any],
        fetched: Fetched,
        results: Mapping[str, object] | None = None,
        iterator: str = "",
    ) -> EvaluationScope:
        spaces = {**namespaces, "steps": {**self.outcomes, **namespaces["steps"]}}
        return console_scope(spaces, self.state.last_ts, fetched, results, iterator)

    def _frame(self, run: RunState) -> Frame | None:
        """The open iteration that is asked about. Raises ExpressionError if it is not open."""
        frames = [frame for frame in run.frames.values() if frame.at < len(run.step.step.tasks)]
        if self._iteration is None:
            return frames[0] if frames else None
        for frame in frames:
            if frame.index == self._iteration:
                return frame
        raise self._not_open()

    def _not_open(self) -> ExpressionError:
        return ExpressionError(f"iteration {self._iteration} is not open after event {self.state.version}")
