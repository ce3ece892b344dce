"""`noetl executions retry`."""

from typing import Literal

import click

from noetl.cli import console, file_access, options
from noetl.cli.command.executions.execution_filter import (
    operate_on_matching,
    optional_execution,
    require_one_target,
    where_option,
)
from noetl.cli.command.executions.send_command import control_execution, is_owned, reopen_elsewhere
from noetl.cli.options import current_user
from noetl.cli.report.event_line import retried_text
from noetl.engine.remote_control import RemoteControl
from noetl.events.bodies import ExecutionRetried
from noetl.kernel.net.commands import Retry
from noetl.settings import Configuration

_DONE = "opened again"


@click.command("retry")
@optional_execution
@where_option
@options.yes
@options.other_playbook
@options.other_version
@options.dialect
@options.dry_run
@options.no_run
@options.run_options
def command(
    *,
    name: str | None,
    where: str | None,
    yes: bool,
    playbook: str | None,
    version: int | None,
    dialect: str | None,
    dry_run: bool,
    no_run: bool,
    run_as: options.RunOptions,
) -> int:
    """Go on with an execution at what failed, also while other branches of it run.

    What succeeded is kept; the failed task or iteration has all its attempts again, and a failed child goes
    on as well. In another playbook, the steps that have ended and the tasks before the failed one must be
    the same. It says what runs again. With --where all that match are opened again; on the embedded store
    that is only recorded.
    """
    require_one_target(name, where)
    options.require_one_document(playbook, version)
    if name is None or where is not None:
        if playbook is not None or version is not None:
            raise click.UsageError("another playbook is for one execution, and not for those of --where")
        if dry_run:
            raise click.UsageError("--dry-run is for one execution, and not for those of --where")
        return _retry_matching(run_as.configuration, where or "", yes=yes)
    source = file_access.read_playbook_source(playbook, dialect)
    if dry_run:
        from noetl.cli.command.executions.preview import print_retry_preview

        return print_retry_preview(run_as.configuration, name, source, version)
    if options.asks_server(run_as.configuration):
        from noetl.cli.server_executions import document_fields, operate_remote

        return operate_remote(
            run_as.configuration,
            name,
            _DONE,
            lambda client, target: client.retry(target, version=version, **document_fields(source)),
        )
    from noetl.cli.command.run.foreground import read_runnable
    from noetl.cli.command.run.foreground_requests import RetryRequest

    request = RetryRequest(name=name, by=current_user(), source=source, version=version)
    if source is None and version is None and is_owned(run_as.configuration, name):
        return reopen_elsewhere(run_as.configuration, name, Retry(request.by), _DONE)
    if no_run:
        repaired = read_runnable(request, run_as.configuration)

        async def record(control: RemoteControl, execution_id: str) -> Literal["done"]:
            document = repaired if version is None else await control.read_version(execution_id, version)
            for event in await control.retry_here(execution_id, by=request.by, repaired=document):
                if isinstance(event.body, ExecutionRetried):
                    console.say(retried_text(event.body))
            return "done"

        return control_execution(run_as.configuration, name, _DONE, record)
    from noetl.cli.command.run.execute import execute

    return execute(request, run_as)


def _retry_matching(configuration: Configuration, where: str, *, yes: bool) -> int:
    return operate_on_matching(
        configuration,
        "retry",
        where,
        ("failed",),
        lambda control, execution_id: control.retry_here(execution_id, by=current_user(), repaired=None),
        yes=yes,
    )
