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
@option.place
def command(
    *,
    name: str,
    no_run: bool,
    catalogs: tuple[str, ...],
    slots: int | None,
    quiet: bool,
    verbose: bool,
    **place: str | None,
) -> int:
    """Go on with a failed execution at what failed.

    What succeeded is kept; the failed task or iteration has all its attempts again.
    """
    configuration = option.configured_to_run(slots, **place)
    if no_run:

        async def record(desk: Desk, found: str) -> Literal["done"]:
            await desk.record(found, Retry(who()))
            return "done"

        return tell(configuration, name, "opened again", record)
    from noetl.cli.execution.foreground import Retry as Order
    from noetl.cli.execution.going import go

    return go(Order(name, who()), configuration, catalogs, quiet=quiet, verbose=verbose)
