"""`noetl executions cancel`."""

import click

from noetl.cli import options as shared
from noetl.cli.command.executions import execution_options
from noetl.cli.command.executions.send_command import send_command
from noetl.cli.report.follow_up import current_user
from noetl.kernel.net.commands import Cancel


@click.command("cancel")
@execution_options.execution
@click.option(
    "--reason",
    type=shared.TextArgument(empty=True),
    default="",
    metavar="TEXT",
    help="Why, for those who look at it later.",
)
@execution_options.store_options
def command(*, name: str, reason: str, **place: str | None) -> int:
    """Stop an execution for good, and all that it started.

    Tasks that run are interrupted. It cannot be resumed; `fork` can go on from any of its events.
    """
    return send_command(
        execution_options.read_configuration(**place),
        name,
        Cancel(current_user(), reason),
        "cancel requested",
    )
