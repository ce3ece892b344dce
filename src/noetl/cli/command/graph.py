"""`noetl graph`."""

import os
import sys

import click

from noetl.cli import option, source, stream
from noetl.cli.failure import Failure, invalid
from noetl.cli.target import write_file
from noetl.settings import read

FORMATS = ("svg", "mermaid", "dot", "png")
"""Those of `noetl.graph`, here for `--help` and completion, which shall not import it."""

BINARY = "png"


@click.command()
@option.file
@click.option(
    "--format", "format_", type=click.Choice(FORMATS), help="[default: what OUT ends with, else svg]"
)
@option.out
@option.dialect
@option.allow_kind
@option.output
def graph(
    *,
    file: str,
    format_: str | None,
    out: str | None,
    dialect: str | None,
    allow_kinds: tuple[str, ...],
    output: str | None,
) -> None:
    """Draw a playbook as a picture.

    FILE is a playbook, or `-` for standard input. Steps are boxes, arcs are arrows with their
    conditions; the picture goes to standard output unless `-f` names a file.
    """
    settings = read({"output": output, "allow_kinds": allow_kinds}).settings
    chosen = format_ or _format_of(out)
    if chosen == BINARY and out is None and (settings.output == "json" or sys.stdout.isatty()):
        where = "JSON" if settings.output == "json" else "a terminal"
        raise Failure(
            "binary", f"{where} cannot hold a {BINARY} picture", hint=f"-f picture.{BINARY} writes a file"
        )
    from noetl.graph import GraphError, draw
    from noetl.loading import examine

    name, text = source.read(file)
    examined = examine(text, name, dialect=dialect, allow_kinds=settings.allow_kinds)
    if examined.playbook is None:
        raise invalid(examined.problems, text)
    try:
        picture = draw(examined.playbook, chosen)
    except GraphError as error:
        raise Failure("graph", str(error), hint=getattr(error, "hint", ""), exit_code=3) from None
    if out is not None:
        write_file(out, picture)
    if settings.output == "json":
        place = {"content": picture.decode()} if out is None else {"file": out}
        stream.write_json({"format": chosen, **place})
    elif out is None:
        stream.write(picture)
    else:
        stream.say(f"wrote {stream.visible(out)}")


def _format_of(out: str | None) -> str:
    """The format that a file's name asks for."""
    if out is None:
        return "svg"
    suffix = os.path.splitext(out)[1].lstrip(".").lower()
    named = {"mmd": "mermaid", "gv": "dot"}.get(suffix, suffix)
    if named not in FORMATS:
        hint = f"--format is one of {', '.join(FORMATS)}"
        raise Failure("format", f"{out}: the name does not tell the format", hint=hint)
    return named
