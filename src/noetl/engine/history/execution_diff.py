"""Two executions side by side: where they part, and what came out differently."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from noetl.engine.history.first_divergence import find_divergence
from noetl.engine.history.read import RecordedHistory
from noetl.engine.summary import elapsed_micros
from noetl.kernel.explain.explainer import explain
from noetl.kernel.explain.explanation_parts import Condition, Explanation
from noetl.kernel.explain.expression_console import ExpressionConsole
from noetl.kernel.expression_reads import truncate_value
from noetl.kernel.state.execution_state import ExecutionState
from noetl.model.reference import is_reference
from noetl.model.secret import printable_value
from noetl.model.timestamp import iso_time
from noetl.ports.execution_views import DiffSide, ExecutionDiff, GuardDiff, StepDiff, ValueDiff

MOST_GUARDS = 100
MOST_VALUES = 200
_LEAF_DEPTH = 8


class _Side(NamedTuple):
    """One of the two, as it is now."""

    history: RecordedHistory
    state: ExecutionState
    outcomes: Mapping[str, Any]
    explanation: Explanation


def diff_executions(history_a: RecordedHistory, history_b: RecordedHistory) -> ExecutionDiff:
    """Raises WrongSequence."""
    a, b = _side(history_a), _side(history_b)
    ids = a.state.execution_id, b.state.execution_id
    divergence = find_divergence(history_a.events, history_b.events, ids)
    seqs = [side.seq for side in (divergence.a, divergence.b) if side] if divergence is not None else []
    return ExecutionDiff(
        a=_diff_side(a),
        b=_diff_side(b),
        same_playbook=history_a.plan.playbook.hash == history_b.plan.playbook.hash,
        common=min(seqs) - 1 if seqs else len(history_a.events),
        divergence=divergence,
        steps=list(_step_diffs(a, b)),
        guards=_guard_diffs(a, b)[:MOST_GUARDS],
        values=list(_all_value_diffs(a, b))[:MOST_VALUES],
    )


def _side(history: RecordedHistory) -> _Side:
    execution_id = history.record.execution_id
    console = ExpressionConsole(history.plan, execution_id, history.events)
    explanation = explain(history.plan, execution_id, history.events)
    return _Side(history, console.state, console.outcomes, explanation)


def _diff_side(side: _Side) -> DiffSide:
    state, history = side.state, side.history
    metadata = state.plan.playbook.metadata
    return DiffSide(
        execution_id=state.execution_id,
        playbook=metadata.path,
        version=history.request.version or metadata.version,
        hash=state.plan.playbook.hash,
        status=state.status,
        events=len(history.events),
        duration_ms=elapsed_micros(state, state.last_ts) // 1_000,
        started_at=iso_time(history.record.started_at),
        forked_from=state.fork.source if state.fork is not None else None,
    )


def _step_diffs(a: _Side, b: _Side) -> Iterator[StepDiff]:
    statuses = a.state.step_statuses(), b.state.step_statuses()
    times = a.state.step_times(), b.state.step_times()
    names = [
        *a.state.plan.by_name,
        *(name for name in b.state.plan.by_name if name not in a.state.plan.by_name),
    ]
    for name in names:
        if name not in statuses[0] and name not in statuses[1]:
            continue
        summaries = a.state.summaries.get(name), b.state.summaries.get(name)
        outcomes = [side.outcomes.get(name, {}) for side in (a, b)]
        results = [_comparable(outcome.get("result")) for outcome in outcomes]
        errors = [_short_error(outcome.get("error")) for outcome in outcomes]
        status = statuses[0].get(name), statuses[1].get(name)
        runs = tuple(summary.runs if summary is not None else 0 for summary in summaries)
        yield StepDiff(
            step=name,
            differs=status[0] != status[1]
            or runs[0] != runs[1]
            or results[0] != results[1]
            or errors[0] != errors[1],
            status=status,
            runs=(runs[0], runs[1]),
            worked=(times[0].get(name, 0), times[1].get(name, 0)),
            result=(truncate_value(results[0]), truncate_value(results[1])),
            error=(errors[0], errors[1]),
        )


def _short_error(error: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if error is None:
        return None
    return {name: printable_value(error.get(name)) for name in ("kind", "message")}


def _guard_diffs(a: _Side, b: _Side) -> list[GuardDiff]:
    guards_a, guards_b = _guards(a.explanation), _guards(b.explanation)
    differences = []
    for key in [*guards_a, *(key for key in guards_b if key not in guards_a)]:
        first, second = guards_a.get(key), guards_b.get(key)
        # A guard that only one of them came to, or asked, is told by the steps.
        if first is None or second is None or not (_is_judged(first) and _is_judged(second)):
            continue
        if first.holds != second.holds:
            step, arc, occurrence, _ = key
            differences.append(
                GuardDiff(step=step, arc=arc, occurrence=occurrence, a=_masked(first), b=_masked(second))
            )
    return differences


def _is_judged(condition: Condition) -> bool:
    return condition.holds is not None or bool(condition.error)


def _masked(condition: Condition) -> Condition:
    return msgspec.convert(printable_value(msgspec.to_builtins(condition)), Condition)


def _guards(explanation: Explanation) -> dict[tuple[str, str | None, int, int], Condition]:
    """By step, target of the arc, number of the run and position of the guard."""
    guards: dict[tuple[str, str | None, int, int], Condition] = {}
    occurrences: Counter[str] = Counter()
    for run in explanation.runs:
        occurrences[run.step] += 1
        occurrence = occurrences[run.step]
        for gate in run.gates:
            for position, rule in enumerate(gate.rules):
                guards[run.step, None, occurrence, position] = rule
        for position, arc in enumerate(run.routing.arcs if run.routing is not None else ()):
            guards[run.step, arc.step, occurrence, position] = arc.condition
    return guards


def _all_value_diffs(a: _Side, b: _Side) -> Iterator[ValueDiff]:
    pairs = (
        ("workload", a.state.inputs.workload, b.state.inputs.workload),
        ("ctx", a.state.ctx.values, b.state.ctx.values),
        ("result", a.state.result, b.state.result),
    )
    for name, first, second in pairs:
        yield from value_diffs(name, _comparable(first), _comparable(second), _LEAF_DEPTH)


def value_diffs(path: str, a: Any, b: Any, depth: int) -> Iterator[ValueDiff]:
    """The parts in which two values differ, as deep as their mappings go."""
    if a == b:
        return
    if not (isinstance(a, dict) and isinstance(b, dict) and depth):
        yield ValueDiff(path=path, a=truncate_value(a), b=truncate_value(b), missing="")
        return
    for key in [*a, *(key for key in b if key not in a)]:
        below = f"{path}.{key}"
        if key not in a:
            yield ValueDiff(path=below, a=None, b=truncate_value(b[key]), missing="a")
        elif key not in b:
            yield ValueDiff(path=below, a=truncate_value(a[key]), b=None, missing="b")
        else:
            yield from value_diffs(below, a[key], b[key], depth - 1)


def _comparable(value: Any) -> Any:
    """As it is printed, and what is stored elsewhere without the name of where."""
    return _without_keys(printable_value(value))


def _without_keys(value: Any) -> Any:
    if isinstance(value, dict):
        # Its key names the execution; the hash of its content stays.
        without = ("key",) if is_reference(dict(value)) else ()
        return {name: _without_keys(item) for name, item in value.items() if name not in without}
    return [_without_keys(item) for item in value] if isinstance(value, list) else value
