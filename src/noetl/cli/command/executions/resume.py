"""`noetl executions resume`."""

from functools import partial

import click

from noetl.cli import options
from noetl.cli.command.executions.send_command import send_command
from noetl.cli.command_failure import CommandFailure
from noetl.cli.options import current_user
from noetl.cli.report.follow_up import FollowUp
from noetl.cli.store_access import find_owner, with_store
from noetl.engine.history.lookup import find_execution, require_open
from noetl.kernel.errors import Refused
from noetl.kernel.net.commands import Resume
from noetl.ports.store import Store
from noetl.settings import Configuration
from noetl.stores.home_folder import Home


@click.command("resume")
@options.execution
@options.no_run
@options.run_options
def command(*, name: str, no_run: bool, run_as: options.RunOptions) -> int:
    """Go on with an execution that was paused or interrupted.

    Here, until its end, unless a process runs it already: then that one goes on.
    """
    if options.asks_server(run_as.configuration):
        from noetl.cli.server_executions import operate_remote

        return operate_remote(
            run_as.configuration, name, "resumed", lambda client, target: client.resume(target)
        )
    if no_run or with_store(run_as.configuration, partial(_is_owned, run_as.configuration, name)):
        return send_command(run_as.configuration, name, Resume(current_user()), "resumed")
    from noetl.cli.command.run.execute import execute
    from noetl.cli.command.run.foreground_requests import ResumeRequest

    return execute(ResumeRequest(name), run_as)


async def _is_owned(configuration: Configuration, name: str, home: Home, store: Store) -> bool:
    """Whether a process runs it. Raises CommandFailure if there is nothing to go on with."""
    record = await find_execution(store, name)
    try:
        await require_open(store, record)
    except Refused as refusal:
        verb = "retry" if record.status == "failed" else "show"
        hint = FollowUp(configuration).executions_command(verb, record.execution_id)
        raise CommandFailure("refused", str(refusal), hint=hint) from None
    return await find_owner(home, store, record) is not None
