"""`noetl executions fork`."""

import click

from noetl.cli import console, file_access, options
from noetl.cli.arguments import apply_sets, parse_mapping, read_argument
from noetl.cli.options import current_user
from noetl.cli.report.follow_up import FollowUp


@click.command("fork")
@options.execution
@click.option(
    "--at",
    type=click.IntRange(1),
    metavar="SEQ",
    required=True,
    help="The last event that is copied; rounded up to where the history may be cut.",
)
@options.sets
@click.option("--ctx", metavar="JSON|@FILE", help="Values of ctx from there on: a JSON mapping.")
@options.other_playbook
@options.dialect
@options.dry_run
@options.no_run
@options.run_options
def command(
    *,
    name: str,
    at: int,
    sets: tuple[str, ...],
    ctx: str | None,
    playbook: str | None,
    dialect: str | None,
    dry_run: bool,
    no_run: bool,
    run_as: options.RunOptions,
) -> int:
    """Run a copy of an execution from one of its events on.

    The original is left alone. With another playbook, the steps that ran so far must be in it under the
    same names.
    """
    source = file_access.read_playbook_source(playbook, dialect)
    if dry_run:
        if sets or ctx is not None:
            raise click.UsageError("--dry-run takes no values: what they change shows when it runs")
        from noetl.cli.command.executions.preview import print_fork_preview

        return print_fork_preview(run_as.configuration, name, at, source)
    workload = apply_sets({}, sets)
    ctx_values = {} if ctx is None else parse_mapping(read_argument(ctx, "--ctx"), "--ctx")
    if options.asks_server(run_as.configuration):
        from noetl.cli.server_executions import document_fields, operate_remote

        return operate_remote(
            run_as.configuration,
            name,
            "made",
            lambda client, target: client.fork(
                target, at, workload=workload, ctx=ctx_values, **document_fields(source)
            ),
        )
    from noetl.cli.command.run.foreground import record_fork
    from noetl.cli.command.run.foreground_requests import ForkRequest

    request = ForkRequest(
        name=name,
        at=at,
        source=source,
        workload=workload,
        ctx=ctx_values,
        by=current_user(),
    )
    if not no_run:
        from noetl.cli.command.run.execute import execute

        return execute(request, run_as)
    execution_id = record_fork(request, run_as.configuration)
    if run_as.configuration.settings.output == "json":
        console.write_json({"execution_id": execution_id, "status": "running", "recorded": True})
    else:
        resume = FollowUp(run_as.configuration).resume_command(execution_id)
        console.say(f"{execution_id}: recorded; this runs it: {resume}")
    return 0
