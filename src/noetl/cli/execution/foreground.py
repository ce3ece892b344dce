"""Executions that run in this process until they are over: the one place that knows the engine."""

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from threading import Timer
from typing import Any, TypeAlias

from msgspec import Struct

from noetl.cli.execution.evidence import Evidence
from noetl.cli.execution.place import Again
from noetl.cli.execution.progress import Progress
from noetl.cli.failure import Failure, invalid
from noetl.dsl.problem import PlaybookInvalid
from noetl.events.event import Event
from noetl.homes import home_of, store_url
from noetl.kernel.state import ExecutionState
from noetl.local import AlreadyRunning, CannotRun, Local, Source
from noetl.ports.store import ExecutionUnknown, Store, StoreError, StoreFull
from noetl.server.logs import TaskLog
from noetl.server.records import read_events
from noetl.settings import Configuration
from noetl.stores import open_store
from noetl.stores.owner import Owners

PATIENCE = 3.0
"""Seconds that everything has to end after the second signal."""

_DAY = 86_400 * 1_000_000


class Start(Struct, frozen=True, kw_only=True):
    """Run this playbook."""

    source: Source
    workload: dict[str, Any] = {}
    ctx: dict[str, Any] = {}
    labels: dict[str, str] = {}
    idempotency_key: str = ""
    timeout: float | None = None


class Resume(Struct, frozen=True):
    """Go on with an execution that was interrupted."""

    execution_id: str


Order: TypeAlias = Start | Resume


class Ended(Struct, frozen=True):
    """How far an execution came. `source` is None if the store no longer has it."""

    state: ExecutionState
    evidence: Evidence
    source: Source | None


def run_here(
    order: Order, configuration: Configuration, progress: Progress, catalogs: Sequence[Path]
) -> Ended:
    """Runs until the end, or until it is interrupted. Raises Failure.

    The first SIGINT or SIGTERM stops after the attempts in flight, the second at once.
    """
    try:
        return asyncio.run(_run(order, configuration, progress, catalogs))
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
            owners=Owners(home_of(configuration).owners),
            logs=TaskLog(home_of(configuration).logs),
            slots=configuration.settings.slots,
            catalogs=catalogs,
            allow_kinds=configuration.settings.allow_kinds,
            watch=watch,
        )
        async with engine as local:
            with _stoppable(local, progress), _drawn(progress):
                state = await _finished(local, order, configuration, progress)
            source = (await local.playbooks.stored(store, state.plan.playbook.hash)).source
        await _complete(evidence, state, store)
        await _forget(store, configuration)
    return Ended(state, evidence, order.source if isinstance(order, Start) else source)


@contextlib.asynccontextmanager
async def _opened(order: Order, configuration: Configuration) -> AsyncIterator[Store]:
    """The store, made if there is none; but not in order to look for something in it."""
    home = home_of(configuration)
    if not configuration.settings.store:
        if isinstance(order, Resume) and not home.exists:
            raise _unknown(order.execution_id, configuration)
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
    again = Again(configuration)
    try:
        execution_id = await _begun(local, order)
        where = configuration.settings.store or str(home_of(configuration).folder)
        progress.say(f"execution {execution_id}, kept in {where}")
        return await local.finished(execution_id)
    except PlaybookInvalid as error:
        raise invalid(error.problems, order.source.text if isinstance(order, Start) else "") from None
    except CannotRun as error:
        raise Failure(
            "cannot-run", str(error), hint=error.hint, problems=getattr(error, "problems", ())
        ) from None
    except AlreadyRunning as error:
        raise Failure("running", str(error), hint="it can be run by one process at a time") from None
    except ExecutionUnknown:
        raise _unknown(order.execution_id if isinstance(order, Resume) else "", configuration) from None
    except StoreError as error:
        if not execution_id:
            raise
        code = "store-full" if isinstance(error, StoreFull) else "store"
        message = f"{error}; what was recorded before is safe, and the execution can be resumed"
        hint = f"{error.hint}; then: " if error.hint else ""
        raise Failure(code, message, hint=hint + again.resume(execution_id), exit_code=3) from None


async def _begun(local: Local, order: Order) -> str:
    if isinstance(order, Resume):
        return await local.resume(order.execution_id)
    return await local.start(
        order.source,
        workload=order.workload,
        ctx=order.ctx,
        labels=order.labels,
        idempotency_key=order.idempotency_key,
        timeout=order.timeout,
    )


def _unknown(execution_id: str, configuration: Configuration) -> Failure:
    where = configuration.settings.store or str(home_of(configuration).folder)
    hint = "--home or --store name another place; `noetl executions list` shows what is there"
    return Failure("unknown-execution", f"there is no execution {execution_id} in {where}", hint=hint)


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
        async for page in read_events(store, state.execution_id):
            evidence.see(state.execution_id, page)


async def _forget(store: Store, configuration: Configuration) -> None:
    """Executions that ended long ago go, from the embedded store alone."""
    days = configuration.settings.keep_days
    if days and not configuration.settings.store:
        with contextlib.suppress(StoreError):
            await store.prune(before=time.time_ns() // 1_000 - days * _DAY)
