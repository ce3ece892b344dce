"""`noetl executions pause`."""

import click

from noetl.cli import options
from noetl.cli.command.executions.send_command import send_command
from noetl.cli.options import current_user
from noetl.kernel.net.commands import Pause


@click.command("pause")
@options.execution
@options.tools
@options.store_or_server_options
def command(*, name: str, **store_flags: str | None) -> int:
    """Hold an execution: nothing new begins until `resume`.

    Tasks that run end first; what they gave is recorded.
    """
    configuration = options.read_configuration(**store_flags)
    if options.asks_server(configuration):
        from noetl.cli.server_executions import operate_remote

        return operate_remote(configuration, name, "paused", lambda client, target: client.pause(target))
    return send_command(configuration, name, Pause(current_user()), "paused")
