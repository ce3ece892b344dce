"""`noetl executions verify`."""

import click
import msgspec

from noetl.cli import console, options
from noetl.cli.format import pluralize, yaml_lines
from noetl.cli.store_access import with_store
from noetl.engine.history.read import read_history
from noetl.engine.history.verify_history import verify_history
from noetl.home import result_store_of
from noetl.kernel.verify.verification import Difference, Verification
from noetl.ports.store import Store
from noetl.stores.home_folder import Home


@click.command("verify")
@options.execution
@options.tools
@options.store_options
def command(*, name: str, **store_flags: str | None) -> int:
    """Decide an execution again and compare.

    Everything that was decided (admission, arcs, arguments, policies) is decided once more on the state
    before it. Exits with 1 at a difference.
    """
    configuration = options.read_configuration(**store_flags)

    async def work(home: Home, store: Store) -> Verification:
        history = await read_history(store, name, configuration.settings.allow_kinds)
        return await verify_history(history, result_store_of(configuration, home, store))

    verification = with_store(configuration, work)
    ok = not verification.differences
    if configuration.settings.output == "json":
        console.write_json({"ok": ok, **msgspec.to_builtins(verification)})
    else:
        _print(verification)
    return 0 if ok else 1


def _print(verification: Verification) -> None:
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
