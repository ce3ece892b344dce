"""A command that runs an execution to its end: progress meanwhile, then the report."""

import sys
from pathlib import Path

import click

from noetl.cli import console
from noetl.cli.command.run.foreground import ExecutionRequest, ForegroundEnd, run_in_foreground
from noetl.cli.command.run.load_warnings import LoadWarnings
from noetl.cli.options import RunOptions
from noetl.cli.problem_text import problems_json
from noetl.cli.progress.display import progress_for
from noetl.cli.report.execution_report import MOST_LINES, ExecutionReport, execution_json
from noetl.cli.report.follow_up import FollowUp
from noetl.settings import Configuration


def execute(request: ExecutionRequest, options: RunOptions) -> int:
    """Runs it here to its end; the exit code. Raises CommandFailure."""
    if options.quiet and options.verbose:
        raise click.UsageError("-q and -v exclude each other")
    configuration, settings = options.configuration, options.configuration.settings
    progress = progress_for(
        FollowUp(configuration),
        quiet=options.quiet,
        verbose=options.verbose,
        live=settings.output == "text",
        color=settings.color,
    )
    catalogs = [Path(folder) for folder in options.catalogs]
    as_json = settings.output == "json"
    # Quiet shows no progress, but what nobody else tells.
    say = progress.say if not options.quiet or as_json else console.say
    warnings = LoadWarnings(say, request.workload)
    end = run_in_foreground(request, configuration, progress, catalogs, warnings)
    return _print_report(end, configuration, warnings, last_ts=progress.last_ts, quiet=options.quiet)


def _print_report(
    end: ForegroundEnd, configuration: Configuration, warnings: LoadWarnings, *, last_ts: int, quiet: bool
) -> int:
    """The result on stdout, everything else on stderr. The exit code."""
    settings, state = configuration.settings, end.state
    follow_up = FollowUp(configuration)
    on_terminal = sys.stderr is not None and sys.stderr.isatty()
    paint = console.color_paint if settings.color and on_terminal else console.plain_paint
    report = ExecutionReport(
        state, follow_up, end.source, end.failed_attempts, last_ts, paint, children=end.children
    )
    as_json = settings.output == "json"
    if as_json:
        document = execution_json(state, last_ts=last_ts)
        console.write_json({**document, "warnings": problems_json(warnings.problems)})
    elif state.status == "completed":
        most = MOST_LINES if sys.stdout is not None and sys.stdout.isatty() else None
        console.write_text(report.result(most=most))
    if not quiet or not (as_json or state.status == "completed"):
        console.say(report.ending())
    elif not as_json:
        for warning in report.warnings():
            console.say(warning)
    if not state.over and not (quiet and as_json):
        console.say(f"interrupted; go on with: {follow_up.resume_command(state.execution_id)}")
    return 0 if state.status == "completed" else 1
