"""`noetl executions explain`."""

import click
import msgspec

from noetl.cli import console, options
from noetl.cli.inspection import inspect_execution
from noetl.cli.report.step_explanation import step_explanation_lines


@click.command("explain")
@options.execution
@click.argument("step", type=options.TextArgument(), metavar="STEP")
@options.at_event
@options.tools
@options.store_or_server_options
def command(*, name: str, step: str, at: int | None, **store_flags: str | None) -> None:
    """Say why a step of an execution ran, runs, waits, or was not reached.

    The arcs that led to it, or where the way to it ended: each guard with the values that it read.
    """
    configuration = options.read_configuration(**store_flags)
    explanation = inspect_execution(
        configuration, name, lambda inspector, target: inspector.step_explanation(target, step, at=at or 0)
    )
    if configuration.settings.output == "json":
        console.write_json(msgspec.to_builtins(explanation))
    else:
        console.write_text("".join(f"{line}\n" for line in step_explanation_lines(explanation)))
