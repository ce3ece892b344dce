"""`noetl executions complete`."""

import click

from noetl.cli import options
from noetl.cli.arguments import parse_value
from noetl.cli.command.executions.send_command import send_command
from noetl.cli.command_failure import CommandFailure
from noetl.cli.options import current_user
from noetl.kernel.net.commands import CompleteStep
from noetl.model.normalisation import NotJson, normalise


@click.command("complete")
@options.execution
@click.argument("step", type=options.TextArgument(), metavar="STEP")
@click.option("--result", metavar="JSON", help="What the step gives: JSON, else text; null if there is none.")
@options.tools
@options.store_or_server_options
def command(*, name: str, step: str, result: str | None, **store_flags: str | None) -> int:
    """End what is stuck at a step, or failed there, as done.

    Its arcs are followed with this result. Other steps that failed stay so.
    """
    try:
        value = None if result is None else normalise(parse_value(result))
    except NotJson as error:
        raise CommandFailure("argument", f"--result: {error}") from None
    configuration = options.read_configuration(**store_flags)
    if options.asks_server(configuration):
        from noetl.cli.server_executions import operate_remote

        return operate_remote(
            configuration,
            name,
            f"{step} completed by hand",
            lambda client, target: client.complete(target, step, value),
        )
    return send_command(
        configuration, name, CompleteStep(step, value, current_user()), f"{step} completed by hand"
    )
