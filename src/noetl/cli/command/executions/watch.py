"""`noetl executions watch`."""

import click

from noetl.cli import console
from noetl.cli.command.executions import execution_options
from noetl.cli.command.executions.follow_events import follow
from noetl.cli.executions.places import Places
from noetl.cli.report.event_line import line_of
from noetl.cli.report.execution_report import Report, report_json
from noetl.cli.report.failed_attempts import Evidence
from noetl.cli.report.follow_up import Again
from noetl.cli.store_access import consult
from noetl.engine.history.lookup import find_execution
from noetl.engine.history.read import History, read_history
from noetl.events import bodies as of
from noetl.events.event import Event
from noetl.ports.store import Store
from noetl.settings import Configuration
from noetl.stores.home_folder import Home

_QUIET = (
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
@execution_options.execution
@execution_options.place
def command(*, name: str, **place: str | None) -> int:
    """Follow an execution to its end.

    Exits with 0 if it completes, with 1 if it fails, is cancelled, or nobody runs it. JSON is one
    document, at the end, as `run` prints it.
    """
    configuration = execution_options.configured(**place)

    async def work(home: Home, store: Store) -> History:
        execution_id = (await find_execution(store, name)).execution_id
        places = Places()
        async for page in follow(home, store, execution_id):
            _print(page, places, configuration)
        return await read_history(store, execution_id, configuration.settings.allow_kinds)

    history = consult(configuration, work)
    if configuration.settings.output == "json":
        last = history.events[-1].ts
        console.write_json(report_json(history.state, version=history.request.version or None, last=last))
    else:
        _print_end(history, configuration)
    return 0 if history.state.status == "completed" else 1


def _print(page: list[Event], places: Places, configuration: Configuration) -> None:
    paint = console.paint_of_stdout(color=configuration.settings.color)
    steps = [(event, places.step_of(event)) for event in page]
    if configuration.settings.output == "text":
        lines = (line_of(event, step, paint) for event, step in steps if not isinstance(event.body, _QUIET))
        console.write_text("".join(f"{line}\n" for line in lines))


def _print_end(history: History, configuration: Configuration) -> None:
    again = Again(configuration)
    evidence = Evidence()
    evidence.see(history.record.execution_id, history.events)
    report = Report(history.state, again, evidence=evidence, last=history.events[-1].ts)
    console.say(report.ending())
    if not history.state.over:
        execution_id = history.record.execution_id
        resume = again.resume(execution_id)
        if history.state.paused:
            resume = again.executions("resume", execution_id)
        console.say(f"nobody runs it now; go on with: {resume}")
