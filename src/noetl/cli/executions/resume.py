"""`noetl executions resume`."""

from functools import partial

import click

from noetl.cli.execution.place import who
from noetl.cli.executions import option
from noetl.cli.executions.asking import ask
from noetl.cli.executions.owner import owner_of
from noetl.cli.store import consult
from noetl.kernel.net.commands import Resume
from noetl.ports.store import Store
from noetl.server.records import find_execution
from noetl.stores.home import Home


@click.command("resume")
@option.execution
@option.no_run
@option.running
def command(*, name: str, no_run: bool, here: option.Here) -> int:
    """Go on with an execution that was paused or interrupted.

    Here, until its end, unless a process runs it already: then that one goes on.
    """
    if no_run or consult(here.configuration, partial(_is_owned, name)):
        return ask(here.configuration, name, Resume(who()), "resumed")
    from noetl.cli.execution.foreground import Resume as Order

    return here.go(Order(name))


async def _is_owned(name: str, home: Home, store: Store) -> bool:
    return await owner_of(home, store, await find_execution(store, name)) is not None
