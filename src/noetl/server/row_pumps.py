"""What a server does because of rows in its store: timers that are due, messages to be delivered."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import TypeVar

from noetl.engine.service import Service
from noetl.kernel.derived_rows import timer_of_key
from noetl.ports.shared_rows import SharedRows
from noetl.ports.store import OutboxMessage, StoreError, Timer
from noetl.server.plane.worker_plane import WorkerPlane

T = TypeVar("T")

BATCH = 1_000
TAKEN = 100
"""Messages that a server takes at once where there are several: it must be through before others may."""
PAUSE = 0.05
"""Seconds between two looks for ready runs of other servers."""
PATIENCE = 1.0
"""Seconds after which a timer that changed nothing, or could not be read, is looked at again."""
_DAY = 86_400.0
"""At most so long is waited at once, so that a clock that is set meanwhile is noticed."""


class TimerPump:
    """Has executions hear of their timers: one handle of the loop for the earliest, no trace of others.

    Where there are several servers each takes what it finds due, and nobody else does.
    """

    def __init__(self, service: Service, now: Callable[[], int]) -> None:
        self._service = service
        self._now = now
        self._due: int | None = None
        self._handle: asyncio.TimerHandle | None = None
        self._busy = False

    async def start(self) -> None:
        """Raises StoreError."""
        for timer in await self._service.store.timers(limit=1):
            self.arm(timer.due)

    def arm(self, due: int) -> None:
        """A timer is due then, in microseconds since 1970, unless it is taken away before."""
        if self._due is not None and self._due <= due:
            return
        self._due = due
        if not self._busy:
            self._wait((due - self._now()) / 1e6)

    def look(self) -> None:
        """Another server may have left some that are due."""
        self.arm(self._now())

    def close(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
        self._busy = True

    def _wait(self, seconds: float) -> None:
        if self._handle is not None:
            self._handle.cancel()
        loop = asyncio.get_running_loop()
        self._handle = loop.call_later(min(max(seconds, 0.0), _DAY), self._fire)

    def _fire(self) -> None:
        self._handle = None
        if self._due is not None and self._due > self._now():
            self._wait((self._due - self._now()) / 1e6)
            return
        self._busy, self._due = True, None
        self._service.spawn(self._pump())

    async def _pump(self) -> None:
        delay = 0.0
        try:
            timers = await self._due_timers()
            changed = [await self._tell(timer.execution_id, timer.key) for timer in timers]
            # What is due and not to be had is another server's.
            if not any(changed) and (timers or self._service.shared is not None):
                delay = PATIENCE
            # A timer is there until the append that it led to is written.
            await self._service.commit_log.flush()
            for timer in await self._service.store.timers(limit=1):
                self.arm(timer.due)
        except StoreError:
            # The commit log says so to all who ask; here it is only tried again.
            delay, self._due = PATIENCE, self._now()
        self._busy = False
        if self._due is not None:
            self._wait(max((self._due - self._now()) / 1e6, delay))

    async def _due_timers(self) -> list[Timer]:
        service, until = self._service, self._now()
        if service.shared is not None:
            return await service.shared.take_timers(until=until, limit=BATCH)
        return await service.store.timers(until=until, limit=BATCH)

    async def _tell(self, execution_id: str, key: str) -> bool:
        """Whether anything came of it. What cannot be read has no time."""
        try:
            live = await self._service.load(execution_id)
        except StoreError:
            return False
        return live is not None and bool(live.submit(timer_of_key(key)))


class OutboxPump:
    """Delivers messages in their order, as soon as they are durable, and what the last server left.

    Where there are several servers each takes what is there: the order counts within one execution only.
    """

    def __init__(self, service: Service, deliver: Callable[[OutboxMessage], Awaitable[None]]) -> None:
        self._service = service
        self._deliver = deliver
        self._last = 0
        self._busy = False
        self._more = False

    def ring(self) -> None:
        """There may be messages."""
        self._more = True
        if not self._busy:
            self._busy = True
            self._service.spawn(self._pump())

    async def _pump(self) -> None:
        try:
            while self._more:
                self._more = False
                # After the last one: what was delivered is there until the append that it led to is written.
                while messages := await self._patiently(self._next_messages):
                    await self._deliver_all(messages)
        except StoreError:
            return  # it will not be read again, or this process is about to end: the next start delivers
        finally:
            self._busy = False

    async def _next_messages(self) -> list[OutboxMessage]:
        if self._service.shared is not None:
            return await self._service.shared.take_outbox(limit=TAKEN)
        return await self._service.store.outbox(after=self._last)

    async def _deliver_all(self, messages: Sequence[OutboxMessage]) -> None:
        if self._service.shared is None:
            await self._deliver_each(messages)
            return
        by_execution: dict[str, list[OutboxMessage]] = {}
        for message in messages:
            by_execution.setdefault(message.execution_id, []).append(message)
        # Together: each waits for what it led to, and all of that goes into a few commits.
        await asyncio.gather(*map(self._deliver_each, by_execution.values()))

    async def _deliver_each(self, messages: Iterable[OutboxMessage]) -> None:
        for message in messages:
            self._last = message.id
            with suppress(StoreError):  # whose history is damaged goes nowhere, and the others do
                await self._patiently(partial(self._deliver, message))

    async def _patiently(self, work: Callable[[], Awaitable[T]]) -> T:
        return await self._service.commit_log.read_patiently(work)


class ReadyPump:
    """Takes runs that are ready and had no worker where they became so, as many as workers here want."""

    def __init__(self, service: Service, plane: WorkerPlane, rows: SharedRows) -> None:
        self._service = service
        self._plane = plane
        self._rows = rows
        self._looking = False

    def ring(self) -> None:
        """There may be some, or a worker that wants one."""
        if not self._looking and self._plane.wanted_runs:
            self._looking = True
            self._service.spawn(self._pump())

    async def _pump(self) -> None:
        try:
            for (pool, kinds), count in self._plane.wanted_runs.items():
                for row in await self._rows.take_ready(pool, kinds, limit=count):
                    self._plane.offer(row)
            self._plane.dispatch()
            await asyncio.sleep(PAUSE)
        except StoreError:
            return  # the next ring finds them
        finally:
            self._looking = False
