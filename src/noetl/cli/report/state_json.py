"""A state as JSON values: where its tokens and runs are."""

from collections import Counter
from typing import Any

import msgspec

from noetl.cli.format import iso_time
from noetl.kernel.state.execution_state import ExecutionState, Token
from noetl.kernel.state.run_state import Frame, RunState


def marking_json(state: ExecutionState) -> dict[str, dict[str, int]]:
    """By step: how many tokens are enqueued, parked, waiting or joined, and how many runs in which phase."""
    counts: dict[str, Counter[str]] = {}
    for token in state.tokens.values():
        counts.setdefault(state.step_of(token).name, Counter())[token.stage] += 1
    for run in state.runs.values():
        counts.setdefault(run.step.name, Counter())[run.phase] += 1
    return {step: dict(places) for step, places in counts.items()}


def token_json(state: ExecutionState, token: Token) -> dict[str, Any]:
    return {
        "token": token.id,
        "step": state.step_of(token).name,
        "place": token.stage,
        "args": token.args,
        "deadline": _iso_time(token.deadline),
    }


def run_json(run: RunState) -> dict[str, Any]:
    """A run: its phase, what it has written so far, and where each open iteration stands."""
    loop = run.loop
    return {
        "run": run.id,
        "step": run.step.name,
        "phase": run.phase,
        "args": run.args,
        "scope": run.variables.values,
        "deadline": _iso_time(run.deadline),
        "iterations": [_frame_json(run, frame) for frame in run.frames.values()],
        "loop": None
        if loop is None
        else {
            "total": loop.total,
            "started": loop.next,
            "succeeded": loop.succeeded,
            "failed": loop.failed,
        },
    }


def _frame_json(run: RunState, frame: Frame) -> dict[str, Any]:
    tasks = run.step.step.tasks
    suspension = frame.suspension
    return {
        "index": frame.index,
        "task": tasks[frame.at].label if frame.at < len(tasks) else None,
        "attempt": frame.attempt or None,
        "running": frame.running,
        "iter": frame.iter.values,
        "waits": None
        if suspension is None
        else {**msgspec.to_builtins(suspension), "until": _iso_time(suspension.until)},
    }


def _iso_time(ts: int | None) -> str | None:
    return iso_time(ts) if ts is not None else None
