"""The options and arguments that several commands share."""

import os
from typing import Any, get_args

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


class TextArgument(click.ParamType[str]):
    """Words that are kept or looked for: they must be UTF-8, and say something unless they may be empty."""

    name = "text"

    def __init__(self, *, empty: bool = False) -> None:
        self._empty = empty

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        text = str(value)
        try:
            text.encode()
        except UnicodeEncodeError:
            self.fail("it is not UTF-8", param, ctx)
        if not text and not self._empty:
            self.fail("it is empty", param, ctx)
        return text


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
    "--store",
    type=TextArgument(),
    metavar="URL",
    help="The store, for example sqlite:///runs.db.  [default: the one in HOME]",
)
quiet = click.option("-q", "--quiet", is_flag=True, help="Show no progress.")
verbose = click.option("-v", "--verbose", is_flag=True, help="Show every task and every decision.")
catalogs = click.option(
    "--catalog",
    "catalogs",
    multiple=True,
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False),
    help="Where playbooks that tasks name by path are looked for, too. May be repeated.",
)
slots = click.option(
    "--slots",
    type=click.IntRange(min=1),
    metavar="N",
    help="How many step runs are worked on at the same time.  [default: 32]",
)
sets = click.option(
    "--set",
    "sets",
    multiple=True,
    metavar="KEY=VALUE",
    help="Set a value of the workload, `a.b=1` inside a mapping; JSON, else text. May be repeated.",
)
