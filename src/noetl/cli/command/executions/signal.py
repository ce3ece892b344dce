"""`noetl executions signal`."""

import click

from noetl.cli import options
from noetl.cli.arguments import parse_value
from noetl.cli.command.executions.send_command import send_command
from noetl.cli.command_failure import CommandFailure
from noetl.cli.current_user import current_user
from noetl.kernel.net.commands import Signal
from noetl.model.normalisation import NotJson, normalise


@click.command("signal")
@options.execution
@click.argument("signal", type=options.TextArgument(), metavar="SIGNAL")
@click.argument("payload", required=False)
@options.tools
@options.store_options
def command(*, name: str, signal: str, payload: str | None, **store_flags: str | None) -> int:
    """Send a signal to an execution.

    PAYLOAD is JSON, else text, and `true` if there is none. The oldest task that waits for SIGNAL gets
    it; sent before any waits, it is kept. `ctx.signals.SIGNAL` holds the last one.
    """
    try:
        value = True if payload is None else normalise(parse_value(payload))
    except NotJson as error:
        raise CommandFailure("argument", f"PAYLOAD: {error}") from None
    return send_command(
        options.read_configuration(**store_flags),
        name,
        Signal(signal, value, current_user()),
        f"signal {signal} given",
    )
