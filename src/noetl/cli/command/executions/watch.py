"""`noetl executions watch`."""

import click

from noetl.cli import console, options
from noetl.cli.command.executions.follow_events import follow_events
from noetl.cli.report.event_line import EventSteps, event_line
from noetl.cli.report.execution_report import ExecutionReport, execution_json
from noetl.cli.report.failed_attempts import FailedAttempts
from noetl.cli.report.follow_up import FollowUp
from noetl.cli.store_access import with_store
from noetl.engine.history.lookup import find_execution
from noetl.engine.history.read import History, read_history
from noetl.events import bodies as of
from noetl.events.event import Event
from noetl.ports.store import Store
from noetl.settings import Configuration
from noetl.stores.home_folder import Home

_QUIET_EVENTS = (
    of.PlaybookRequestEvaluated,
    of.WorkflowStarted,
    of.WorkflowFinished,
    of.PlaybookProcessed,
    of.TokenEnqueued,
    of.TokenAdmitted,
    of.TokenClaimed,
    of.TaskStarted,
    of.LoopIterationStarted,
    of.NextEvaluated,
)
"""Events that say nothing to somebody who waits for the end."""


@click.command("watch")
@options.execution
@options.tools
@options.store_options
def command(*, name: str, **store_flags: str | None) -> int:
    """Follow an execution to its end.

    Exits with 0 if it completes, with 1 if it fails, is cancelled, or nobody runs it. JSON is one
    document, at the end, as `run` prints it.
    """
    configuration = options.read_configuration(**store_flags)

    async def work(home: Home, store: Store) -> History:
        execution_id = (await find_execution(store, name)).execution_id
        event_steps = EventSteps()
        async for page in follow_events(home, store, execution_id):
            _print_events(page, event_steps, configuration)
        return await read_history(store, execution_id, configuration.settings.allow_kinds)

    history = with_store(configuration, work)
    if configuration.settings.output == "json":
        last_ts = history.events[-1].ts
        console.write_json(
            execution_json(history.state, version=history.request.version or None, last_ts=last_ts)
        )
    else:
        _print_end(history, configuration)
    return 0 if history.state.status == "completed" else 1


def _print_events(page: list[Event], event_steps: EventSteps, configuration: Configuration) -> None:
    paint = console.stdout_paint(color=configuration.settings.color)
    steps = [(event, event_steps.step_of(event)) for event in page]
    if configuration.settings.output == "text":
        lines = (
            event_line(event, step, paint)
            for event, step in steps
            if not isinstance(event.body, _QUIET_EVENTS)
        )
        console.write_text("".join(f"{line}\n" for line in lines))


def _print_end(history: History, configuration: Configuration) -> None:
    follow_up = FollowUp(configuration)
    attempts = FailedAttempts()
    attempts.observe(history.record.execution_id, history.events)
    report = ExecutionReport(
        history.state, follow_up, failed_attempts=attempts, last_ts=history.events[-1].ts
    )
    console.say(report.ending())
    if not history.state.over:
        execution_id = history.record.execution_id
        resume = follow_up.resume_command(execution_id)
        if history.state.paused:
            resume = follow_up.executions_command("resume", execution_id)
        console.say(f"nobody runs it now; go on with: {resume}")
