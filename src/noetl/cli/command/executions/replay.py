"""`noetl executions replay`."""

from typing import Any

import click
import msgspec

from noetl.cli import console, options
from noetl.cli.command_failure import CommandFailure
from noetl.cli.format import iso_time, yaml_lines
from noetl.cli.report.execution_report import execution_json, marking_json
from noetl.cli.store_access import with_store
from noetl.engine.history.read import History, read_history
from noetl.kernel.state.execution_state import ExecutionState, Token
from noetl.kernel.state.run_state import Frame, RunState
from noetl.model.secret import printable_value
from noetl.ports.store import Store
from noetl.stores.home_folder import Home


@click.command("replay")
@options.execution
@click.option(
    "--at", type=click.IntRange(1), metavar="SEQ", help="After this event.  [default: the last one]"
)
@options.tools
@options.store_options
def command(*, name: str, at: int | None, **store_flags: str | None) -> None:
    """Show the state of an execution as it was.

    The events up to SEQ are folded again: status, ctx, tokens and runs as they were then.
    """
    configuration = options.read_configuration(**store_flags)

    async def work(_home: Home, store: Store) -> History:
        return await read_history(store, name, configuration.settings.allow_kinds)

    history = with_store(configuration, work)
    seq = len(history.events) if at is None else at
    if seq > len(history.events):
        message = f"--at {seq}: {history.record.execution_id} has {len(history.events)} events"
        raise CommandFailure("argument", message, hint=f"a number from 1 to {len(history.events)}")
    document = _document(history, history.state_at(seq), seq)
    if configuration.settings.output == "json":
        console.write_json(document)
    else:
        console.write_text("".join(f"{line}\n" for line in yaml_lines(document)))


def _document(history: History, state: ExecutionState, seq: int) -> dict[str, Any]:
    last_ts = history.events[seq - 1].ts
    return {
        **execution_json(state, version=history.request.version or None, last_ts=last_ts),
        "at": seq,
        "of": len(history.events),
        "workload": state.inputs.workload,
        "marking": marking_json(state),
        "tokens": printable_value([_token_json(state, token) for token in state.tokens.values()]),
        "runs": printable_value([_run_json(run) for run in state.runs.values()]),
        "signals": state.signals,
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
