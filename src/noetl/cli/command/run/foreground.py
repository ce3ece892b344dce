"""Executions that run in this process until they are over: the one place that knows the engine."""

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from threading import Timer
from typing import Any, Protocol

from msgspec import Struct

from noetl.api import dedicate_process, open_local
from noetl.cli.command_failure import CommandFailure, invalid_playbook
from noetl.cli.current_user import current_user
from noetl.cli.progress.display import Progress
from noetl.cli.report.failed_attempts import FailedAttempts
from noetl.cli.report.follow_up import FollowUp
from noetl.dsl.document.problem import PlaybookInvalid
from noetl.engine.catalog.playbooks import Playbooks
from noetl.engine.catalog.preflight import Preflight
from noetl.engine.history.fork import CannotFork
from noetl.engine.history.lookup import find_execution, read_events
from noetl.engine.history.retention import delete_ended, drop_expired
from noetl.events.event import Event
from noetl.home import home_of, result_store_names, result_store_of, store_url
from noetl.kernel import Refused
from noetl.kernel.state.execution_state import ExecutionState
from noetl.loader import installed_kinds
from noetl.local import AlreadyRunning, CannotRun, Local, PlaybookSource
from noetl.model import NoetlError, ResultError
from noetl.ports.store import ExecutionUnknown, Store, StoreError, StoreFull
from noetl.settings import Configuration
from noetl.stores import store_file_of
from noetl.stores.home_folder import Home

PATIENCE = 3.0
"""Seconds that everything has to end after the second signal."""

MOST_FORGOTTEN = 100
"""Old executions that one run removes: nobody shall wait for that."""

_DAY = 86_400 * 1_000_000
_ELSEWHERE = "--home or --store name another place; `noetl executions list` shows what is there"


class ExecutionRequest(Protocol):
    """What is asked of the engine. `source` is the document that comes with it, if one does."""

    @property
    def source(self) -> PlaybookSource | None: ...

    async def begin(self, local: Local, store: Store) -> str:
        """The id of the execution that runs from here on. Raises NoetlError."""
        ...


class StartRequest(Struct, frozen=True, kw_only=True):
    """Run this playbook."""

    source: PlaybookSource
    workload: dict[str, Any] = {}
    ctx: dict[str, Any] = {}
    labels: dict[str, str] = {}
    idempotency_key: str = ""
    timeout: float | None = None

    async def begin(self, local: Local, store: Store) -> str:  # noqa: ARG002 -- as the others
        return await local.start(
            self.source,
            workload=self.workload,
            ctx=self.ctx,
            labels=self.labels,
            idempotency_key=self.idempotency_key,
            timeout=self.timeout,
            by=current_user(),
        )


class ResumeRequest(Struct, frozen=True):
    """Go on with an execution that was interrupted. `name` is its id, the beginning of it, or `latest`."""

    name: str
    source: None = None

    async def begin(self, local: Local, store: Store) -> str:
        return await local.resume((await find_execution(store, self.name)).execution_id)


class RetryRequest(Struct, frozen=True):
    """Go on with a failed execution at what failed."""

    name: str
    by: str = ""
    source: None = None

    async def begin(self, local: Local, store: Store) -> str:
        return await local.retry((await find_execution(store, self.name)).execution_id, by=self.by)


class ForkRequest(Struct, frozen=True, kw_only=True):
    """Run a copy of an execution from one of its events on."""

    name: str
    at: int
    source: PlaybookSource | None = None
    workload: dict[str, Any] = {}
    ctx: dict[str, Any] = {}
    by: str = ""

    async def begin(self, local: Local, store: Store, *, run: bool = True) -> str:
        return await local.fork(
            (await find_execution(store, self.name)).execution_id,
            at=self.at,
            source=self.source,
            workload=self.workload,
            ctx=self.ctx,
            by=self.by,
            run=run,
        )


class ForegroundEnd(Struct, frozen=True):
    """How far an execution came, and what its playbook was read from."""

    state: ExecutionState
    failed_attempts: FailedAttempts
    source: PlaybookSource


def run_in_foreground(
    order: ExecutionRequest, configuration: Configuration, progress: Progress, catalogs: Sequence[Path]
) -> ForegroundEnd:
    """Runs until the end, or until it is interrupted. Raises CommandFailure.

    The first SIGINT or SIGTERM stops after the attempts in flight, the second at once.
    """
    dedicate_process()
    try:
        return asyncio.run(_run(order, configuration, progress, catalogs))
    except NoetlError as error:
        raise _failure(error, order) or error from None
    finally:
        progress.close()


def record_fork(order: ForkRequest, configuration: Configuration) -> str:
    """The copy alone, which nothing runs yet; its id. Raises CommandFailure."""

    async def record() -> str:
        async with open_local(configuration) as (local, store):
            return await order.begin(local, store, run=False)

    try:
        return asyncio.run(record())
    except NoetlError as error:
        raise _failure(error, order) or error from None


async def _run(
    order: ExecutionRequest, configuration: Configuration, progress: Progress, catalogs: Sequence[Path]
) -> ForegroundEnd:
    evidence = FailedAttempts()
    home = home_of(configuration)

    teller = _Teller(evidence, progress)
    _look_first(order, configuration, catalogs)
    async with open_local(configuration, catalogs=catalogs, watch=teller.watch) as (local, store):
        with _stoppable(local, progress), _drawn(progress):
            state = await _finished(local, store, order, configuration, teller)
        source = (await local.playbooks.read_stored(store, state.plan.playbook.hash)).source
        await _complete(evidence, state, store)
        await _forget(home, store, configuration)
    return ForegroundEnd(state, evidence, order.source or source)


def _look_first(order: ExecutionRequest, configuration: Configuration, catalogs: Sequence[Path]) -> None:
    """A home is made only for a playbook that can run. Raises CommandFailure, PlaybookInvalid, CannotRun."""
    home, settings = home_of(configuration), configuration.settings
    if store_file_of(store_url(configuration)) is None or home.exists:
        return
    if order.source is None:
        where = settings.store or home.folder
        raise CommandFailure("unknown-execution", f"there are no executions in {where}", hint=_ELSEWHERE)
    playbooks = Playbooks(catalogs, settings.allow_kinds)
    kinds = installed_kinds().with_allowed(settings.allow_kinds)
    Preflight(playbooks, kinds, result_store_names(configuration)).check(playbooks.read(order.source))


class _Teller:
    """Passes on what happens, but nothing before it is said which execution it is."""

    def __init__(self, evidence: FailedAttempts, progress: Progress) -> None:
        self._evidence = evidence
        self._progress = progress
        self._early: list[tuple[str, Sequence[Event], ExecutionState]] | None = []

    def watch(self, execution_id: str, events: Sequence[Event], state: ExecutionState) -> None:
        self._evidence.observe(execution_id, events)
        if self._early is not None:
            self._early.append((execution_id, events, state))
        else:
            self._progress.observe(execution_id, events, state)

    def say(self, message: str) -> None:
        self._progress.say(message)
        early, self._early = self._early or [], None
        for one in early:
            self._progress.observe(*one)


async def _finished(
    local: Local, store: Store, order: ExecutionRequest, configuration: Configuration, teller: _Teller
) -> ExecutionState:
    """From the order to the end. Raises CommandFailure."""
    execution_id = ""
    try:
        begun = await order.begin(local, store)
        await local.flush()
        execution_id = begun  # from here on it can be resumed
        where = configuration.settings.store or str(home_of(configuration).folder)
        teller.say(f"execution {execution_id}, kept in {where}")
        return await local.wait_for_end(execution_id)
    except StoreError as error:
        if not execution_id:
            raise
        code = "store-full" if isinstance(error, StoreFull) else "store"
        message = f"{error}; what was recorded before is safe, and the execution can be resumed"
        hint = f"{error.hint}; then: " if error.hint else ""
        resume = FollowUp(configuration).resume_command(execution_id)
        raise CommandFailure(code, message, hint=hint + resume, exit_code=3) from None


def _failure(error: NoetlError, order: ExecutionRequest) -> CommandFailure | None:
    """What an error of the engine means to the caller; None if any command knows that."""
    match error:
        case PlaybookInvalid():
            return invalid_playbook(error.problems, order.source.text if order.source else "")
        case CannotRun():
            return _unfit(error, order.source)
        case AlreadyRunning():
            return CommandFailure("running", str(error), hint="one process at a time runs an execution")
        case Refused():
            return CommandFailure("refused", str(error))
        case CannotFork():
            return CommandFailure("cannot-fork", str(error), hint=error.hint)
        case ExecutionUnknown():
            return CommandFailure("unknown-execution", str(error), hint=error.hint or _ELSEWHERE)
        case _:
            return None


def _unfit(error: CannotRun, source: PlaybookSource | None) -> CommandFailure:
    """With the lines that lack something, unless they stand in the files of children."""
    here = source is not None and {problem.file for problem in error.problems} == {source.file or source.name}
    text = source.text if source is not None and here else ""
    return CommandFailure("cannot-run", str(error), hint=error.hint, problems=error.problems, text=text)


@contextlib.contextmanager
def _stoppable(local: Local, progress: Progress) -> Iterator[None]:
    """Signals stop the engine, not the program."""
    loop = asyncio.get_running_loop()
    received = 0
    killing: list[asyncio.Task[None]] = []

    def stop() -> None:
        nonlocal received
        received += 1
        if received == 1:
            progress.say("stopping after the attempts in flight; again kills")
            local.interrupt()
        elif received == 2:
            progress.close()
            # Code that nobody can interrupt must not keep the program.
            last = Timer(PATIENCE, os._exit, [1])
            last.daemon = True
            last.start()
            killing.append(loop.create_task(local.kill()))

    signals = (signal.SIGINT, signal.SIGTERM)
    for one in signals:
        loop.add_signal_handler(one, stop)
    try:
        yield
    finally:
        for one in signals:
            loop.remove_signal_handler(one)


@contextlib.contextmanager
def _drawn(progress: Progress) -> Iterator[None]:
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


async def _complete(evidence: FailedAttempts, state: ExecutionState, store: Store) -> None:
    """Of what failed before this process began, only the log knows."""
    if state.failures and evidence.attempt_of(state.execution_id, state.failures[0].run) is None:
        async for page in read_events(store, state.execution_id):
            evidence.observe(state.execution_id, page)


async def _forget(home: Home, store: Store, configuration: Configuration) -> None:
    """Some executions that ended long ago go, and results past their time; from the embedded store alone."""
    days = configuration.settings.keep_days
    if configuration.settings.store:
        return
    now = time.time_ns() // 1_000
    with contextlib.suppress(StoreError, ResultError, OSError):
        results = result_store_of(configuration, home, store)
        if days:
            await delete_ended(home, store, results, now - days * _DAY, MOST_FORGOTTEN)
        await drop_expired(home, store, results, now, MOST_FORGOTTEN)
