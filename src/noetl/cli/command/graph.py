"""`noetl graph`."""

import os
import sys
from typing import TYPE_CHECKING

import click

from noetl.cli import console, input_files, options
from noetl.cli.command_failure import CommandFailure, invalid_playbook
from noetl.cli.output_files import write_file
from noetl.settings import Configuration, Settings, read_settings

if TYPE_CHECKING:
    from noetl.dsl.document.playbook import Playbook
    from noetl.kernel.state.execution_state import ExecutionState
    from noetl.ports.store import Store

FORMATS = ("svg", "mermaid", "dot", "png")
"""Those of `noetl.graph`, here for `--help` and completion, which shall not import it."""

BINARY = "png"


@click.command()
@click.argument("file", required=False, type=options.FileName())
@click.option(
    "--format", "format_", type=click.Choice(FORMATS), help="[default: what OUT ends with, else svg]"
)
@options.out
@click.option(
    "--execution",
    metavar="ID",
    help="Colour the steps by what happened in this execution; FILE may be left out.",
)
@options.dialect
@options.allow_kind
@options.tools
@options.home
@options.store
@options.output
def graph(
    *,
    file: str | None,
    format_: str | None,
    out: str | None,
    execution: str | None,
    dialect: str | None,
    **flags: object,
) -> None:
    """Draw a playbook as a picture.

    FILE is a playbook, or `-` for standard input. Steps are boxes, arcs are arrows with their
    conditions; the picture goes to standard output unless `-f` names a file.
    """
    configuration = read_settings(flags)
    settings = configuration.settings
    picture_format = format_ or _format_of(out)
    if picture_format == BINARY and out is None and (settings.output == "json" or sys.stdout.isatty()):
        where = "JSON" if settings.output == "json" else "a terminal"
        raise CommandFailure(
            "binary", f"{where} cannot hold a {BINARY} picture", hint=f"-f picture.{BINARY} writes a file"
        )
    from noetl.graph import GraphError, draw

    playbook, states = _read_subject(file, execution, dialect, configuration)
    try:
        picture = draw(playbook, picture_format, states=states)
    except GraphError as error:
        raise CommandFailure("graph", str(error), hint=getattr(error, "hint", ""), exit_code=3) from None
    if out is not None:
        write_file(out, picture)
    if settings.output == "json":
        document = {"content": picture.decode()} if out is None else {"file": out}
        console.write_json({"format": picture_format, **document})
    elif out is None:
        console.write_bytes(picture)
    else:
        console.say(f"wrote {console.visible(out)}")


def _read_subject(
    file: str | None, execution: str | None, dialect: str | None, configuration: Configuration
) -> "tuple[Playbook, dict[str, str] | None]":
    """What is drawn, and the status of each step if it is about an execution."""
    written = _read_playbook(file, dialect, configuration.settings) if file is not None else None
    if execution is None:
        if written is None:
            raise click.UsageError("Missing argument 'FILE'.", click.get_current_context())
        return written, None
    state = _read_execution(configuration, execution)
    states: dict[str, str] = {name: summary.status for name, summary in state.summaries.items()}
    return written or state.plan.playbook, states


def _read_playbook(file: str, dialect: str | None, settings: Settings) -> "Playbook":
    from noetl.loader import examine

    name, text = input_files.read_input(file)
    examined = examine(text, name, dialect=dialect, allow_kinds=settings.allow_kinds)
    if examined.playbook is None:
        raise invalid_playbook(examined.problems, text)
    return examined.playbook


def _read_execution(configuration: Configuration, execution: str) -> "ExecutionState":
    from noetl.cli.store_access import with_store
    from noetl.engine.history.lookup import find_execution
    from noetl.engine.history.read import read_plan, read_state

    async def work(_home: object, store: "Store") -> "ExecutionState":
        record = await find_execution(store, execution)
        plan = await read_plan(store, record, configuration.settings.allow_kinds)
        return await read_state(store, plan, record.execution_id)

    return with_store(configuration, work)


def _format_of(out: str | None) -> str:
    """The format that a file's name asks for."""
    if out is None:
        return "svg"
    suffix = os.path.splitext(out)[1].lstrip(".").lower()
    named = {"mmd": "mermaid", "gv": "dot"}.get(suffix, suffix)
    if named not in FORMATS:
        hint = f"--format is one of {', '.join(FORMATS)}"
        raise CommandFailure("format", f"{out}: the name does not tell the format", hint=hint)
    return named
