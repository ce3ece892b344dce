"""`noetl executions retry`."""

from typing import Literal

import click

from noetl.cli import console, file_access, options
from noetl.cli.command.executions.send_command import control_execution
from noetl.cli.options import current_user
from noetl.cli.report.event_line import retried_text
from noetl.engine.remote_control import RemoteControl
from noetl.events.bodies import ExecutionRetried


@click.command("retry")
@options.execution
@options.other_playbook
@options.dialect
@options.no_run
@options.run_options
def command(
    *, name: str, playbook: str | None, dialect: str | None, no_run: bool, run_as: options.RunOptions
) -> int:
    """Go on with a failed execution at what failed.

    What succeeded is kept; the failed task or iteration has all its attempts again, and a failed child goes
    on as well. In another playbook, the steps that have ended and the tasks before the failed one must be
    the same. It says what runs again.
    """
    source = file_access.read_playbook_source(playbook, dialect)
    if options.asks_server(run_as.configuration):
        from noetl.cli.server_executions import document_fields, operate_remote

        return operate_remote(
            run_as.configuration,
            name,
            "opened again",
            lambda client, target: client.retry(target, **document_fields(source)),
        )
    from noetl.cli.command.run.foreground import read_runnable
    from noetl.cli.command.run.foreground_requests import RetryRequest

    request = RetryRequest(name, current_user(), source)
    if no_run:
        repaired = read_runnable(request, run_as.configuration)

        async def record(control: RemoteControl, execution_id: str) -> Literal["done"]:
            for event in await control.retry_here(execution_id, by=request.by, repaired=repaired):
                if isinstance(event.body, ExecutionRetried):
                    console.say(retried_text(event.body))
            return "done"

        return control_execution(run_as.configuration, name, "opened again", record)
    from noetl.cli.command.run.execute import execute

    return execute(request, run_as)
