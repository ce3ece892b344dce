"""The state of an execution as it was, for people and programs."""

from typing import Any

import msgspec

from noetl.engine.history.read import RecordedHistory
from noetl.engine.summary import execution_json, marking_json
from noetl.kernel.state.execution_state import ExecutionState, Token
from noetl.kernel.state.run_state import Frame, RunState, Shard
from noetl.kernel.state.shards import unbegun
from noetl.model.secret import printable_value
from noetl.model.timestamp import iso_time


def state_document(history: RecordedHistory, seq: int) -> dict[str, Any]:
    """Status, ctx, tokens and runs as they were after that event. Raises ValueError if there is none."""
    state = history.state_at(seq)
    last_ts = history.events[seq - 1].ts
    return {
        **execution_json(state, version=history.request.version or None, last_ts=last_ts),
        "at": seq,
        "of": len(history.events),
        "workload": state.inputs.workload,
        "marking": marking_json(state),
        "tokens": printable_value([_token_json(state, token) for token in state.tokens.values()]),
        "runs": printable_value([_run_json(run) for run in state.runs.values()]),
        "signals": {name: [queued.payload for queued in queue] for name, queue in state.signals.items()},
    }


def _token_json(state: ExecutionState, token: Token) -> dict[str, Any]:
    return {
        "token": token.id,
        "step": state.step_of(token).name,
        "place": token.stage,
        "args": token.args,
        "deadline": _iso_time(token.deadline),
    }


def _run_json(run: RunState) -> dict[str, Any]:
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
            "started": loop.next - len(unbegun(run)),
            "succeeded": loop.succeeded,
            "failed": loop.failed,
            **({"shards": [_shard_json(shard) for shard in run.shards.values()]} if run.sharded else {}),
        },
    }


def _shard_json(shard: Shard) -> dict[str, Any]:
    """Who has which iterations: from `first` to `last`, of which those before `next` have begun."""
    return {
        "first": shard.start,
        "last": shard.end - 1,
        "next": shard.next,
        "phase": shard.phase,
        "worker": shard.worker or None,
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
