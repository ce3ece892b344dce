"""A command that runs an execution to its end: progress meanwhile, then the report."""

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from noetl.cli import console
from noetl.cli.command.run.foreground import ExecutionRequest, ForegroundEnd, run_in_foreground
from noetl.cli.progress.display import progress_for
from noetl.cli.report.execution_report import MOST_LINES, ExecutionReport, execution_json
from noetl.cli.report.follow_up import FollowUp
from noetl.settings import Configuration


def execute(
    order: ExecutionRequest,
    configuration: Configuration,
    catalogs: Sequence[str],
    *,
    quiet: bool,
    verbose: bool,
) -> int:
    """Runs it here; the exit code. Raises CommandFailure."""
    if quiet and verbose:
        raise click.UsageError("-q and -v exclude each other")
    settings = configuration.settings
    progress = progress_for(
        FollowUp(configuration),
        quiet=quiet,
        verbose=verbose,
        live=settings.output == "text",
        color=settings.color,
    )
    ended = run_in_foreground(order, configuration, progress, [Path(one) for one in catalogs])
    return _tell(ended, configuration, last=progress.last_ts, quiet=quiet)


def _tell(ended: ForegroundEnd, configuration: Configuration, *, last: int, quiet: bool) -> int:
    """The result on stdout, everything else on stderr. The exit code."""
    settings, state = configuration.settings, ended.state
    again = FollowUp(configuration)
    paint = (
        console.color_paint if settings.color and sys.stderr and sys.stderr.isatty() else console.plain_paint
    )
    report = ExecutionReport(state, again, ended.source, ended.failed_attempts, last, paint)
    as_json = settings.output == "json"
    if as_json:
        console.write_json(execution_json(state, last_ts=last))
    elif state.status == "completed":
        most = MOST_LINES if sys.stdout is not None and sys.stdout.isatty() else None
        console.write_text(report.result(most=most))
    if not quiet or not (as_json or state.status == "completed"):
        console.say(report.ending())
    elif not as_json:
        for warning in report.warnings():
            console.say(warning)
    if not state.over and not (quiet and as_json):
        console.say(f"interrupted; go on with: {again.resume_command(state.execution_id)}")
    return 0 if state.status == "completed" else 1
