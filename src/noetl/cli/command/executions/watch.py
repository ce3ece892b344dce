"""`noetl executions watch`."""

import click

from noetl.cli import options
from noetl.cli.command.executions.follow_events import follow_with_children
from noetl.cli.progress.display import Progress, progress_for
from noetl.cli.report.follow_up import FollowUp
from noetl.cli.store_access import with_store
from noetl.cli.task_logs import open_logs
from noetl.engine.catalog.playbook_record import PlaybookSource, decode_source
from noetl.engine.history.failed_attempts import FailedAttempts
from noetl.engine.history.failure_chain import read_failures
from noetl.engine.history.lookup import find_execution, request_event_of
from noetl.engine.history.read import fold_events, read_plan
from noetl.events.event import Event
from noetl.kernel.state.execution_state import ExecutionState, new_state
from noetl.ports.store import ExecutionRecord, Store
from noetl.settings import Configuration
from noetl.stores.home_folder import Home


@click.command("watch")
@options.execution
@options.tools
@options.quiet
@options.verbose
@options.store_or_server_options
def command(*, name: str, quiet: bool, verbose: bool, **store_flags: str | None) -> int:
    """Follow an execution to its end.

    Shows what `run` shows, and prints what it prints. Exits with 0 if it completes, with 1 if it fails, is
    cancelled, or nobody runs it. JSON is one document, at the end.
    """
    if quiet and verbose:
        raise click.UsageError("-q and -v exclude each other")
    configuration = options.read_configuration(**store_flags)
    if options.asks_server(configuration):
        from noetl.cli.server_executions import watch_remote

        return watch_remote(configuration, name)
    settings, follow_up = configuration.settings, FollowUp(configuration)
    live = settings.output == "text"
    progress = progress_for(follow_up, quiet=quiet, verbose=verbose, live=live, color=settings.color)
    watched = WatchedExecution(configuration, progress)
    # Here, not above: it imports the engine, for which no other command of this file's neighbours waits.
    from noetl.cli.command.run.execute import print_report
    from noetl.cli.command.run.foreground import ForegroundEnd, redrawn

    async def work(home: Home, store: Store) -> ForegroundEnd:
        record = await find_execution(store, name)
        with redrawn(progress):
            async for execution_id, page in follow_with_children(home, store, record.execution_id):
                await watched.observe(store, execution_id, page)
        if not watched.states:
            request_event_of([])  # raises: there is nothing to show
        state, source = watched.states[record.execution_id], await _source(store, record)
        async with open_logs(configuration, home, store) as logs:
            failures = await read_failures(
                store, logs, state, source, watched.attempts, allow_kinds=settings.allow_kinds
            )
        return ForegroundEnd(state, failures)

    try:
        end = with_store(configuration, work)
    finally:
        progress.close()
    execution_id = end.state.execution_id
    resume = follow_up.resume_command(execution_id)
    if end.state.paused:
        resume = follow_up.executions_command("resume", execution_id)
    document = {"version": watched.version} if watched.version else {}
    stopped = f"nobody runs it now; go on with: {resume}"
    return print_report(end, configuration, document, stopped=stopped, last_ts=progress.last_ts, quiet=quiet)


class WatchedExecution:
    """What became of an execution and of its children so far, for the progress and the report."""

    def __init__(self, configuration: Configuration, progress: Progress) -> None:
        self._allow_kinds = configuration.settings.allow_kinds
        self._progress = progress
        self.states: dict[str, ExecutionState] = {}
        self.attempts = FailedAttempts()
        self.version = ""
        """The version that was asked for."""

    async def observe(self, store: Store, execution_id: str, events: list[Event]) -> None:
        """Takes in the next events of one of them. Raises HistoryUnreadable."""
        state = self.states.get(execution_id)
        if state is None:
            record = await find_execution(store, execution_id)
            state = new_state(await read_plan(store, record, self._allow_kinds), execution_id)
            if not self.states:
                self.version = request_event_of(events).version
            self.states[execution_id] = state
        fold_events(state, events)
        self.attempts.observe(execution_id, events)
        self._progress.observe(execution_id, events, state)


async def _source(store: Store, record: ExecutionRecord) -> PlaybookSource:
    return decode_source(await store.playbook(record.playbook) or b"")
