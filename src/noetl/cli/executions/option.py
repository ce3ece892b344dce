"""The options and arguments that the verbs share."""

from collections.abc import Callable
from typing import Any

import click

from noetl.cli import option
from noetl.settings import Configuration, read

execution = click.argument("name", metavar="ID")
follow = click.option(
    "-f", "--follow", is_flag=True, help="Go on until the execution ends or nobody runs it."
)
step = click.option("--step", metavar="STEP", help="Only what belongs to this step.")


def place(function: Callable[..., Any]) -> Callable[..., Any]:
    """Where to look, and how to print: `--home`, `--store`, `--output`."""
    return option.home(option.store(option.output(function)))


no_run = click.option("--no-run", is_flag=True, help="Only record it; `noetl run --resume` goes on.")


def running(function: Callable[..., Any]) -> Callable[..., Any]:
    """For verbs that run the execution here: `--catalog`, `--slots`, `-q`, `-v`."""
    return option.catalogs(option.slots(option.quiet(option.verbose(function))))


def configured(*, home: str | None, store: str | None, output: str | None) -> Configuration:
    """What these options and the settings amount to."""
    return read({"home": home, "store": store, "output": output})


def configured_to_run(slots: int | None, **place: str | None) -> Configuration:
    """The same for verbs that run the execution here."""
    return read({**place, "slots": slots})
