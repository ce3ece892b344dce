"""`noetl executions fork`."""

import os

import click

from noetl.cli import option as shared
from noetl.cli import source, stream
from noetl.cli.execution.argument import text_of
from noetl.cli.execution.inputs import mapping_of, with_sets
from noetl.cli.execution.place import Again, who
from noetl.cli.executions import option
from noetl.server.stored import Source


@click.command("fork")
@option.execution
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
@option.no_run
@option.running
def command(
    *,
    name: str,
    at: int,
    sets: tuple[str, ...],
    ctx: str | None,
    playbook: str | None,
    dialect: str | None,
    no_run: bool,
    here: option.Here,
) -> int:
    """Run a copy of an execution from one of its events on.

    The original is left alone. With another playbook, the steps that ran so far must be in it under the
    same names.
    """
    from noetl.cli.execution.foreground import Fork, record_fork

    order = Fork(
        name=name,
        at=at,
        source=_source(playbook, dialect),
        workload=with_sets({}, sets),
        ctx={} if ctx is None else mapping_of(text_of(ctx, "--ctx"), "--ctx"),
        by=who(),
    )
    if not no_run:
        return here.go(order)
    execution_id = record_fork(order, here.configuration)
    if here.configuration.settings.output == "json":
        stream.write_json({"execution_id": execution_id, "status": "running", "recorded": True})
    else:
        resume = Again(here.configuration).resume(execution_id)
        stream.say(f"{execution_id}: recorded; this runs it: {resume}")
    return 0


def _source(playbook: str | None, dialect: str | None) -> Source | None:
    if playbook is None:
        if dialect is not None:
            raise click.UsageError("--dialect says how --playbook is read, which is missing")
        return None
    name, text = source.read(playbook)
    return Source(text, name, "" if playbook == source.STDIN else os.path.abspath(playbook), dialect)
