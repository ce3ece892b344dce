"""`noetl executions verify`."""

import click
import msgspec

from noetl.cli import console, options
from noetl.cli.format import pluralize, yaml_lines
from noetl.cli.inspection import inspect_execution
from noetl.kernel.verify.difference import Difference
from noetl.ports.execution_views import VerificationAnswer


@click.command("verify")
@options.execution
@options.tools
@options.store_or_server_options
def command(*, name: str, **store_flags: str | None) -> int:
    """Decide an execution again and compare.

    Everything that was decided (admission, arcs, arguments, policies) is decided once more on the state
    before it. Exits with 1 at a difference.
    """
    configuration = options.read_configuration(**store_flags)

    verification = inspect_execution(configuration, name, lambda inspector, target: inspector.verify(target))
    if configuration.settings.output == "json":
        console.write_json(msgspec.to_builtins(verification))
    else:
        _print(verification)
    return 0 if verification.ok else 1


def _print(verification: VerificationAnswer) -> None:
    for difference in verification.differences:
        console.write_text(_text(difference))
    for note in verification.notes:
        console.say(f"note: {console.visible(note)}")
    verdict = "comes out the same" if not verification.differences else "comes out differently"
    counts = f"{pluralize(verification.events, 'event')}, {verification.verdicts} decided again"
    console.write_text(f"{verification.execution_id} {verdict}: {counts}\n")


def _text(difference: Difference) -> str:
    where = f" of step {console.visible(difference.step)}" if difference.step else ""
    source_line = f" (line {difference.line} of the playbook)" if difference.line else ""
    aspect = f", {difference.what}" if difference.what else ""
    event = f"event {difference.seq}, {difference.event}{aspect}{where}{source_line}"
    lines = [f"{event}: {console.visible(difference.why)}"]
    for name, value in (("recorded", difference.recorded), ("decided now", difference.decided)):
        lines += [f"  {name}:", *yaml_lines(value, "    ")]
    return "".join(f"{line}\n" for line in lines)
