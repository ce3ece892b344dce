"""`noetl executions signal`."""

import click

from noetl.cli import option as shared
from noetl.cli.execution.inputs import value_of
from noetl.cli.execution.place import who
from noetl.cli.executions import option
from noetl.cli.executions.asking import ask
from noetl.cli.failure import Failure
from noetl.kernel.net.commands import Signal
from noetl.model.normal import NotJson, normalise


@click.command("signal")
@option.execution
@click.argument("signal", type=shared.Text(), metavar="SIGNAL")
@click.argument("payload", required=False)
@option.place
def command(*, name: str, signal: str, payload: str | None, **place: str | None) -> int:
    """Send a signal to an execution.

    PAYLOAD is JSON, else text, and `true` if there is none. The oldest task that waits for SIGNAL gets
    it; sent before any waits, it is kept. `ctx.signals.SIGNAL` holds the last one.
    """
    try:
        value = True if payload is None else normalise(value_of(payload))
    except NotJson as error:
        raise Failure("argument", f"PAYLOAD: {error}") from None
    return ask(option.configured(**place), name, Signal(signal, value, who()), f"signal {signal} given")
