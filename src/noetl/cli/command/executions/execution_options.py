"""The options and arguments that the verbs share."""

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

import click
from msgspec import Struct

from noetl.cli import options
from noetl.settings import Configuration, read_settings

if TYPE_CHECKING:
    from noetl.cli.command.run.foreground import ExecutionRequest

execution = click.argument("name", type=options.TextArgument(), metavar="ID")
follow = click.option(
    "-f", "--follow", is_flag=True, help="Go on until the execution ends or nobody runs it."
)
step = click.option("--step", metavar="STEP", help="Only what belongs to this step.")


def store_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Where to look, and how to print: `--home`, `--store`, `--output`."""
    return options.home(options.store(options.output(function)))


no_run = click.option("--no-run", is_flag=True, help="Only record it; `noetl run --resume` goes on.")


class RunOptions(Struct, frozen=True):
    """How an execution is to be run by this command, and where."""

    configuration: Configuration
    catalogs: tuple[str, ...]
    quiet: bool
    verbose: bool

    def execute(self, order: "ExecutionRequest") -> int:
        """Runs it to its end; the exit code. Raises CommandFailure."""
        from noetl.cli.command.run.execute import execute

        return execute(order, self.configuration, self.catalogs, quiet=self.quiet, verbose=self.verbose)


def run_options(function: Callable[..., int]) -> Callable[..., Any]:
    """For verbs that run the execution here: `--catalog`, `--slots`, `-q`, `-v` and `place`, as `here`."""

    @wraps(function)
    def packed(
        *, catalogs: tuple[str, ...], slots: int | None, quiet: bool, verbose: bool, **others: Any
    ) -> int:
        where = {name: others.pop(name) for name in ("home", "store", "output")}
        return function(
            here=RunOptions(read_settings({**where, "slots": slots}), catalogs, quiet, verbose), **others
        )

    return options.catalogs(options.slots(options.quiet(options.verbose(store_options(packed)))))


def read_configuration(*, home: str | None, store: str | None, output: str | None) -> Configuration:
    """What these options and the settings amount to."""
    return read_settings({"home": home, "store": store, "output": output})
