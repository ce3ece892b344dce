"""`noetl executions pause`."""

import click

from noetl.cli.command.executions import execution_options
from noetl.cli.command.executions.send_command import ask
from noetl.cli.report.follow_up import who
from noetl.kernel.net.commands import Pause


@click.command("pause")
@execution_options.execution
@execution_options.place
def command(*, name: str, **place: str | None) -> int:
    """Hold an execution: nothing new begins until `resume`.

    Tasks that run end first; what they gave is recorded.
    """
    return ask(execution_options.configured(**place), name, Pause(who()), "paused")
