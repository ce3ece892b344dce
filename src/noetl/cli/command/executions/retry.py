"""`noetl executions retry`."""

from typing import Literal

import click

from noetl.cli.command.executions import execution_options
from noetl.cli.command.executions.send_command import control_execution
from noetl.cli.report.follow_up import current_user
from noetl.engine.remote_control import RemoteControl
from noetl.kernel.net.commands import Retry


@click.command("retry")
@execution_options.execution
@execution_options.no_run
@execution_options.run_options
def command(*, name: str, no_run: bool, here: execution_options.RunOptions) -> int:
    """Go on with a failed execution at what failed.

    What succeeded is kept; the failed task or iteration has all its attempts again.
    """
    if no_run:

        async def record(desk: RemoteControl, found: str) -> Literal["done"]:
            await desk.apply_here(found, Retry(current_user()))
            return "done"

        return control_execution(here.configuration, name, "opened again", record)
    from noetl.cli.command.run.foreground import RetryRequest as Order

    return here.execute(Order(name, current_user()))
