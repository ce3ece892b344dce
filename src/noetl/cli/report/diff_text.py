"""Two executions side by side, in words."""

import json
from collections.abc import Iterator
from typing import Any

from noetl.cli.console import visible
from noetl.cli.format import duration_text, pluralize
from noetl.cli.report.explanation import condition_text, section_lines
from noetl.ports.execution_views import (
    DiffSide,
    Divergence,
    EventSide,
    ExecutionDiff,
    GuardDiff,
    StepDiff,
    ValueDiff,
)

_VALUE_WIDTH = 70


def diff_lines(diff: ExecutionDiff) -> Iterator[str]:
    """Both, where they part, and then what came out differently; what is the same is counted."""
    yield f"A {_side_text(diff.a)}"
    yield f"B {_side_text(diff.b)}"
    if not diff.same_playbook:
        yield "they ran different documents"
    if diff.divergence is None:
        yield "no difference"
    else:
        title = f"First difference, after event {diff.common}"
        yield from section_lines(title, _divergence_lines(diff.divergence))
    different = [step for step in diff.steps if step.differs]
    lines = [line for step in different for line in _step_lines(step)]
    if same := len(diff.steps) - len(different):
        lines.append(f"{pluralize(same, 'step')} the same")
    yield from section_lines("Steps", lines)
    yield from section_lines("Guards", [line for guard in diff.guards for line in _guard_lines(guard)])
    yield from section_lines("Values", map(_value_difference, diff.values))
    yield from section_lines("Durations", (_duration_text(step) for step in diff.steps))


def _side_text(side: DiffSide) -> str:
    name = visible(side.playbook) + (f"@{side.version}" if side.version else "")
    fork = f", a fork of {side.forked_from}" if side.forked_from else ""
    took = duration_text(side.duration_ms * 1_000)
    return f"{side.execution_id} {name}: {side.status} after {took}, {pluralize(side.events, 'event')}{fork}"


def _divergence_lines(divergence: Divergence) -> Iterator[str]:
    yield visible(divergence.what)
    for letter, side in (("A", divergence.a), ("B", divergence.b)):
        if side is not None:
            yield f"{letter} {_event_text(side)}"


def _event_text(side: EventSide) -> str:
    step = f" of {visible(side.step)}" if side.step else ""
    return f"event {side.seq}, {side.name}{step}: {_value_text(side.value)}"


def _step_lines(step: StepDiff) -> Iterator[str]:
    sides = [
        f"{status or 'not reached'}" + (f" ({pluralize(runs, 'run')})" if runs > 1 else "")
        for status, runs in zip(step.status, step.runs, strict=True)
    ]
    yield f"{visible(step.step)}: {sides[0]} | {sides[1]}"
    if step.result[0] != step.result[1]:
        yield f"  result {_value_text(step.result[0])} | {_value_text(step.result[1])}"
    if step.error[0] != step.error[1]:
        yield f"  error {_value_text(step.error[0])} | {_value_text(step.error[1])}"


def _guard_lines(guard: GuardDiff) -> Iterator[str]:
    target = f" → {visible(guard.arc)}" if guard.arc is not None else ", admission"
    times = f", run {guard.occurrence}" if guard.occurrence > 1 else ""
    yield f"{visible(guard.step)}{target}{times}"
    for letter, condition in (("A", guard.a), ("B", guard.b)):
        if condition is not None:
            yield f"  {letter} {condition_text(condition)}"


def _value_difference(value: ValueDiff) -> str:
    a = "missing" if value.missing == "a" else _value_text(value.a)
    b = "missing" if value.missing == "b" else _value_text(value.b)
    return f"{visible(value.path)}: {a} | {b}"


def _duration_text(step: StepDiff) -> str:
    return f"{visible(step.step)}: {duration_text(step.worked[0])} | {duration_text(step.worked[1])}"


def _value_text(value: Any) -> str:
    text = visible(json.dumps(value, ensure_ascii=False))
    return text if len(text) <= _VALUE_WIDTH else text[: _VALUE_WIDTH - 1] + "…"
