"""Says why one step ran, runs, waits, or was not reached: the way that led to it, or where that ended."""

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

from noetl.dsl.document.playbook import Arc
from noetl.kernel.explain.explanation_parts import (
    ArcExplanation,
    ArcVerdict,
    ChainLink,
    Explanation,
    IncomingArc,
    RoutingExplanation,
    RunExplanation,
    StepExplanation,
    TokenArrival,
)
from noetl.kernel.explain.run_notes import guard_text
from noetl.kernel.plan import Plan

RUNS_TOLD = 40
LONGEST_CHAIN = 50
"""Links that are told: a cycle may have brought a run by way of thousands."""
_ARCS_SAID = 3


def explain_step(plan: Plan, step: str, explanation: Explanation) -> StepExplanation:
    """What an explanation of the whole execution says about this step, which is one of the plan's."""
    return _StepExplainer(plan, step, explanation).explanation()


class _IncomingPosition(NamedTuple):
    source: str
    position: int
    arc: Arc


class _StepExplainer:
    def __init__(self, plan: Plan, step: str, explanation: Explanation) -> None:
        self._plan = plan
        self._step = plan.by_name[step].step
        self._explanation = explanation
        self._runs = {run.run: run for run in explanation.runs}
        self._own_runs = [run for run in explanation.runs if run.step == step]
        self._routings: dict[str, list[RunExplanation]] = {}
        for run in explanation.runs:
            if run.routing is not None:
                self._routings.setdefault(run.step, []).append(run)
        self._parked = tuple(parked for parked in explanation.parked if parked.step == step)
        self._joins = tuple(join for join in explanation.joins if join.step == step and join.arrivals)
        self._discarded = tuple(token for token in explanation.discarded if token.step == step)
        self._reached = self._reached_steps()

    def explanation(self) -> StepExplanation:
        name, explanation = self._step.name, self._explanation
        arcs = tuple(self._incoming_arc(incoming) for incoming in self._arcs_to(name))
        stopped_at = () if name in self._reached else tuple(self._stopped_at())
        verdict = self._verdict()
        return StepExplanation(
            execution_id=explanation.execution_id,
            status=explanation.status,
            version=explanation.version,
            step=name,
            line=self._step.position.line,
            verdict=verdict,
            reason=self._reason(verdict, stopped_at),
            chain=self._chain(),
            arcs=arcs,
            stopped_at=stopped_at,
            run_count=len(self._own_runs),
            runs=tuple(self._own_runs[-RUNS_TOLD:]),
            parked=self._parked,
            joins=self._joins,
            discarded=self._discarded,
        )

    def _reached_steps(self) -> set[str]:
        explanation = self._explanation
        selected = {
            arc.step
            for runs in self._routings.values()
            for run in runs
            for arc in _arcs_of(run.routing)
            if arc.selected
        }
        return (
            selected
            | {run.step for run in explanation.runs}
            | {token.step for token in explanation.parked}
            | {token.step for token in explanation.discarded}
            | {join.step for join in explanation.joins if join.arrivals}
        )

    def _verdict(self) -> Literal["ran", "failed", "running", "waiting", "denied", "not_reached"]:
        open_runs = [run for run in self._own_runs if not run.event]
        if any(run.phase not in ("ready", "suspended") for run in open_runs):
            return "running"
        if open_runs or self._parked or self._joins:
            return "waiting"
        if self._own_runs:
            return "failed" if self._own_runs[-1].error is not None else "ran"
        if self._discarded:
            return "denied"
        return "waiting" if self._step.name in self._reached else "not_reached"

    def _reason(self, verdict: str, stopped_at: tuple[IncomingArc, ...]) -> str:
        match verdict:
            case "not_reached":
                return self._why_not(stopped_at)
            case "denied":
                return f"a token came to it and was discarded: {self._discarded[-1].reason}"
            case "waiting" if self._parked:
                return "a token came to it and is not admitted yet"
            case "waiting" if self._joins:
                return "tokens wait at its join for others"
            case "waiting" if not self._own_runs:
                return "a token is on its way to it"
            case "waiting" if any(run.phase == "ready" for run in self._own_runs):
                is_paused = self._explanation.status == "paused"
                return "it is ready, and the execution is paused" if is_paused else "it waits for a worker"
        last = self._own_runs[-1]
        if verdict == "failed" and last.error is not None:
            return f"its last run failed: {last.error.get('kind')}: {last.error.get('message')}"
        arrival = last.arrivals[-1] if last.arrivals else None
        if arrival is None:
            return "it is the final step" if last.final else "the execution begins there"
        if arrival.step is None:
            return "the execution begins there"
        return f"an arc of `{arrival.step}` brought a token"

    def _why_not(self, stopped_at: tuple[IncomingArc, ...]) -> str:
        name, executor = self._step.name, self._plan.playbook.executor
        if name == executor.final_step:
            return "it runs at the end of the execution"
        if name == self._plan.playbook.entry:
            return "the execution has not begun"
        if not stopped_at:
            return "no arc leads to it from a step that was reached"
        reasons = [_arc_reason(arc) for arc in stopped_at[:_ARCS_SAID]]
        more = len(stopped_at) - len(reasons)
        return "; ".join(reasons) + (f"; and {more} more" if more else "")

    def _arcs_to(self, step: str) -> Iterator[_IncomingPosition]:
        for plan in self._plan.by_number:
            for position, arc in enumerate(plan.step.arcs):
                if arc.step == step:
                    yield _IncomingPosition(plan.name, position, arc)

    def _stopped_at(self) -> Iterator[IncomingArc]:
        """From the step backwards through those that nothing came to, to the arcs of those that ran."""
        unseen: deque[tuple[str, tuple[str, ...]]] = deque([(self._step.name, ())])
        seen = {self._step.name}
        while unseen:
            target, through = unseen.popleft()
            for incoming in self._arcs_to(target):
                if incoming.source in self._reached:
                    yield self._incoming_arc(incoming, through)
                elif incoming.source not in seen:
                    seen.add(incoming.source)
                    unseen.append((incoming.source, (target, *through)))

    def _incoming_arc(self, incoming: _IncomingPosition, through: tuple[str, ...] = ()) -> IncomingArc:
        runs = [run for run in self._routings.get(incoming.source, ()) if _arc_at(run, incoming.position)]
        judged = [run for run in runs if _is_asked(run, incoming.position)]
        taken = [run for run in runs if _arc_verdict(run, incoming.position) == "taken"]
        last = (taken or judged or runs)[-1:]
        explained = _arc_at(last[0], incoming.position) if last else None
        routing = last[0].routing if last else None
        return IncomingArc(
            source=incoming.source,
            arc=incoming.position,
            target=incoming.arc.step,
            line=incoming.arc.position.line,
            text=guard_text(incoming.arc.when),
            verdict=_arc_verdict(last[0], incoming.position) if last else "not_reached",
            asked=len(judged),
            taken=len(taken),
            run=last[0].run if last else "",
            seq=routing.seq if routing is not None else 0,
            condition=explained.condition if explained is not None else None,
            through=through,
        )

    def _chain(self) -> tuple[ChainLink, ...]:
        links: list[ChainLink] = []
        arrival: TokenArrival | None = None
        if self._own_runs:
            last = self._own_runs[-1]
            links.append(ChainLink(step=last.step, run=last.run, seq=last.seq))
            arrival = last.arrivals[-1] if last.arrivals else None
        else:
            arrivals = [
                *(token.arrival for token in self._parked),
                *(token.arrival for token in self._discarded),
                *(arrived for join in self._joins for arrived in join.arrivals),
            ]
            arrival = max(arrivals, key=lambda arrived: arrived.seq) if arrivals else None
        while arrival is not None and arrival.run in self._runs and len(links) < LONGEST_CHAIN:
            run = self._runs[arrival.run]
            taken = _arc_at(run, arrival.arc if arrival.arc is not None else -1)
            links.append(
                ChainLink(
                    step=run.step,
                    run=run.run,
                    seq=run.seq,
                    arc=arrival.arc,
                    line=arrival.line,
                    condition=taken.condition if taken is not None else None,
                )
            )
            arrival = run.arrivals[-1] if run.arrivals else None
        return tuple(reversed(links))


def _arcs_of(routing: RoutingExplanation | None) -> Iterable[ArcExplanation]:
    return routing.arcs if routing is not None else ()


def _arc_at(run: RunExplanation, position: int) -> ArcExplanation | None:
    arcs = tuple(_arcs_of(run.routing))
    return arcs[position] if 0 <= position < len(arcs) else None


def _is_asked(run: RunExplanation, position: int) -> bool:
    return _arc_verdict(run, position) in ("taken", "not_taken", "failed")


def _arc_verdict(run: RunExplanation, position: int) -> ArcVerdict:
    arc = _arc_at(run, position)
    if arc is None or run.routing is None:
        return "not_reached"
    if arc.selected:
        return "taken"
    if arc.condition.holds is not None:
        return "not_taken"
    # The guard that raised is the first without a verdict: those behind it were not asked.
    is_raised = run.routing.error is not None and run.routing.error.get("kind") == "expression"
    is_first = all(other.condition.holds is not None for other in run.routing.arcs[:position])
    return "failed" if is_raised and is_first else "not_asked"


def _arc_reason(arc: IncomingArc) -> str:
    match arc.verdict:
        case "not_taken":
            return f"`{arc.text}` of `{arc.source}` did not hold"
        case "failed":
            return f"`{arc.text}` of `{arc.source}` failed"
        case "not_asked":
            return f"another arc of `{arc.source}` was taken"
        case "not_reached":
            return f"`{arc.source}` has not ended"
        case "taken":
            return f"the token that `{arc.source}` sent was taken back"
