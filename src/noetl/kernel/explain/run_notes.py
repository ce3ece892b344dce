"""The story of one run, told event by event; conditions are asked again to see what they read."""

from collections import Counter
from collections.abc import Iterator, Sequence

from noetl.dsl.document.playbook import AdmitRule, Arc, Guard, Step, Task
from noetl.events.bodies import NextEvaluated, StepScheduled, TaskProcessed, TaskStarted
from noetl.events.event import Event
from noetl.expr.expression import Expression
from noetl.kernel.event_position import position_of_rule, task_labelled
from noetl.kernel.explain.explanation_parts import (
    AdmissionCheck,
    ArcExplanation,
    Condition,
    LoopExplanation,
    MatchedRule,
    RetriedAttempt,
    RoutingExplanation,
    RunExplanation,
    RunWait,
    ShardExplanation,
    TaskExplanation,
    TokenArrival,
)
from noetl.kernel.expression_reads import paths_read, truncate_value
from noetl.kernel.net.admission import admission_scope
from noetl.kernel.net.routing import run_end_scope
from noetl.kernel.plan import StepPlan
from noetl.kernel.scopes import EvaluationScope
from noetl.kernel.state.execution_state import ExecutionState, Token
from noetl.kernel.state.run_state import RunState
from noetl.model.errors import ExpressionError

RETRIES_KEPT = 100
WAITS_KEPT = 100


def guard_text(guard: Guard) -> str:
    """A condition in one line."""
    return " ".join(guard.source.split()) if isinstance(guard, Expression) else str(guard).lower()


def admission_conditions(state: ExecutionState, token: Token, now: int) -> tuple[Condition, ...]:
    """The rules of a step's admission, in order, up to the one that decides."""
    admit = state.step_of(token).step.admit
    if admit is None:
        return ()
    return tuple(_ask_rules(admit.rules, admission_scope(state, token, now)))


def _ask_rules(rules: Sequence[AdmitRule], scope: EvaluationScope) -> Iterator[Condition]:
    decided = False
    for rule in rules:
        if decided:
            yield Condition(text=guard_text(rule.when), line=rule.position.line)
            continue
        condition = _condition(rule, scope)
        decided = condition.holds is not False
        yield condition


def _condition(rule: AdmitRule | Arc, scope: EvaluationScope) -> Condition:
    holds, error = None, ""
    try:
        holds = scope.holds(rule.when)
    except ExpressionError as fault:
        error = fault.message
    return Condition(
        text=guard_text(rule.when),
        line=rule.position.line,
        holds=holds,
        reads=paths_read(rule.when, scope.expression_scope),
        error=error,
    )


def was_admitted(step: Step, rules: Sequence[Condition]) -> bool:
    """Whether a token was let in, by what its rules said."""
    if step.admit is None:
        return True
    for rule, condition in zip(step.admit.rules, rules, strict=True):
        if condition.holds:
            return rule.allow
        if condition.holds is None:
            return False
    return bool(step.admit.otherwise)


def explain_routing(
    state: ExecutionState, run: RunState, body: NextEvaluated, seq: int, now: int
) -> RoutingExplanation:
    """How the arcs were judged, with what each guard that was asked has read."""
    scope = run_end_scope(state, run, now)
    arcs = run.step.step.arcs
    verdicts = body.verdicts or (None,) * len(arcs)
    asked_arcs = _asked_arcs(verdicts, body, exclusive=run.step.step.is_exclusive)
    return RoutingExplanation(
        seq=seq,
        event=body.event,
        handled=body.handled,
        error=truncate_value(body.error.as_value()) if body.error is not None else None,
        arcs=tuple(
            ArcExplanation(
                step=arc.step,
                selected=position in body.selected,
                condition=Condition(
                    text=guard_text(arc.when),
                    line=arc.position.line,
                    holds=verdicts[position],
                    reads=paths_read(arc.when, scope.expression_scope) if position < asked_arcs else (),
                ),
            )
            for position, arc in enumerate(arcs)
        ),
    )


def _asked_arcs(verdicts: Sequence[bool | None], body: NextEvaluated, *, exclusive: bool) -> int:
    """How many arcs were asked: those with a verdict, and one more if its guard raised."""
    verdict_count = sum(verdict is not None for verdict in verdicts)
    raised = body.error is not None and body.error.kind == "expression" and bool(body.verdicts)
    return verdict_count + (raised and not (exclusive and any(verdicts)))


class TaskNotes:
    """What is kept about a task of a run."""

    __slots__ = ("attempts", "failed", "redelivered", "retried", "retries", "rules")

    def __init__(self) -> None:
        self.attempts = self.failed = self.redelivered = self.retried = 0
        self.rules: Counter[tuple[int | None, str]] = Counter()
        self.retries: list[RetriedAttempt] = []

    def processed(self, event: Event, body: TaskProcessed, task: Task) -> None:
        outcome = body.outcome
        self.failed += outcome.status == "error"
        self.rules[body.rule, body.do] += 1
        if body.do != "retry":
            return
        self.retried += 1
        if len(self.retries) < RETRIES_KEPT:
            position = position_of_rule(task, body.rule)
            error = outcome.error
            self.retries.append(
                RetriedAttempt(
                    seq=event.seq,
                    iteration=body.iteration,
                    attempt=body.attempt,
                    line=position.line if position is not None else None,
                    error=truncate_value(error.as_value()) if error is not None else None,
                    result=truncate_value(outcome.result),
                    next_at=body.retry_at,
                )
            )

    def explanation(self, task: Task, still_open: int) -> TaskExplanation:
        return TaskExplanation(
            task=task.label,
            kind=task.kind,
            line=task.position.line,
            attempts=self.attempts,
            failed=self.failed,
            redelivered=self.redelivered,
            open=still_open,
            retried=self.retried,
            rules=tuple(_matched_rule(task, *key, times) for key, times in self.rules.items()),
            retries=tuple(self.retries),
        )


def _matched_rule(task: Task, rule: int | None, do: str, times: int) -> MatchedRule:
    position = position_of_rule(task, rule)
    if position is None or rule is None or task.policy is None:
        return MatchedRule(do=do, times=times)
    text = "else" if rule == -1 else guard_text(task.policy.rules[rule].when)
    return MatchedRule(text=text, line=position.line, do=do, times=times)


class RunNotes:
    """What is kept about a run until all is told. `failing` are the attempts that failed it, by iteration."""

    __slots__ = ("claims", "failing", "lost", "plan", "routing", "run", "started", "story", "tasks")

    def __init__(
        self,
        event: Event,
        body: StepScheduled,
        run: RunState,
        arrivals: tuple[TokenArrival, ...],
        gates: tuple[AdmissionCheck, ...],
    ) -> None:
        self.run = run
        self.plan: StepPlan = run.step
        self.claims = self.lost = 0
        self.tasks: dict[str, TaskNotes] = {}
        self.started: dict[int, TaskStarted] = {}
        self.failing: dict[int, TaskStarted] = {}
        self.routing: RoutingExplanation | None = None
        self.story = RunExplanation(
            run=run.id,
            step=run.step.name,
            line=run.step.step.position.line,
            seq=event.seq,
            began_at=event.ts,
            phase="",
            arrivals=arrivals,
            gates=gates,
            args=truncate_value(body.args),
            final=body.final,
        )

    def task_started(self, body: TaskStarted) -> None:
        notes = self.tasks.setdefault(body.task, TaskNotes())
        notes.attempts += body.redelivery == 0
        notes.redelivered += body.redelivery > 0
        self.started[body.iteration] = body

    def task_processed(self, event: Event, body: TaskProcessed) -> None:
        task = task_labelled(self.plan.step, body.task)
        begun = self.started.pop(body.iteration, None)
        if task is None:
            return
        self.tasks.setdefault(body.task, TaskNotes()).processed(event, body, task)
        if body.do == "fail" and begun is not None and len(self.failing) < RETRIES_KEPT:
            self.failing[body.iteration] = begun

    def explanation(self, now: int) -> RunExplanation:
        """All that is known, with the run as it is now."""
        run, begun = self.run, self.story
        loop = run.loop
        still_open = Counter(started.task for started in self.started.values() if _in_flight(run, started))
        return RunExplanation(
            run=begun.run,
            step=begun.step,
            line=begun.line,
            seq=begun.seq,
            began_at=begun.began_at,
            phase=run.phase,
            arrivals=begun.arrivals,
            gates=begun.gates,
            args=begun.args,
            final=begun.final,
            claims=self.claims,
            lost=self.lost,
            worked=run.worked + (max(now - run.since, 0) if run.since else 0),
            tasks=tuple(
                self.tasks[task.label].explanation(task, still_open[task.label])
                for task in self.plan.step.tasks
                if task.label in self.tasks
            ),
            loop=LoopExplanation(
                total=loop.total,
                max_in_flight=loop.max_in_flight,
                succeeded=loop.succeeded,
                failed=loop.failed,
                open=len(run.frames),
                shards=tuple(
                    ShardExplanation(
                        first=shard.start,
                        last=shard.end - 1,
                        begun=shard.next - shard.start,
                        phase=shard.phase,
                        worker=shard.worker,
                    )
                    for shard in run.shards.values()
                ),
            )
            if loop is not None
            else None,
            waits=_waits_of_run(run),
            event=run.event,
            ended_seq=run.ended_seq,
            ended_at=run.ended_at,
            result=truncate_value(run.result),
            error=truncate_value(run.error.as_value()) if run.error is not None else None,
            routing=self.routing,
        )


def _in_flight(run: RunState, started: TaskStarted) -> bool:
    frame = run.frames.get(started.iteration)
    return run.phase != "ended" and frame is not None and frame.suspension is None


def _waits_of_run(run: RunState) -> tuple[RunWait, ...]:
    """What an open run waits for, a hundred iterations at most."""
    if run.phase == "ended":
        return ()
    waits = [RunWait(reason="pause")] if run.paused else []
    for frame in run.frames.values():
        suspension = frame.suspension
        if suspension is not None and len(waits) < WAITS_KEPT:
            waits.append(
                RunWait(
                    reason=suspension.reason,
                    iteration=frame.index,
                    until=suspension.until,
                    signal=suspension.signal,
                    child=suspension.child,
                )
            )
    return tuple(waits)
