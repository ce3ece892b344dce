"""Executions that run in this process until they are over: the one place that knows the engine."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from threading import Timer
from typing import Any

from msgspec import Struct

from noetl.api import dedicate_process, open_local, playbooks_of
from noetl.cli import console
from noetl.cli.command.run.foreground_requests import (
    ExecutionRequest,
    ForkRequest,
    LoadWarnings,
    StartRequest,
)
from noetl.cli.command_failure import CommandFailure, invalid_playbook
from noetl.cli.console import visible
from noetl.cli.format import DAY
from noetl.cli.options import RunOptions
from noetl.cli.progress.display import Progress
from noetl.cli.report.event_line import log_origin
from noetl.cli.report.follow_up import FollowUp
from noetl.dsl.document.problem import PlaybookInvalid
from noetl.engine.catalog.playbook_record import PlaybookSource
from noetl.engine.catalog.playbooks import PlaybookDocument, Playbooks
from noetl.engine.catalog.preflight import CannotRun, Preflight
from noetl.engine.history.failed_attempts import FailedAttempts
from noetl.engine.history.failure_chain import read_failures
from noetl.engine.history.fork import CannotFork
from noetl.engine.history.lookup import read_events
from noetl.engine.history.retention import delete_ended, drop_expired
from noetl.engine.service import AlreadyRunning
from noetl.engine.task_log import FileLog, LogLine
from noetl.events.event import Event
from noetl.home import home_of, result_store_names, result_store_of, store_url
from noetl.kernel.errors import Refused
from noetl.kernel.state.execution_state import ExecutionState
from noetl.loader import installed_kinds
from noetl.local import Local
from noetl.model.errors import NoetlError, ResultError
from noetl.model.reference import encode_value, references_in
from noetl.model.secret import hide_secrets
from noetl.model.store_url import without_password
from noetl.model.timestamp import now_micros
from noetl.ports.http_api import FailureReport
from noetl.ports.store import ExecutionUnknown, Store, StoreError, StoreFull
from noetl.settings import Configuration
from noetl.stores import store_file_of
from noetl.stores.home_folder import Home
from noetl.tools.host.task_prints import capture_prints

PATIENCE = 3.0
"""Seconds that everything has to end after the second signal."""

MOST_FORGOTTEN = 100
"""Old executions that one run removes: nobody shall wait for that."""

_ELSEWHERE = "--home or --store name another place; `noetl executions list` shows what is there"


class ForegroundEnd(Struct, frozen=True):
    """How far an execution came, and what is known of its failure and of the children that failed it."""

    state: ExecutionState
    failures: Sequence[FailureReport] = ()
    result: Any = None
    """As it is printed in JSON, where something of it is stored and that was read."""
    why_reference: str = ""
    """Why it was not."""


def run_in_foreground(
    request: ExecutionRequest,
    options: RunOptions,
    progress: Progress,
    warnings: LoadWarnings,
    *,
    print_log: Callable[[str], None] | None = None,
) -> ForegroundEnd:
    """Runs until the end, or until it is interrupted. Raises CommandFailure.

    `print_log` gets what tasks print, line by line, with who wrote it. The first SIGINT or SIGTERM stops
    after the attempts in flight, the second at once.
    """
    dedicate_process()
    try:
        with capture_prints():
            return asyncio.run(_run(request, options, progress, warnings, print_log=print_log))
    except NoetlError as error:
        raise _failure_of(error, request) or error from None
    finally:
        progress.close()


def record_fork(request: ForkRequest, configuration: Configuration) -> str:
    """The copy alone, which nothing runs yet; its id. Raises CommandFailure."""
    warnings = LoadWarnings(console.say, request.workload)

    async def record() -> str:
        playbooks = playbooks_of(configuration, on_read=warnings.observe)
        async with open_local(configuration, playbooks=playbooks) as (local, store):
            return await request.begin(local, store, run=False)

    try:
        return asyncio.run(record())
    except NoetlError as error:
        raise _failure_of(error, request) or error from None


def read_runnable(request: ExecutionRequest, configuration: Configuration) -> PlaybookDocument | None:
    """The document that comes with a request, if it can run here. Raises CommandFailure."""
    if request.source is None:
        return None
    try:
        playbooks = Playbooks(allow_kinds=configuration.settings.allow_kinds)
        return _read_checked(request.source, configuration, playbooks)
    except NoetlError as error:
        raise _failure_of(error, request) or error from None


async def _run(
    request: ExecutionRequest,
    options: RunOptions,
    progress: Progress,
    warnings: LoadWarnings,
    *,
    print_log: Callable[[str], None] | None,
) -> ForegroundEnd:
    configuration = options.configuration
    catalogs = [Path(folder) for folder in options.catalogs]
    attempts = FailedAttempts()
    announcer = _Announcer(attempts, progress, print_log)
    playbooks = playbooks_of(configuration, catalogs, on_read=warnings.observe)
    _check_before_home(request, configuration, playbooks)
    watch_log = announcer.watch_log if print_log is not None else None
    async with open_local(configuration, playbooks=playbooks, watch=announcer.watch, watch_log=watch_log) as (
        local,
        store,
    ):
        with _stopped_by_signals(local, progress), redrawn(progress):
            state = await _run_to_end(local, store, request, configuration, announcer)
        source = request.source
        if source is None:
            source = (await local.playbooks.read_stored(store, state.plan.playbook.hash)).source
        await _read_earlier_attempts(attempts, state, store)
        logs = local.logs or FileLog(home_of(configuration).logs)
        kinds = configuration.settings.allow_kinds
        failures = await read_failures(store, logs, state, source, attempts, allow_kinds=kinds)
        result, why = None, ""
        if configuration.settings.output == "json":
            result, why = await _read_result(local, state, options.max_result)
        await _clean_up(home_of(configuration), store, configuration)
    return ForegroundEnd(state, failures, result, why)


async def _read_result(local: Local, state: ExecutionState, most: int) -> tuple[Any, str]:
    """A result with all that is stored of it, or why not; neither if nothing of it is stored."""
    stored = [*references_in(state.result)]
    if not stored:
        return None, ""
    too_large = f"it takes more than {most:,} bytes (--max-result)"
    if sum(reference.get("size", 0) for reference in stored) > most:
        return None, too_large
    try:
        result = hide_secrets(await local.resolve(state.result))
    except ResultError as error:
        return None, str(error)
    # What is stored packed, as a table is, or inside of something stored, takes more than was known before.
    return (None, too_large) if len(encode_value(result)) > most else (result, "")


def _check_before_home(request: ExecutionRequest, configuration: Configuration, playbooks: Playbooks) -> None:
    """A home is made only for a playbook that can run. Raises CommandFailure, PlaybookInvalid, CannotRun."""
    home, settings = home_of(configuration), configuration.settings
    if store_file_of(store_url(configuration)) is None or home.exists:
        return
    if not isinstance(request, StartRequest):
        where = settings.store or home.folder
        raise CommandFailure("unknown-execution", f"there are no executions in {where}", hint=_ELSEWHERE)
    _read_checked(request.source, configuration, playbooks)


def _read_checked(
    source: PlaybookSource, configuration: Configuration, playbooks: Playbooks
) -> PlaybookDocument:
    """A document that can run here. Raises PlaybookInvalid, CannotRun."""
    kinds = installed_kinds().with_allowed(configuration.settings.allow_kinds)
    document = playbooks.read(source)
    Preflight(playbooks, kinds, result_store_names(configuration)).check(document)
    return document


class _Announcer:
    """Passes on what happens, but nothing before it is said which execution it is.

    The first events are durable before `begin` gives the id back: a line about a step would come first.
    """

    def __init__(
        self, attempts: FailedAttempts, progress: Progress, print_log: Callable[[str], None] | None
    ) -> None:
        self._attempts = attempts
        self._progress = progress
        self._print_log = print_log
        self._printed: list[tuple[str, LogLine]] = []
        self._paths: dict[str, str] = {}
        self._started = ""
        self._held_back: list[tuple[str, Sequence[Event], ExecutionState]] | None = []

    def watch(self, execution_id: str, events: Sequence[Event], state: ExecutionState) -> None:
        self._attempts.observe(execution_id, events)
        self._paths[execution_id] = state.plan.playbook.metadata.path
        if self._held_back is not None:
            self._held_back.append((execution_id, events, state))
        else:
            self._progress.observe(execution_id, events, state)

    def watch_log(self, execution_id: str, line: LogLine) -> None:
        self._printed.append((execution_id, line))
        if self._held_back is None:
            self._print_lines()

    def announce(self, execution_id: str, message: str) -> None:
        """From here on nothing is held back; what other executions print has their paths before it."""
        self._started = execution_id
        self._progress.say(message)
        held_back, self._held_back = self._held_back or [], None
        for arguments in held_back:
            self._progress.observe(*arguments)
        self._print_lines()

    def _print_lines(self) -> None:
        printed, self._printed = self._printed, []
        if printed and self._print_log is not None:
            self._print_log("\n".join(self._log_text(*entry) for entry in printed))

    def _log_text(self, execution_id: str, line: LogLine) -> str:
        origin = log_origin(line)
        if execution_id != self._started:
            origin = f"{self._paths.get(execution_id, execution_id)}: {origin}"
        return f"{visible(origin)} | {visible(line.text)}"


async def _run_to_end(
    local: Local, store: Store, request: ExecutionRequest, configuration: Configuration, announcer: _Announcer
) -> ExecutionState:
    """From the request to the end of the execution. Raises CommandFailure."""
    execution_id = ""
    try:
        begun = await request.begin(local, store)
        # The id is told when its first events are durable, not before: a store that fails here has nothing
        # that could be resumed, and nobody shall be told to do so.
        await local.flush()
        execution_id = begun
        where = without_password(configuration.settings.store) or str(home_of(configuration).folder)
        announcer.announce(execution_id, f"execution {execution_id}, kept in {where}")
        return await local.wait_for_end(execution_id)
    except StoreError as error:
        if not execution_id:
            raise
        code = "store-full" if isinstance(error, StoreFull) else "store"
        message = f"{error}; what was recorded before is safe, and the execution can be resumed"
        hint = f"{error.hint}; then: " if error.hint else ""
        resume = FollowUp(configuration).resume_command(execution_id)
        raise CommandFailure(code, message, hint=hint + resume, exit_code=3) from None


def _failure_of(error: NoetlError, request: ExecutionRequest) -> CommandFailure | None:
    """What an error of the engine means to the caller; None if any command knows that."""
    match error:
        case PlaybookInvalid():
            return invalid_playbook(error.problems, request.source.text if request.source else "")
        case CannotRun():
            return _cannot_run(error, request.source)
        case AlreadyRunning():
            return CommandFailure("running", str(error), hint="one process at a time runs an execution")
        case Refused():
            return CommandFailure("refused", str(error), hint=getattr(error, "hint", ""))
        case CannotFork():
            return CommandFailure("cannot-fork", str(error), hint=error.hint)
        case ExecutionUnknown():
            return CommandFailure("unknown-execution", str(error), hint=error.hint or _ELSEWHERE)
        case _:
            return None


def _cannot_run(error: CannotRun, source: PlaybookSource | None) -> CommandFailure:
    """With the lines that lack something, unless they stand in the files of children."""
    text = ""
    if source is not None and {problem.file for problem in error.problems} == {source.file or source.name}:
        text = source.text
    return CommandFailure("cannot-run", str(error), hint=error.hint, problems=error.problems, text=text)


@contextlib.contextmanager
def _stopped_by_signals(local: Local, progress: Progress) -> Iterator[None]:
    """Signals stop the engine, not the program."""
    loop = asyncio.get_running_loop()
    received = 0
    killing: list[asyncio.Task[None]] = []  # the loop alone keeps a task by a weak reference

    def stop() -> None:
        nonlocal received
        received += 1
        if received == 1:
            progress.say("stopping after the attempts in flight; again kills")
            local.interrupt()
        elif received == 2:
            progress.close()
            # Code that nobody can interrupt must not keep the program: a thread of its own ends it, because
            # the loop may never turn again.
            last_resort = Timer(PATIENCE, os._exit, [1])
            last_resort.daemon = True
            last_resort.start()
            killing.append(loop.create_task(local.kill()))

    signals = (signal.SIGINT, signal.SIGTERM)
    for number in signals:
        loop.add_signal_handler(number, stop)
    try:
        yield
    finally:
        for number in signals:
            loop.remove_signal_handler(number)


@contextlib.contextmanager
def redrawn(progress: Progress) -> Iterator[None]:
    """The display is drawn while this lasts."""
    interval = progress.interval
    if interval is None:
        yield
        return

    async def draw() -> None:
        while True:
            progress.draw()
            await asyncio.sleep(interval)

    task = asyncio.get_running_loop().create_task(draw())
    try:
        yield
    finally:
        task.cancel()


async def _read_earlier_attempts(attempts: FailedAttempts, state: ExecutionState, store: Store) -> None:
    """Of what failed before this process began, only the log knows."""
    if state.failures and attempts.attempt_of(state.execution_id, state.failures[0].run) is None:
        async for page in read_events(store, state.execution_id):
            attempts.observe(state.execution_id, page)


async def _clean_up(home: Home, store: Store, configuration: Configuration) -> None:
    """Some executions that ended long ago go, and results past their time; from the embedded store alone."""
    days = configuration.settings.keep_days
    if configuration.settings.store:
        return
    now = now_micros()
    with contextlib.suppress(StoreError, ResultError, OSError):
        results = result_store_of(configuration, home, store)
        if days:
            await delete_ended(home, store, results, now - days * DAY, MOST_FORGOTTEN)
        await drop_expired(home, store, results, now, MOST_FORGOTTEN)
