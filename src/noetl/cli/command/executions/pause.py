"""`noetl executions pause`."""

import click

from noetl.cli.command.executions import execution_options
from noetl.cli.command.executions.send_command import send_command
from noetl.cli.report.follow_up import current_user
from noetl.kernel.net.commands import Pause


@click.command("pause")
@execution_options.execution
@execution_options.store_options
def command(*, name: str, **place: str | None) -> int:
    """Hold an execution: nothing new begins until `resume`.

    Tasks that run end first; what they gave is recorded.
    """
    return send_command(execution_options.read_configuration(**place), name, Pause(current_user()), "paused")
