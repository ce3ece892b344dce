"""`noetl executions signal`."""

import click

from noetl.cli import options as shared
from noetl.cli.arguments import parse_value
from noetl.cli.command.executions import execution_options
from noetl.cli.command.executions.send_command import send_command
from noetl.cli.command_failure import CommandFailure
from noetl.cli.report.follow_up import current_user
from noetl.kernel.net.commands import Signal
from noetl.model.normalisation import NotJson, normalise


@click.command("signal")
@execution_options.execution
@click.argument("signal", type=shared.TextArgument(), metavar="SIGNAL")
@click.argument("payload", required=False)
@execution_options.store_options
def command(*, name: str, signal: str, payload: str | None, **place: str | None) -> int:
    """Send a signal to an execution.

    PAYLOAD is JSON, else text, and `true` if there is none. The oldest task that waits for SIGNAL gets
    it; sent before any waits, it is kept. `ctx.signals.SIGNAL` holds the last one.
    """
    try:
        value = True if payload is None else normalise(parse_value(payload))
    except NotJson as error:
        raise CommandFailure("argument", f"PAYLOAD: {error}") from None
    return send_command(
        execution_options.read_configuration(**place),
        name,
        Signal(signal, value, current_user()),
        f"signal {signal} given",
    )
