"""Says why an execution is where it is: one walk through its history, then what it waits for as it stands."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from noetl.dsl.document.playbook import Position, Step
from noetl.events.bodies import (
    CancelRequested,
    ExecutionRetried,
    IterationsRedriven,
    LeaseExpired,
    NextEvaluated,
    StepScheduled,
    TaskProcessed,
    TaskStarted,
    TokenAdmitted,
    TokenClaimed,
    TokenDiscarded,
    TokenEnqueued,
    TokenParked,
)
from noetl.events.event import Event
from noetl.kernel.event_position import task_labelled
from noetl.kernel.explain.explanation_parts import (
    AdmissionCheck,
    AdmissionVerdict,
    Cancellation,
    DiscardedToken,
    Explanation,
    FirstFailure,
    ParkedToken,
    ReachingStep,
    RunExplanation,
    TokenArrival,
    WaitingJoin,
)
from noetl.kernel.explain.run_notes import RunNotes, admission_conditions, explain_routing, was_admitted
from noetl.kernel.expression_reads import truncate_value
from noetl.kernel.plan import Plan
from noetl.kernel.state.execution_state import ExecutionState, JoinState, Occupancy, new_state
from noetl.kernel.state.fold import evolve
from noetl.model.outcome import ErrorInfo

__all__ = ["Explanation", "explain"]


def explain(plan: Plan, execution_id: str, events: Iterable[Event]) -> Explanation:
    """Why each step ran or did not, and what is waited for now. Raises WrongSequence.

    One fold of the history; every condition is asked once more, to see what it read.
    """
    explainer = _Explainer(new_state(plan, execution_id))
    for event in events:
        explainer.before(event)  # the fold forgets tokens and routed runs
        evolve(explainer.state, event)
        explainer.after(event)
    return explainer.explanation()


class _Explainer:
    """What is kept on the way. Tokens are forgotten when their run begins; `over` has the order of runs."""

    def __init__(self, state: ExecutionState) -> None:
        self.state = state
        self.now = 0
        self.arrivals: dict[str, TokenArrival] = {}
        self.gates: dict[str, AdmissionCheck] = {}
        self.runs: dict[str, RunNotes] = {}
        self.over: dict[str, RunExplanation | None] = {}
        self.discarded: list[DiscardedToken] = []
        self.cancelled: Cancellation | None = None
        self.brought: tuple[tuple[TokenArrival, ...], tuple[AdmissionCheck, ...]] = ((), ())

    def before(self, event: Event) -> None:
        """What only the state before an event tells."""
        self.now = event.ts
        match event.body:
            case TokenEnqueued() as body:
                self._note_arrival(event, body)
            case TokenParked() as body:
                self._note_admission(event, body.token, "waiting" if body.mode == "wait" else "parked")
            case TokenAdmitted() as body:
                self._note_admission(event, body.token, "admitted")
            case TokenDiscarded() as body:
                self._note_discard(event, body)
            case StepScheduled() as body:
                self._note_schedule(event, body)
            case NextEvaluated() as body if body.run in self.runs:
                run = self.state.runs[body.run]
                self.runs[body.run].routing = explain_routing(self.state, run, body, event.seq, event.ts)

    def after(self, event: Event) -> None:
        """What happened to a run."""
        match event.body:
            case StepScheduled() as body:
                run = self.state.runs[f"r{event.seq}"]
                self.runs[run.id] = RunNotes(event, body, run, *self.brought)
                self.over[run.id] = None
            case TokenClaimed(run=name):
                self.runs[name].claims += 1
            case LeaseExpired(run=name, reason="expired"):
                self.runs[name].lost += 1
            case TaskStarted() as body:
                self.runs[body.run].task_started(body)
            case TaskProcessed() as body:
                self.runs[body.run].task_processed(event, body)
            case CancelRequested(error=None) as body:
                self.cancelled = Cancellation(seq=event.seq, by=body.by, reason=body.reason)
            case ExecutionRetried(runs=names) | IterationsRedriven(runs=names):
                for name in names:
                    self.runs[name].failing.clear()
                    self.runs[name].routing = None
        self._explain_ended_run(getattr(event.body, "run", ""))

    def _explain_ended_run(self, name: str) -> None:
        """A run that has left the net is explained at once, so that its values need not be kept."""
        keeping = (self.state.runs, self.state.failed_runs, self.state.redrivable)
        if name in self.runs and not any(name in runs for runs in keeping):
            self.over[name] = self.runs.pop(name).explanation(self.now)

    def _note_arrival(self, event: Event, body: TokenEnqueued) -> None:
        run = self.state.runs.get(body.run)
        arrival: dict[str, Any] = {}
        if run is not None:
            arcs = run.step.step.arcs
            line = arcs[body.arc].position.line if 0 <= body.arc < len(arcs) else None
            arrival = {"step": run.step.name, "run": run.id, "arc": body.arc, "line": line}
        token = f"t{event.seq}"
        self.arrivals[token] = TokenArrival(
            token=token, seq=event.seq, args=truncate_value(body.args), **arrival
        )

    def _note_admission(self, event: Event, name: str, verdict: AdmissionVerdict) -> None:
        """Admission was asked about a token."""
        token = self.state.tokens.get(name)
        if token is None or self.state.step_of(token).step.admit is None:
            return
        rules = admission_conditions(self.state, token, event.ts)
        if verdict == "admitted" and not was_admitted(self.state.step_of(token).step, rules):
            verdict = "failed"
        earlier = self.gates.get(name)
        times_asked = earlier.asked + 1 if earlier is not None else 1
        self.gates[name] = AdmissionCheck(
            token=name, seq=event.seq, verdict=verdict, asked=times_asked, rules=rules
        )

    def _note_schedule(self, event: Event, body: StepScheduled) -> None:
        if self.state.plan.by_name[body.step].step.join is None:
            for name in body.tokens:
                self._note_admission(event, name, "admitted")
        self.brought = (
            tuple(self.arrivals.pop(name) for name in body.tokens),
            tuple(self.gates.pop(name) for name in body.tokens if name in self.gates),
        )

    def _note_discard(self, event: Event, body: TokenDiscarded) -> None:
        if body.reason == "denied":
            self._note_admission(event, body.token, "denied")
        gate = self.gates.pop(body.token, None)
        arrival = self.arrivals.pop(body.token)
        if body.reason == "absorbed":
            return
        step = self.state.step_of(self.state.tokens[body.token]).step
        self.discarded.append(
            DiscardedToken(
                arrival=arrival,
                step=step.name,
                line=step.position.line,
                seq=event.seq,
                reason=body.reason,
                rules=gate.rules if gate is not None else (),
            )
        )

    def explanation(self) -> Explanation:
        state = self.state
        return Explanation(
            execution_id=state.execution_id,
            status=state.status,
            version=state.version,
            error=_failure_value(state.error) if state.error is not None else None,
            runs=tuple(story or self.runs[name].explanation(self.now) for name, story in self.over.items()),
            parked=tuple(_parked_tokens(state, self.arrivals, self.gates, self.now)),
            joins=tuple(_waiting_joins(state, self.arrivals)),
            discarded=tuple(self.discarded),
            failure=_first_unhandled_failure(state, self.runs),
            cancelled=self.cancelled,
        )


def _parked_tokens(
    state: ExecutionState, arrivals: Mapping[str, TokenArrival], gates: Mapping[str, AdmissionCheck], now: int
) -> Iterator[ParkedToken]:
    """The tokens that are kept before their steps, longest first."""
    for name in state.parked:
        token = state.tokens[name]
        step = state.step_of(token).step
        yield ParkedToken(
            arrival=arrivals[name],
            step=step.name,
            line=step.admit.position.line if step.admit is not None else step.position.line,
            mode="waiting" if token.stage == "waiting" else "parked",
            seq=gates[name].seq if name in gates else 0,
            until=token.deadline,
            rules=admission_conditions(state, token, now),
            signals=(step.admit.signals if step.admit is not None else None) or (),
        )


def _waiting_joins(state: ExecutionState, arrivals: Mapping[str, TokenArrival]) -> Iterator[WaitingJoin]:
    """The joins that hold tokens, or take in late ones."""
    for number, join in state.joins.items():
        step = state.plan.by_number[number].step
        if step.join is None:
            continue
        yield WaitingJoin(
            step=step.name,
            line=step.join.position.line,
            mode=step.join.mode,
            arrived=len(join.arrivals),
            needed=_needed(step, join),
            absorbing=join.absorbing,
            arrivals=tuple(arrivals[name] for name in join.arrivals),
            waits_for=tuple(_reaching(state, number)),
        )


def _needed(step: Step, join: JoinState) -> int | None:
    if step.join is None or step.join.mode == "all":
        return None
    return step.join.count if step.join.mode == "count" else int(not join.absorbing)


def _reaching(state: ExecutionState, number: int) -> Iterator[ReachingStep]:
    """The steps whose tokens and runs may still bring a token to this one, some only if they are retried."""
    target = state.plan.by_number[number]
    failures = Counter(run.step.number for run in state.failed_runs.values() if state.holds_back)
    for step_number in sorted({*state.occupancy, *failures}):
        plan = state.plan.by_number[step_number]
        occupancy = state.occupancy.get(step_number, Occupancy())
        runs = failed = 0
        if target.above & plan.bit:
            runs, failed = occupancy.runs, failures[step_number]
        tokens = occupancy.pending
        if step_number != number:
            tokens = tokens + occupancy.joined if target.above & plan.bit else 0
        if runs or tokens or failed:
            yield ReachingStep(step=plan.name, tokens=tokens, runs=runs, failed=failed)


def _first_unhandled_failure(state: ExecutionState, runs: Mapping[str, RunNotes]) -> FirstFailure | None:
    """The first failure that no arc handled, with the attempt that failed."""
    if not state.failures:
        return None
    failure = state.failures[0]
    notes = runs[failure.run]
    run, step = notes.run, notes.plan.step
    index = failure.error.details.get("index", 0) if run.loop is not None else 0
    begun = notes.failing.get(index)
    return FirstFailure(
        run=failure.run,
        step=step.name,
        task=run.failed_task,
        iteration=index if run.loop is not None and run.failed_task else None,
        attempt=run.failed_attempt,
        **_line_and_column(step, run.failed_task, guard=run.error is None),
        input=truncate_value(begun.input) if begun is not None and begun.task == run.failed_task else None,
        error=_failure_value(failure.error),
    )


def _failure_value(error: ErrorInfo) -> dict[str, Any]:
    """The error, without the number of an attempt where none had begun."""
    parts = {name: part for name, part in error.as_value().items() if (name, part) != ("attempt", 0)}
    value: dict[str, Any] = truncate_value(parts)
    return value


def _line_and_column(step: Step, task: str, *, guard: bool) -> dict[str, int]:
    failed_task = task_labelled(step, task)
    position: Position = failed_task.position if failed_task is not None else step.position
    if guard and step.router is not None:
        position = step.router.position
    return {"line": position.line, "column": position.column}
