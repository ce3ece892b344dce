"""`noetl executions retry`."""

from typing import Literal

import click

from noetl.cli.execution.place import who
from noetl.cli.executions import option
from noetl.cli.executions.asking import tell
from noetl.kernel.net.commands import Retry
from noetl.server.asking import Desk


@click.command("retry")
@option.execution
@option.no_run
@option.running
def command(*, name: str, no_run: bool, here: option.Here) -> int:
    """Go on with a failed execution at what failed.

    What succeeded is kept; the failed task or iteration has all its attempts again.
    """
    if no_run:

        async def record(desk: Desk, found: str) -> Literal["done"]:
            await desk.record(found, Retry(who()))
            return "done"

        return tell(here.configuration, name, "opened again", record)
    from noetl.cli.execution.foreground import Retry as Order

    return here.go(Order(name, who()))
