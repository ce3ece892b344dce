"""The `noetl` command. A subcommand's module is imported when that subcommand is used."""

import gc
import sys
from collections.abc import Sequence
from typing import NoReturn

import click

from noetl.cli.command import LazyGroup
from noetl.cli.command_failure import CommandFailure, command_failure_of, print_failure

SECTIONS = {
    "Write": {
        "init": "Write a first playbook to start from.",
        "validate": "Check playbooks and report every problem.",
        "tools": "List the tool kinds that tasks can use, and explain one.",
        "schema": "Print the JSON Schema of playbooks, for editors.",
        "graph": "Draw a playbook as a picture.",
        "upgrade": "Rewrite a playbook of another dialect in the canonical form.",
    },
    "Run": {
        "run": "Run a playbook here, or go on with one that was interrupted.",
        "executions": "See what executions did, and why, and steer them.",
    },
    "Serve": {
        "server": "Start and stop a server: playbooks by path, executions, HTTP.",
        "dev": "Serve the embedded store here, with a worker, for development.",
        "worker": "Run steps for a server.",
        "catalog": "Register playbooks with a server, and look at those that are.",
        "execute": "Run a registered playbook on a server.",
        "token": "Make and revoke the tokens that let people and programs use a server.",
    },
    "Set up": {
        "credential": "Keep credentials that playbooks use by name, encrypted.",
        "store": "Check and tidy the store of executions.",
        "doctor": "Say what is wrong with store, server, workers or executions, or about to be.",
        "config": "Show what is configured, and where.",
        "completion": "Print the script that completes commands in a shell.",
    },
}
"""The commands in the order of `--help`. `name` is `noetl.cli.command.name:name`."""

COMMANDS = [name for section in SECTIONS.values() for name in section]


def _print_version(ctx: click.Context, _param: click.Parameter, value: bool) -> None:  # noqa: FBT001 - click's contract
    if not value:
        return
    from importlib.metadata import PackageNotFoundError, version

    try:
        click.echo(f"noetl {version('noetl')}")
    except PackageNotFoundError:
        click.echo("noetl (run from its sources, not installed)")
    ctx.exit()


@click.group(
    cls=LazyGroup,
    sections=SECTIONS,
    package="noetl.cli.command",
    subcommand_metavar="COMMAND …",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="`noetl COMMAND --help` says more about a command.",
)
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_print_version,
    help="Show the version.",
)
def app() -> None:
    """Check, draw, upgrade and run playbooks: workflows written in YAML with Jinja2 expressions."""


def run_command_line(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run one command and exit: 0 done, 1 failed or stopped, 2 the request is wrong, 3 the environment is."""
    arguments = sys.argv[1:] if arguments is None else arguments
    try:
        code = app.main(list(arguments), prog_name="noetl", standalone_mode=False)
    except Exception as error:  # noqa: BLE001 - the last door: nobody shall see a traceback by accident
        failure = error if isinstance(error, CommandFailure) else command_failure_of(error)
        print_failure(failure, arguments)
        code = failure.exit_code
    gc.freeze()  # at its end Python looks for garbage in all that is there: a sixth of a short command
    sys.exit(code or 0)
