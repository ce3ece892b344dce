"""`noetl executions eval`."""

import click
import msgspec

from noetl.cli import console, options
from noetl.cli.format import yaml_lines
from noetl.cli.inspection import inspect_execution


@click.command("eval")
@options.execution
@click.argument("expression", type=options.TextArgument(), metavar="EXPR")
@options.at_event
@click.option(
    "--step", type=options.TextArgument(), metavar="STEP", help="As the last run of this step sees it."
)
@click.option(
    "--iteration",
    type=click.IntRange(0),
    metavar="N",
    help="As this open iteration of the loop at --step sees it.  [default: the first]",
)
@options.tools
@options.store_or_server_options
def command(
    *,
    name: str,
    expression: str,
    at: int | None,
    step: str | None,
    iteration: int | None,
    **store_flags: str | None,
) -> None:
    """Evaluate an expression on the state of an execution as it was.

    EXPR may stand with or without its braces. Secrets are masked, and `keychain` cannot be read.
    """
    if iteration is not None and step is None:
        raise click.UsageError("--iteration is one of a --step")
    configuration = options.read_configuration(**store_flags)
    answer = inspect_execution(
        configuration,
        name,
        lambda inspector, target: inspector.evaluate(
            target, expression, at=at or 0, step=step or "", iteration=iteration
        ),
    )
    if configuration.settings.output == "json":
        console.write_json(msgspec.to_builtins(answer))
        return
    console.write_text("".join(f"{line}\n" for line in yaml_lines(answer.value)))
    if answer.cut:
        console.say("the value is large and was cut")
