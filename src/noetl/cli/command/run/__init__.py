"""`noetl run`."""

import os
from typing import TYPE_CHECKING, Any

import click
from msgspec import Struct

from noetl.cli import console, file_access, options
from noetl.cli.command_failure import invalid_playbook
from noetl.settings import Configuration, read_settings

if TYPE_CHECKING:
    from noetl.cli.command.run.foreground_requests import ExecutionRequest, StartRequest


class StartArguments(Struct, frozen=True):
    """What a new execution is started with, as it was typed."""

    file: str
    sets: tuple[str, ...]
    payload: str | None
    ctx: str | None
    dialect: str | None
    labels: tuple[str, ...]
    idempotency_key: str | None
    timeout: str | None


@click.command()
@click.argument("file", type=options.FileName(), required=False)
@click.option(
    "--resume",
    type=options.TextArgument(),
    metavar="ID",
    help="Go on with an execution that a crash or Ctrl-C interrupted.",
)
@options.sets
@click.option("--payload", metavar="JSON|@FILE", help="The workload: a JSON mapping, @FILE, or @- for stdin.")
@click.option("--ctx", metavar="JSON|@FILE", help="The first ctx: a JSON mapping, @FILE, or @- for stdin.")
@options.dialect
@options.allow_kind
@options.tools
@options.store
@options.home
@options.catalogs
@options.slots
@click.option(
    "--label", "labels", multiple=True, metavar="KEY=VALUE", help="Label the execution. May be repeated."
)
@click.option(
    "--idempotency-key",
    type=options.TextArgument(),
    metavar="KEY",
    help="Start it once: a second run with this key shows the first one's execution.",
)
@click.option("--timeout", metavar="SECONDS", help="How long the execution may take: 90, 5m, 1h30m.")
@options.max_result
@click.option("--dry-run", is_flag=True, help="Show what would run, and run nothing.")
@options.logs
@options.quiet
@options.verbose
@options.output
def run(
    *,
    file: str | None,
    resume: str | None,
    allow_kinds: tuple[str, ...],
    store: str | None,
    home: str | None,
    catalogs: tuple[str, ...],
    slots: int | None,
    max_result: int,
    dry_run: bool,
    logs: bool,
    quiet: bool,
    verbose: bool,
    output: str | None,
    **start: Any,
) -> int:
    """Run a playbook here, or go on with one that was interrupted.

    FILE is a playbook, or `-` for standard input. Everything that happens is kept in an embedded
    store; the result goes to standard output. Exits with 1 if the execution failed, was cancelled
    or was interrupted. Ctrl-C stops after the attempts in flight, twice kills.
    """
    flags = {"output": output, "allow_kinds": allow_kinds, "store": store, "home": home, "slots": slots}
    configuration = read_settings(flags)
    request: ExecutionRequest
    if resume is not None:
        _check_resume(file, start, dry_run=dry_run)
        from noetl.cli.command.run.foreground_requests import ResumeRequest

        request = ResumeRequest(resume)
    else:
        request = _start_request(_start_arguments(file, start))
        if dry_run:
            return _print_plan(request, configuration)
    from noetl.cli.command.run.execute import execute

    run_as = options.RunOptions(configuration, catalogs, quiet, verbose, max_result, logs)
    return execute(request, run_as)


def _check_resume(file: str | None, start: dict[str, Any], *, dry_run: bool) -> None:
    """Raises UsageError at whatever is for a new execution only."""
    if file is not None:
        raise click.UsageError("FILE and --resume exclude each other: an execution keeps its playbook")
    flags = [_spelling(name) for name, value in start.items() if value not in (None, ())]
    flags += ["--dry-run"] * dry_run
    if flags:
        raise click.UsageError(
            f"{flags[0]} is for a new execution: --resume goes on with what was given then"
        )


def _start_arguments(file: str | None, start: dict[str, Any]) -> StartArguments:
    """Raises UsageError."""
    if file is None:
        raise click.UsageError("Missing argument 'FILE': a playbook, `-`, or --resume ID")
    arguments = StartArguments(file, **start)
    from noetl.cli.arguments import reads_stdin

    if (file == file_access.STDIN) + reads_stdin(arguments.payload) + reads_stdin(arguments.ctx) > 1:
        raise click.UsageError(
            "standard input can be read once: FILE `-`, --payload @- and --ctx @- exclude each other"
        )
    return arguments


def _spelling(name: str) -> str:
    return "--" + {"sets": "set", "labels": "label"}.get(name, name.replace("_", "-"))


def _start_request(typed: StartArguments) -> "StartRequest":
    """Everything that was typed, read and checked. Raises CommandFailure."""
    from noetl.cli import arguments
    from noetl.cli.command.run.foreground_requests import StartRequest
    from noetl.engine.catalog.playbook_record import PlaybookSource

    labels = arguments.parse_labels(typed.labels)
    timeout = None if typed.timeout is None else arguments.parse_seconds(typed.timeout, "--timeout")
    payload, ctx = (
        {} if text is None else arguments.parse_mapping(arguments.read_argument(text, name), name)
        for name, text in (("--payload", typed.payload), ("--ctx", typed.ctx))
    )
    workload = arguments.apply_sets(payload, typed.sets)
    name, text = file_access.read_input(typed.file)
    file = "" if typed.file == file_access.STDIN else os.path.abspath(typed.file)
    return StartRequest(
        source=PlaybookSource(text, name, file, typed.dialect),
        workload=workload,
        ctx=ctx,
        labels=labels,
        idempotency_key=typed.idempotency_key or "",
        timeout=timeout,
    )


def _print_plan(request: "StartRequest", configuration: Configuration) -> int:
    """Show what would run."""
    from noetl.cli.command.run.dry_run import plan_json, plan_text
    from noetl.cli.problem_text import problems_json, problems_text
    from noetl.engine.catalog.preflight import unread_keys
    from noetl.loader import examine, installed_kinds
    from noetl.model.timestamp import now_micros

    source = request.source
    examined = examine(
        source.text, source.name, dialect=source.dialect, allow_kinds=configuration.settings.allow_kinds
    )
    if examined.playbook is None:
        raise invalid_playbook(examined.problems, source.text)
    kinds = installed_kinds().with_allowed(configuration.settings.allow_kinds)
    unread = unread_keys(examined.playbook, source.text, request.workload)
    folder = os.path.dirname(source.file or "")
    plan = plan_json(examined.playbook, request.workload, request.ctx, kinds, now_micros(), folder=folder)
    if configuration.settings.output == "json":
        console.write_json({**plan, "warnings": problems_json([*examined.problems, *unread])})
    else:
        for problems, lines in ((examined.problems, source.text), (unread, "")):
            if problems:
                console.say(problems_text(problems, lines, paint=console.plain_paint))
        console.write_text(plan_text(plan))
    return 0
