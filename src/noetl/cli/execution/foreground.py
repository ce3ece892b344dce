"""Executions that run in this process until they are over: the one place that knows the engine."""

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from threading import Timer
from typing import Any, Protocol

from msgspec import Struct

from noetl.cli.execution.evidence import Evidence
from noetl.cli.execution.place import Again, home_of, owners_of, store_url
from noetl.cli.execution.progress import Progress
from noetl.cli.failure import Failure, invalid
from noetl.dsl.problem import PlaybookInvalid
from noetl.events.event import Event
from noetl.kernel.state import ExecutionState
from noetl.loading import installed_kinds
from noetl.local import AlreadyRunning, CannotRun, Local, Source
from noetl.model import NoetlError
from noetl.ports.store import ExecutionUnknown, Store, StoreError, StoreFull
from noetl.server.playbooks import Playbooks
from noetl.server.reading import events_after
from noetl.settings import Configuration
from noetl.stores import open_store
from noetl.tools.hosting import Tools

PATIENCE = 3.0
"""Seconds that everything has to end after the second signal."""

_DAY = 86_400 * 1_000_000
_ELSEWHERE = "--home or --store name another place; `noetl executions list` shows what is there"


class Order(Protocol):
    """What is asked of the engine. `source` is the document that comes with it, if one does."""

    @property
    def source(self) -> Source | None: ...

    async def begin(self, local: Local) -> str:
        """The id of the execution that runs from here on. Raises NoetlError."""
        ...


class Start(Struct, frozen=True, kw_only=True):
    """Run this playbook."""

    source: Source
    workload: dict[str, Any] = {}
    ctx: dict[str, Any] = {}
    labels: dict[str, str] = {}
    idempotency_key: str = ""
    timeout: float | None = None

    async def begin(self, local: Local) -> str:
        return await local.start(
            self.source,
            workload=self.workload,
            ctx=self.ctx,
            labels=self.labels,
            idempotency_key=self.idempotency_key,
            timeout=self.timeout,
        )


class Resume(Struct, frozen=True):
    """Go on with an execution that was interrupted."""

    execution_id: str
    source: None = None

    async def begin(self, local: Local) -> str:
        return await local.resume(self.execution_id)


class Retry(Struct, frozen=True):
    """Go on with a failed execution at what failed."""

    execution_id: str
    by: str = ""
    source: None = None

    async def begin(self, local: Local) -> str:
        return await local.retry(self.execution_id, by=self.by)


class Ended(Struct, frozen=True):
    """How far an execution came, and what its playbook was read from."""

    state: ExecutionState
    evidence: Evidence
    source: Source


def run_here(
    order: Order, configuration: Configuration, progress: Progress, catalogs: Sequence[Path]
) -> Ended:
    """Runs until the end, or until it is interrupted. Raises Failure.

    The first SIGINT or SIGTERM stops after the attempts in flight, the second at once.
    """
    try:
        return asyncio.run(_run(order, configuration, progress, catalogs))
    except NoetlError as error:
        raise _failure(error, order) or error from None
    finally:
        progress.close()


async def _run(
    order: Order, configuration: Configuration, progress: Progress, catalogs: Sequence[Path]
) -> Ended:
    evidence = Evidence()

    def watch(execution_id: str, events: Sequence[Event], state: ExecutionState) -> None:
        evidence.see(execution_id, events)
        progress.see(execution_id, events, state)

    async with _opened(order, configuration) as store:
        engine = Local(
            store,
            owners=owners_of(configuration),
            slots=configuration.settings.slots,
            catalogs=catalogs,
            allow_kinds=configuration.settings.allow_kinds,
            watch=watch,
            tools=Tools(installed_kinds().allowing(configuration.settings.allow_kinds)),
        )
        async with engine as local:
            with _stoppable(local, progress), _drawn(progress):
                state = await _finished(local, order, configuration, progress)
            source = (await local.playbooks.stored(store, state.plan.playbook.hash)).source
        await _complete(evidence, state, store)
        await _forget(store, configuration)
    return Ended(state, evidence, order.source or source)


@contextlib.asynccontextmanager
async def _opened(order: Order, configuration: Configuration) -> AsyncIterator[Store]:
    """The store. One is made only for a playbook that is valid."""
    home, settings = home_of(configuration), configuration.settings
    if not settings.store and not home.exists:
        if order.source is None:
            raise Failure("unknown-execution", f"there are no executions in {home.folder}", hint=_ELSEWHERE)
        Playbooks(allow_kinds=settings.allow_kinds).read(order.source)
    if not settings.store:
        home.make()
    store = open_store(store_url(configuration))
    try:
        yield store
    finally:
        await store.close()


async def _finished(
    local: Local, order: Order, configuration: Configuration, progress: Progress
) -> ExecutionState:
    """From the order to the end. Raises Failure."""
    execution_id = ""
    try:
        execution_id = await order.begin(local)
        where = configuration.settings.store or str(home_of(configuration).folder)
        progress.say(f"execution {execution_id}, kept in {where}")
        return await local.finished(execution_id)
    except StoreError as error:
        if not execution_id:
            raise
        code = "store-full" if isinstance(error, StoreFull) else "store"
        message = f"{error}; what was recorded before is safe, and the execution can be resumed"
        hint = f"{error.hint}; then: " if error.hint else ""
        resume = Again(configuration).resume(execution_id)
        raise Failure(code, message, hint=hint + resume, exit_code=3) from None


def _failure(error: NoetlError, order: Order) -> Failure | None:
    """What an error of the engine means to the caller; None if any command knows that."""
    match error:
        case PlaybookInvalid():
            return invalid(error.problems, order.source.text if order.source else "")
        case CannotRun():
            text = order.source.text if order.source else ""
            problems = getattr(error, "problems", ())
            return Failure("cannot-run", str(error), hint=error.hint, problems=problems, text=text)
        case AlreadyRunning():
            return Failure("running", str(error), hint="one process at a time runs an execution")
        case ExecutionUnknown():
            return Failure("unknown-execution", str(error), hint=error.hint or _ELSEWHERE)
        case _:
            return None


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


async def _complete(evidence: Evidence, state: ExecutionState, store: Store) -> None:
    """Of what failed before this process began, only the log knows."""
    if state.failures and evidence.attempt(state.execution_id, state.failures[0].run) is None:
        evidence.see(
            state.execution_id, [event async for event in events_after(store, state.execution_id, 0)]
        )


async def _forget(store: Store, configuration: Configuration) -> None:
    """Executions that ended long ago go, from the embedded store alone."""
    days = configuration.settings.keep_days
    if days and not configuration.settings.store:
        with contextlib.suppress(StoreError):
            await store.prune(before=time.time_ns() // 1_000 - days * _DAY)
