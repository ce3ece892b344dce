"""`noetl executions prune`."""

import click

from noetl.cli.command.executions import execution_options
from noetl.cli.pruning import prune_executions
from noetl.cli.timestamps import parse_time


@click.command("prune")
@click.option(
    "--before",
    metavar="TIME",
    help="Those that ended before then: 12h, 30d, or a time.  [default: `keep_days` days ago]",
)
@click.option("--dry-run", is_flag=True, help="Say what would be deleted, and delete nothing.")
@execution_options.store_options
def command(*, before: str | None, dry_run: bool, **place: str | None) -> None:
    """Delete executions that ended long ago.

    With their results and logs. What has not ended, or is owned by a process, stays.
    """
    configuration = execution_options.read_configuration(**place)
    prune_executions(
        configuration, before=parse_time(before, "--before") if before is not None else None, dry=dry_run
    )
