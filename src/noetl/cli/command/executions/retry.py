"""`noetl executions retry`."""

from typing import Literal

import click

from noetl.cli import console, options
from noetl.cli.command.executions.send_command import control_execution
from noetl.cli.current_user import current_user
from noetl.cli.report.event_line import retried_text
from noetl.engine.remote_control import RemoteControl
from noetl.events.bodies import ExecutionRetried
from noetl.kernel.net.commands import Retry


@click.command("retry")
@options.execution
@options.no_run
@options.run_options
def command(*, name: str, no_run: bool, run_as: options.RunOptions) -> int:
    """Go on with a failed execution at what failed.

    What succeeded is kept; the failed task or iteration has all its attempts again. It says what runs again.
    """
    if no_run:

        async def record(control: RemoteControl, execution_id: str) -> Literal["done"]:
            for event in await control.apply_here(execution_id, Retry(current_user())):
                if isinstance(event.body, ExecutionRetried):
                    console.say(retried_text(event.body))
            return "done"

        return control_execution(run_as.configuration, name, "opened again", record)
    from noetl.cli.command.run.execute import execute
    from noetl.cli.command.run.foreground import RetryRequest

    return execute(RetryRequest(name, current_user()), run_as)
