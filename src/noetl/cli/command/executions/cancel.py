"""`noetl executions cancel`."""

import click

from noetl.cli import options
from noetl.cli.command.executions.execution_filter import (
    operate_on_matching,
    optional_execution,
    require_one_target,
    where_option,
)
from noetl.cli.command.executions.send_command import send_command
from noetl.cli.options import current_user
from noetl.kernel.net.commands import Cancel


@click.command("cancel")
@optional_execution
@where_option
@options.yes
@click.option(
    "--reason",
    type=options.TextArgument(empty=True),
    default="",
    metavar="TEXT",
    help="Why, for those who look at it later.",
)
@options.tools
@options.store_or_server_options
def command(*, name: str | None, where: str | None, yes: bool, reason: str, **store_flags: str | None) -> int:
    """Stop an execution for good, and all that it started; or, with --where, all that match.

    Tasks that run are interrupted. It cannot be resumed; `fork` can go on from any of its events.
    """
    require_one_target(name, where)
    configuration = options.read_configuration(**store_flags)
    cancel = Cancel(current_user(), reason)
    if name is None or where is not None:
        return operate_on_matching(
            configuration,
            "cancel",
            where or "",
            ("running", "paused"),
            lambda control, execution_id: control.send(execution_id, cancel),
            yes=yes,
            reason=reason,
        )
    if options.asks_server(configuration):
        from noetl.cli.server_executions import operate_remote

        return operate_remote(
            configuration, name, "cancel requested", lambda client, target: client.cancel(target, reason)
        )
    return send_command(configuration, name, cancel, "cancel requested")
