"""`noetl executions cancel`."""

import click

from noetl.cli import options
from noetl.cli.command.executions.send_command import send_command
from noetl.cli.options import current_user
from noetl.kernel.net.commands import Cancel


@click.command("cancel")
@options.execution
@click.option(
    "--reason",
    type=options.TextArgument(empty=True),
    default="",
    metavar="TEXT",
    help="Why, for those who look at it later.",
)
@options.tools
@options.store_or_server_options
def command(*, name: str, reason: str, **store_flags: str | None) -> int:
    """Stop an execution for good, and all that it started.

    Tasks that run are interrupted. It cannot be resumed; `fork` can go on from any of its events.
    """
    configuration = options.read_configuration(**store_flags)
    if options.asks_server(configuration):
        from noetl.cli.server_executions import operate_remote

        return operate_remote(
            configuration, name, "cancel requested", lambda client, target: client.cancel(target, reason)
        )
    return send_command(
        configuration,
        name,
        Cancel(current_user(), reason),
        "cancel requested",
    )
