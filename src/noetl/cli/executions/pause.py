"""`noetl executions pause`."""

import click

from noetl.cli.execution.place import who
from noetl.cli.executions import option
from noetl.cli.executions.asking import ask
from noetl.kernel.net.commands import Pause


@click.command("pause")
@option.execution
@option.place
def command(*, name: str, **place: str | None) -> int:
    """Hold an execution: nothing new begins until `resume`.

    Tasks that run end first; what they gave is recorded.
    """
    return ask(option.configured(**place), name, Pause(who()), "paused")
