"""`noetl executions replay`."""

import click

from noetl.cli import console, options
from noetl.cli.command_failure import CommandFailure
from noetl.cli.format import yaml_lines
from noetl.cli.store_access import with_store
from noetl.engine.history.read import History, read_history
from noetl.engine.history.time_travel import state_document
from noetl.ports.store import Store
from noetl.stores.home_folder import Home


@click.command("replay")
@options.execution
@options.at_event
@options.tools
@options.store_or_server_options
def command(*, name: str, at: int | None, **store_flags: str | None) -> None:
    """Show the state of an execution as it was.

    The events up to SEQ are folded again: status, ctx, tokens and runs as they were then.
    """
    configuration = options.read_configuration(**store_flags)
    if options.asks_server(configuration):
        from noetl.cli.server_executions import replay_remote

        replay_remote(configuration, name, at)
        return

    async def work(_home: Home, store: Store) -> History:
        return await read_history(store, name, configuration.settings.allow_kinds)

    history = with_store(configuration, work)
    seq = len(history.events) if at is None else at
    if seq > len(history.events):
        message = f"--at {seq}: {history.record.execution_id} has {len(history.events)} events"
        raise CommandFailure("argument", message, hint=f"a number from 1 to {len(history.events)}")
    document = state_document(history, seq)
    if configuration.settings.output == "json":
        console.write_json(document)
    else:
        console.write_text("".join(f"{line}\n" for line in yaml_lines(document)))
