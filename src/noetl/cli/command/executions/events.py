"""`noetl executions events`."""

from collections.abc import AsyncIterator, Callable

import click

from noetl.cli import console, options
from noetl.cli.command.executions.follow_events import follow_events
from noetl.cli.command_failure import CommandFailure
from noetl.cli.report.event_line import EventSteps, event_line
from noetl.cli.store_access import with_store
from noetl.engine.history.lookup import find_execution, read_events
from noetl.events.bodies import PlaybookExecutionRequested
from noetl.events.errors import EventNameUnknown
from noetl.events.event import Event, draft_envelope, envelope
from noetl.events.event_kind import kind_named
from noetl.model.json import Json
from noetl.ports.store import Store
from noetl.settings import Settings
from noetl.stores.home_folder import Home


@click.command("events")
@options.execution
@click.option("--after", type=click.IntRange(0), default=0, metavar="SEQ", help="Only events above this one.")
@click.option(
    "--name",
    "names",
    multiple=True,
    metavar="EVENT",
    help="Only events of this name: step.done or StepDone. May be repeated.",
)
@options.step
@click.option(
    "--envelope",
    "form",
    type=click.Choice(["canonical", "draft"]),
    help="Print JSON with these names of fields: draft has event_type, ts and payload.",
)
@options.follow
@options.store_or_server_options
def command(
    *,
    name: str,
    after: int,
    names: tuple[str, ...],
    step: str | None,
    form: str | None,
    follow: bool,
    **store_flags: str | None,
) -> None:
    """Print the events of an execution.

    JSON is one document; with --follow it is one for each event, each on a line of its own.
    """
    configuration = options.read_configuration(**store_flags)
    if options.asks_server(configuration):
        from noetl.cli.server_executions import events_remote

        if names or step is not None or form is not None:
            raise click.UsageError("--name, --step and --envelope work on the embedded store alone")
        events_remote(configuration, name, after=after, follow=follow)
        return
    event_filter = _EventFilter(after, names, step)

    async def work(home: Home, store: Store) -> None:
        execution_id = (await find_execution(store, name)).execution_id
        # From the first event on: which step a run belongs to stands only where it began.
        pages = (follow_events if follow else _read_all)(home, store, execution_id)
        printer = _Printer(execution_id, configuration.settings, form, streaming=follow)
        await printer.print(pages, event_filter)

    with_store(configuration, work)


async def _read_all(_home: Home, store: Store, execution_id: str) -> AsyncIterator[list[Event]]:
    async for page in read_events(store, execution_id):
        yield page


class _EventFilter:
    """Which events are wanted. It must be asked about all of them, in order."""

    def __init__(self, after: int, names: tuple[str, ...], step: str | None) -> None:
        try:
            self._kinds = tuple(kind_named(name).body for name in names)
        except EventNameUnknown as error:
            raise CommandFailure(
                "argument", f"--name: there is no event `{error.name}`", hint=error.hint
            ) from None
        self._after = after
        self._step = step
        self._event_steps = EventSteps()

    def step_if_wanted(self, event: Event) -> str | None:
        """The step of an event that is wanted, empty if it has none; None if it is not wanted."""
        step = self._event_steps.step_of(event)
        if event.seq <= self._after or (self._kinds and not isinstance(event.body, self._kinds)):
            return None
        return None if self._step is not None and step != self._step else step


class _Printer:
    """Text and, if `streaming`, JSON lines at once; otherwise one JSON document at the end.

    Whoever asks for a form of envelope (`canonical`, `draft`) gets JSON: text has none.
    """

    def __init__(self, execution_id: str, settings: Settings, form: str | None, *, streaming: bool) -> None:
        self._execution_id = execution_id
        self._json = settings.output == "json" or form is not None
        self._envelope: Callable[..., dict[str, Json]] = draft_envelope if form == "draft" else envelope
        self._streaming = streaming
        self._paint = console.stdout_paint(color=settings.color)
        self._trace_id = ""
        self._collected: list[dict[str, Json]] = []

    async def print(self, pages: AsyncIterator[list[Event]], event_filter: _EventFilter) -> None:
        any_printed = False
        async for page in pages:
            if not self._trace_id:
                self._trace_id = _trace_of(page[0])
            wanted = [
                (event, step) for event in page if (step := event_filter.step_if_wanted(event)) is not None
            ]
            any_printed = any_printed or bool(wanted)
            if wanted and not self._page(wanted):
                return
        if self._json and not self._streaming:
            console.write_json({"events": self._collected})
        elif not any_printed and not self._json:
            console.say("no such events")

    def _page(self, events: list[tuple[Event, str]]) -> bool:
        """False if nobody reads any more."""
        if not self._json:
            return console.write_text(
                "".join(f"{event_line(event, step, self._paint)}\n" for event, step in events)
            )
        envelopes = [self._envelope(event, self._execution_id, self._trace_id) for event, _ in events]
        if self._streaming:
            return console.write_json_lines(envelopes)
        self._collected += envelopes
        return True


def _trace_of(first: Event) -> str:
    """The trace that the execution's request named."""
    return first.body.trace_id if isinstance(first.body, PlaybookExecutionRequested) else ""
