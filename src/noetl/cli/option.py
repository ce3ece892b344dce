"""The options and arguments that several commands share."""

from typing import get_args

import click

from noetl.settings import Output

output = click.option(
    "-o",
    "--output",
    type=click.Choice(get_args(Output)),
    help="Text for people, or one JSON document for programs.  [default: text]",
)
dialect = click.option(
    "--dialect",
    type=click.Choice(["draft"]),
    help="Read the document as this dialect, which nothing in it tells from the canonical form.",
)
allow_kind = click.option(
    "--allow-kind",
    "allow_kinds",
    multiple=True,
    metavar="NAME",
    help="Accept tasks of this kind although no tool here knows it. May be repeated.",
)
file = click.argument("file", type=click.Path())
out = click.option(
    "-f",
    "--file",
    "out",
    type=click.Path(),
    metavar="OUT",
    help="Write to this file, not to standard output.",
)
