"""`noetl executions diff`."""

import click
import msgspec

from noetl.cli import console, options
from noetl.cli.inspection import inspect_two
from noetl.cli.report.diff_text import diff_lines


@click.command("diff")
@click.argument("first", type=options.TextArgument(), metavar="A")
@click.argument("second", type=options.TextArgument(), metavar="B")
@options.tools
@options.store_or_server_options
def command(*, first: str, second: str, **store_flags: str | None) -> None:
    """Compare two executions from their first difference on.

    Times, ids and who did it make no difference. Then the steps, guards, values and durations of both.
    """
    configuration = options.read_configuration(**store_flags)
    diff = inspect_two(configuration, (first, second), lambda inspector, a, b: inspector.diff(a, b))
    if configuration.settings.output == "json":
        console.write_json(msgspec.to_builtins(diff))
    else:
        console.write_text("".join(f"{line}\n" for line in diff_lines(diff)))
