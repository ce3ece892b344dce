"""A command that runs an execution to its end: progress meanwhile, then the report."""

import sys
from collections.abc import Mapping
from typing import Any

import click
import msgspec

from noetl.cli import console
from noetl.cli.command.run.foreground import ForegroundEnd, run_in_foreground
from noetl.cli.command.run.foreground_requests import ExecutionRequest, LoadWarnings
from noetl.cli.options import RunOptions
from noetl.cli.problem_text import problems_json
from noetl.cli.progress.display import progress_for
from noetl.cli.report.execution_report import MOST_LINES, ExecutionReport
from noetl.cli.report.follow_up import FollowUp
from noetl.engine.summary import execution_of
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
    as_json = settings.output == "json"
    # Quiet shows no progress, but what nobody else tells.
    say = progress.say if not options.quiet or as_json else console.say
    warnings = LoadWarnings(say, request.workload)
    # Lines of tasks go between those of the progress; where that is silent they were still asked for.
    print_line = console.say if options.quiet else progress.say
    print_log = print_line if options.logs else None
    end = run_in_foreground(request, options, progress, warnings, print_log=print_log)
    resume = FollowUp(configuration).resume_command(end.state.execution_id)
    return print_report(
        end,
        configuration,
        {"warnings": problems_json(warnings.problems)},
        stopped=f"interrupted; go on with: {resume}",
        last_ts=progress.last_ts,
        quiet=options.quiet,
    )


def print_report(
    end: ForegroundEnd,
    configuration: Configuration,
    document: Mapping[str, Any],
    *,
    stopped: str,
    last_ts: int,
    quiet: bool,
) -> int:
    """The result on stdout, everything else on stderr. The exit code.

    `document` is what JSON has beside the execution; `stopped` is said of one that is not over.
    """
    settings, state = configuration.settings, end.state
    follow_up = FollowUp(configuration)
    execution = execution_of(state, last=last_ts)
    report = ExecutionReport(execution, follow_up, end.failures, console.stderr_paint(color=settings.color))
    as_json = settings.output == "json"
    if as_json:
        printed = msgspec.to_builtins(execution)
        if end.result is not None:
            printed["result"] = end.result
        console.write_json({**printed, **document})
        if end.why_reference:
            command = follow_up.executions_command("result", state.execution_id)
            console.say(f"the result is printed as its reference: {end.why_reference}")
            console.say(f"  {command} -f OUT  reads it")
    elif state.status == "completed":
        most = MOST_LINES if sys.stdout is not None and sys.stdout.isatty() else None
        console.write_text(report.result(most=most))
    if not quiet or not (as_json or state.status == "completed"):
        console.say(report.ending())
    elif not as_json:
        for warning in report.warnings():
            console.say(warning)
    if not state.over and not (quiet and as_json):
        console.say(stopped)
    return 0 if state.status == "completed" else 1
