"""`noetl executions cancel`."""

import click

from noetl.cli import options as shared
from noetl.cli.command.executions import execution_options
from noetl.cli.command.executions.send_command import ask
from noetl.cli.report.follow_up import who
from noetl.kernel.net.commands import Cancel


@click.command("cancel")
@execution_options.execution
@click.option(
    "--reason",
    type=shared.Text(empty=True),
    default="",
    metavar="TEXT",
    help="Why, for those who look at it later.",
)
@execution_options.place
def command(*, name: str, reason: str, **place: str | None) -> int:
    """Stop an execution for good, and all that it started.

    Tasks that run are interrupted. It cannot be resumed; `fork` can go on from any of its events.
    """
    return ask(execution_options.configured(**place), name, Cancel(who(), reason), "cancel requested")
