"""`noetl executions retry`."""

from typing import Literal

import click

from noetl.cli.command.executions import execution_options
from noetl.cli.command.executions.send_command import tell
from noetl.cli.report.follow_up import who
from noetl.engine.remote_control import Desk
from noetl.kernel.net.commands import Retry


@click.command("retry")
@execution_options.execution
@execution_options.no_run
@execution_options.running
def command(*, name: str, no_run: bool, here: execution_options.Here) -> int:
    """Go on with a failed execution at what failed.

    What succeeded is kept; the failed task or iteration has all its attempts again.
    """
    if no_run:

        async def record(desk: Desk, found: str) -> Literal["done"]:
            await desk.record(found, Retry(who()))
            return "done"

        return tell(here.configuration, name, "opened again", record)
    from noetl.cli.command.run.foreground import Retry as Order

    return here.go(Order(name, who()))
