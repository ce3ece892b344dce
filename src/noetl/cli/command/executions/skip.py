"""`noetl executions skip`."""

import click

from noetl.cli import options
from noetl.cli.command.executions.send_command import send_command
from noetl.cli.options import current_user
from noetl.kernel.net.commands import SkipStep


@click.command("skip")
@options.execution
@click.argument("step", type=options.TextArgument(), metavar="STEP")
@options.tools
@options.store_or_server_options
def command(*, name: str, step: str, **store_flags: str | None) -> int:
    """End what is stuck at a step, or failed there, without a result.

    Its arcs are followed as if it were done. Other steps that failed stay so.
    """
    configuration = options.read_configuration(**store_flags)
    if options.asks_server(configuration):
        from noetl.cli.server_executions import operate_remote

        return operate_remote(
            configuration, name, f"{step} skipped", lambda client, target: client.skip(target, step)
        )
    return send_command(configuration, name, SkipStep(step, current_user()), f"{step} skipped")
