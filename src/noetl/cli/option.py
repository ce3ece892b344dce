"""The options and arguments that several commands share."""

import os
from typing import get_args

import click

from noetl.settings import Output


class FileName(click.Path):
    """The name of a file that may or may not be there."""

    def convert(
        self, value: str | os.PathLike[str], param: click.Parameter | None, ctx: click.Context | None
    ) -> str | bytes | os.PathLike[str]:
        if not os.fspath(value):
            self.fail("the name is empty", param, ctx)
        return super().convert(value, param, ctx)


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
file = click.argument("file", type=FileName())
out = click.option(
    "-f",
    "--file",
    "out",
    type=FileName(),
    metavar="OUT",
    help="Write to this file, not to standard output.",
)
home = click.option(
    "--home",
    type=FileName(),
    metavar="DIR",
    help="The folder of the embedded store.  [default: the nearest .noetl, here or above]",
)
store = click.option(
    "--store", metavar="URL", help="The store, for example sqlite:///runs.db.  [default: the one in HOME]"
)
