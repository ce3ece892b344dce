"""The options and arguments that several commands share, what some of them amount to, and who gives them."""

import os
import re
from collections.abc import Callable
from functools import wraps
from typing import Any, get_args

import click
from msgspec import Struct

from noetl.settings import Configuration, LogFormat, LogLevel, Output, read_settings


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


class ByteCount(click.ParamType[int]):
    """A number of bytes, or one with a unit."""

    name = "size"
    _FORM = re.compile(r"(\d{1,15}) ?(|b|kib|mib|gib)", re.ASCII | re.IGNORECASE)
    _UNITS = {"": 1, "b": 1, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30}  # noqa: RUF012 - nobody changes it

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        match = self._FORM.fullmatch(str(value))
        if match is None:
            self.fail(f"{str(value)!r:.60} is no size: bytes, or 512KiB, 16MiB, 1GiB", param, ctx)
        return int(match[1]) * self._UNITS[match[2].lower()]


output = click.option(
    "-o",
    "--output",
    type=click.Choice(get_args(Output)),
    help="Text for people, or one JSON document for programs.  [default: text]",
)
dialect = click.option(
    "--dialect",
    type=click.Choice(["canonical", "draft", "in_use"]),
    help="Read the document as this dialect.  [default: what its spellings tell]",
)
allow_kind = click.option(
    "--allow-kind",
    "allow_kinds",
    multiple=True,
    metavar="NAME",
    help="Accept tasks of this kind although no tool here knows it. May be repeated.",
)


def _load_tools(ctx: click.Context, _param: click.Parameter, files: tuple[str, ...]) -> None:
    """Makes the tools known before the command looks at anything."""
    if not files or ctx.resilient_parsing:  # completion runs nobody's code
        return
    from noetl.cli.tool_files import load_tool_file

    for name in files:
        load_tool_file(name)


tools = click.option(
    "--tools",
    multiple=True,
    type=FileName(),
    metavar="FILE.py",
    expose_value=False,
    callback=_load_tools,
    help="Know the tools that this Python file declares, too. May be repeated.",
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
log_format = click.option(
    "--log-format",
    type=click.Choice(get_args(LogFormat)),
    help="The log on standard error: text, or a JSON document on each line.  [default: text]",
)
log_level = click.option(
    "--log-level", type=click.Choice(get_args(LogLevel)), help="The least that is logged.  [default: info]"
)
quiet = click.option("-q", "--quiet", is_flag=True, help="Show no progress.")
logs = click.option("--logs", is_flag=True, help="Show what tasks print, as they do, on standard error.")
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
max_result = click.option(
    "--max-result",
    type=ByteCount(),
    default="16MiB",
    metavar="SIZE",
    help="Print a larger result in JSON as its reference: bytes, or 512KiB, 16MiB, 1GiB.  [default: 16MiB]",
)
sets = click.option(
    "--set",
    "sets",
    multiple=True,
    metavar="KEY=VALUE",
    help="Set a value of the workload, `a.b=1` inside a mapping; JSON, else text. May be repeated.",
)
execution = click.argument("name", type=TextArgument(), metavar="ID")
follow = click.option(
    "-f", "--follow", is_flag=True, help="Go on until the execution ends or nobody runs it."
)
at_event = click.option(
    "--at", type=click.IntRange(1), metavar="SEQ", help="After this event.  [default: the last one]"
)
step = click.option("--step", metavar="STEP", help="Only what belongs to this step.")
other_playbook = click.option("--playbook", type=FileName(), metavar="FILE", help="Go on with this playbook.")
other_version = click.option(
    "--version",
    type=click.IntRange(1),
    metavar="N",
    help="Go on with this version of the registered playbook.",
)
yes = click.option("-y", "--yes", is_flag=True, help="Do not ask, also on a terminal.")
dry_run = click.option("--dry-run", is_flag=True, help="Only say what would run again, and what is kept.")
no_run = click.option("--no-run", is_flag=True, help="Only record it; `noetl run --resume` goes on.")


def require_one_document(playbook: str | None, version: int | None) -> None:
    """Raises UsageError."""
    if playbook is not None and version is not None:
        raise click.UsageError("--playbook and --version exclude each other")


server = click.option(
    "--server",
    type=TextArgument(),
    metavar="URL",
    help="Ask this server, not the embedded store.  [default: NOETL_SERVER]",
)


def server_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Which server to ask, and how to print: `--server`, `--home`, `--output`."""
    server_home = click.option(
        "--home",
        type=FileName(),
        metavar="DIR",
        help="The folder of a server here.  [default: the nearest .noetl with one, or ~/.noetl]",
    )
    return server(server_home(output(function)))


def store_or_server_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """`store_options`, and `--server` in their place."""
    return server(store_options(function))


def store_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Where to look, and how to print: `--home`, `--store`, `--output`."""
    return home(store(output(function)))


def read_configuration(
    *, home: str | None, output: str | None, store: str | None = None, server: str | None = None
) -> Configuration:
    """What `store_options`, or those with a server, and the settings amount to."""
    return read_settings({"home": home, "store": store, "output": output, "server": server})


def asks_server(configuration: Configuration) -> bool:
    """Whether a command is for a server, and not for the embedded store. Raises UsageError.

    The place of a store that is named by a flag counts more than a server that is named further away.
    """
    if not configuration.settings.server:
        return False
    flags = [name for name in ("server", "home", "store") if configuration.origins[name].source == "flag"]
    if flags[:1] == ["server"] and len(flags) > 1:
        raise click.UsageError(f"--server and --{flags[1]} exclude each other")
    return flags in ([], ["server"])


def current_user() -> str:
    """The name of the user who asks, as events record it; empty where the system knows none."""
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        # A user id without a name, as in a container: ImportError where there is no `pwd`.
        return ""


class RunOptions(Struct, frozen=True):
    """How an execution is to be run by this command, and where."""

    configuration: Configuration
    catalogs: tuple[str, ...]
    quiet: bool
    verbose: bool
    max_result: int
    """Bytes of a result that JSON has whole."""
    logs: bool


def run_options(function: Callable[..., int]) -> Callable[..., Any]:
    """For verbs that run here: `store_or_server_options`, and what says how, as `run_as`, but `--tools`."""

    @wraps(function)
    def with_run_options(
        *,
        catalogs: tuple[str, ...],
        slots: int | None,
        quiet: bool,
        verbose: bool,
        max_result: int,
        logs: bool,
        **arguments: Any,
    ) -> int:
        flags = {name: arguments.pop(name) for name in ("home", "store", "output", "server")}
        configuration = read_settings({**flags, "slots": slots})
        run_as = RunOptions(configuration, catalogs, quiet, verbose, max_result, logs)
        return function(run_as=run_as, **arguments)

    return tools(catalogs(slots(max_result(logs(quiet(verbose(store_or_server_options(with_run_options))))))))
