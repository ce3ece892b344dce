"""`noetl executions fork`."""

import os

import click

from noetl.cli import console, input_files
from noetl.cli import options as shared
from noetl.cli.arguments import apply_sets, parse_mapping
from noetl.cli.command.executions import execution_options
from noetl.cli.execution.argument import read_argument
from noetl.cli.report.follow_up import FollowUp, current_user
from noetl.engine.catalog.playbook_record import PlaybookSource


@click.command("fork")
@execution_options.execution
@click.option(
    "--at",
    type=click.IntRange(1),
    metavar="SEQ",
    required=True,
    help="The last event that is copied; rounded up to where the history may be cut.",
)
@shared.sets
@click.option("--ctx", metavar="JSON|@FILE", help="Values of ctx from there on: a JSON mapping.")
@click.option("--playbook", type=shared.FileName(), metavar="FILE", help="Go on with this playbook.")
@shared.dialect
@execution_options.no_run
@execution_options.run_options
def command(
    *,
    name: str,
    at: int,
    sets: tuple[str, ...],
    ctx: str | None,
    playbook: str | None,
    dialect: str | None,
    no_run: bool,
    here: execution_options.RunOptions,
) -> int:
    """Run a copy of an execution from one of its events on.

    The original is left alone. With another playbook, the steps that ran so far must be in it under the
    same names.
    """
    from noetl.cli.command.run.foreground import ForkRequest, record_fork

    order = ForkRequest(
        name=name,
        at=at,
        source=_source(playbook, dialect),
        workload=apply_sets({}, sets),
        ctx={} if ctx is None else parse_mapping(read_argument(ctx, "--ctx"), "--ctx"),
        by=current_user(),
    )
    if not no_run:
        return here.execute(order)
    execution_id = record_fork(order, here.configuration)
    if here.configuration.settings.output == "json":
        console.write_json({"execution_id": execution_id, "status": "running", "recorded": True})
    else:
        resume = FollowUp(here.configuration).resume_command(execution_id)
        console.say(f"{execution_id}: recorded; this runs it: {resume}")
    return 0


def _source(playbook: str | None, dialect: str | None) -> PlaybookSource | None:
    if playbook is None:
        if dialect is not None:
            raise click.UsageError("--dialect says how --playbook is read, which is missing")
        return None
    name, text = input_files.read_input(playbook)
    return PlaybookSource(
        text, name, "" if playbook == input_files.STDIN else os.path.abspath(playbook), dialect
    )
