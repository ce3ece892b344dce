"""`noetl executions resume`."""

from functools import partial

import click

from noetl.cli.command.executions import execution_options
from noetl.cli.command.executions.send_command import ask
from noetl.cli.execution_owner import owner_of
from noetl.cli.report.follow_up import who
from noetl.cli.store_access import consult
from noetl.engine.history.lookup import find_execution
from noetl.kernel.net.commands import Resume
from noetl.ports.store import Store
from noetl.stores.home_folder import Home


@click.command("resume")
@execution_options.execution
@execution_options.no_run
@execution_options.running
def command(*, name: str, no_run: bool, here: execution_options.Here) -> int:
    """Go on with an execution that was paused or interrupted.

    Here, until its end, unless a process runs it already: then that one goes on.
    """
    if no_run or consult(here.configuration, partial(_is_owned, name)):
        return ask(here.configuration, name, Resume(who()), "resumed")
    from noetl.cli.command.run.foreground import Resume as Order

    return here.go(Order(name))


async def _is_owned(name: str, home: Home, store: Store) -> bool:
    return await owner_of(home, store, await find_execution(store, name)) is not None
