"""`noetl executions signal`."""

import click

from noetl.cli import options as shared
from noetl.cli.arguments import value_of
from noetl.cli.command.executions import execution_options
from noetl.cli.command.executions.send_command import ask
from noetl.cli.command_failure import Failure
from noetl.cli.report.follow_up import who
from noetl.kernel.net.commands import Signal
from noetl.model.normalisation import NotJson, normalise


@click.command("signal")
@execution_options.execution
@click.argument("signal", type=shared.Text(), metavar="SIGNAL")
@click.argument("payload", required=False)
@execution_options.place
def command(*, name: str, signal: str, payload: str | None, **place: str | None) -> int:
    """Send a signal to an execution.

    PAYLOAD is JSON, else text, and `true` if there is none. The oldest task that waits for SIGNAL gets
    it; sent before any waits, it is kept. `ctx.signals.SIGNAL` holds the last one.
    """
    try:
        value = True if payload is None else normalise(value_of(payload))
    except NotJson as error:
        raise Failure("argument", f"PAYLOAD: {error}") from None
    return ask(
        execution_options.configured(**place), name, Signal(signal, value, who()), f"signal {signal} given"
    )
