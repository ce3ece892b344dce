"""`noetl executions cancel`."""

import click

from noetl.cli import option as shared
from noetl.cli.execution.place import who
from noetl.cli.executions import option
from noetl.cli.executions.asking import ask
from noetl.kernel.net.commands import Cancel


@click.command("cancel")
@option.execution
@click.option(
    "--reason",
    type=shared.Text(empty=True),
    default="",
    metavar="TEXT",
    help="Why, for those who look at it later.",
)
@option.place
def command(*, name: str, reason: str, **place: str | None) -> int:
    """Stop an execution for good, and all that it started.

    Tasks that run are interrupted. It cannot be resumed; `fork` can go on from any of its events.
    """
    return ask(option.configured(**place), name, Cancel(who(), reason), "cancel requested")
