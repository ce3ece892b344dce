"""`noetl executions redrive`."""

from typing import Literal

import click

from noetl.cli import console, file_access, options
from noetl.cli.command.executions.send_command import control_execution, is_owned, reopen_elsewhere
from noetl.cli.options import current_user
from noetl.cli.report.event_line import redriven_text
from noetl.engine.remote_control import RemoteControl
from noetl.events.bodies import IterationsRedriven
from noetl.kernel.net.commands import Redrive

_DONE = "failed iterations run again"


@click.command("redrive")
@options.execution
@click.option(
    "--step",
    type=options.TextArgument(),
    metavar="STEP",
    help="Only the loop at this step.  [default: all that have ended with failed iterations]",
)
@options.other_playbook
@options.other_version
@options.dialect
@options.dry_run
@options.no_run
@options.run_options
def command(
    *,
    name: str,
    step: str | None,
    playbook: str | None,
    version: int | None,
    dialect: str | None,
    dry_run: bool,
    no_run: bool,
    run_as: options.RunOptions,
) -> int:
    """Run the failed iterations of a loop again that has ended.

    For loops with `failure: {mode: best_effort}`. Each goes on at the task that failed; reducers add what
    these iterations give; then the end of the loop is routed again, and the steps behind it run once more. It
    says which. In another playbook, the loop and the tasks before the failed one must be the same.
    """
    options.require_one_document(playbook, version)
    source = file_access.read_playbook_source(playbook, dialect)
    step = step or ""
    configuration = run_as.configuration
    if dry_run:
        from noetl.cli.command.executions.preview import print_redrive_preview

        return print_redrive_preview(configuration, name, step, source, version)
    if options.asks_server(configuration):
        from noetl.cli.server_executions import document_fields, operate_remote

        return operate_remote(
            configuration,
            name,
            _DONE,
            lambda client, target: client.redrive(target, step, version=version, **document_fields(source)),
        )
    from noetl.cli.command.run.foreground import read_runnable
    from noetl.cli.command.run.foreground_requests import RedriveRequest

    request = RedriveRequest(name=name, step=step, by=current_user(), source=source, version=version)
    if source is None and version is None and is_owned(configuration, name):
        return reopen_elsewhere(configuration, name, Redrive(step, request.by), _DONE)
    if no_run:
        repaired = read_runnable(request, configuration)

        async def record(control: RemoteControl, execution_id: str) -> Literal["done"]:
            document = repaired if version is None else await control.read_version(execution_id, version)
            events = await control.redrive_here(execution_id, step=step, by=request.by, repaired=document)
            for event in events:
                if isinstance(event.body, IterationsRedriven):
                    console.say(redriven_text(event.body))
            return "done"

        return control_execution(configuration, name, _DONE, record)
    from noetl.cli.command.run.execute import execute

    return execute(request, run_as)
