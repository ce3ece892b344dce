"""`noetl executions replay`."""

from typing import Any

import click

from noetl.cli import console, options
from noetl.cli.command_failure import CommandFailure
from noetl.cli.format import yaml_lines
from noetl.cli.report.execution_report import execution_json
from noetl.cli.report.state_json import marking_json, run_json, token_json
from noetl.cli.store_access import with_store
from noetl.engine.history.read import History, read_history
from noetl.kernel.state.execution_state import ExecutionState
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
        "tokens": printable_value([token_json(state, token) for token in state.tokens.values()]),
        "runs": printable_value([run_json(run) for run in state.runs.values()]),
        "signals": state.signals,
    }
