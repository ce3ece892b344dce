"""Processes on a clock of their own: each has an event loop, and the seed says which of them turns next.

When no process has something to do, the clock goes on to the next time that one of them asks for.
"""

import asyncio
from asyncio import events
from collections.abc import Callable, Coroutine
from contextlib import suppress
from heapq import heappop
from math import inf
from random import Random
from typing import Any, TypeVar, TypeVarTuple
from weakref import WeakSet

from noetl.system import System

Args = TypeVarTuple("Args")
T = TypeVar("T")

EPOCH = 1_700_000_000
"""Seconds since 1970 at which every simulation begins."""
SECOND = 1_000_000
DISPOSAL = 20
"""Turns that a process has for ending its tasks."""


class VirtualClock:
    """Seconds since the simulation began."""

    def __init__(self) -> None:
        self.now = 0.0

    def wall_time(self, skew: float = 0.0) -> int:
        """Microseconds since 1970, of a process whose clock is `skew` seconds fast."""
        return round((EPOCH + self.now + skew) * SECOND)


class VirtualLoop(asyncio.BaseEventLoop):
    """An event loop that turns when it is told to. Threads run inline."""

    _ready: Any
    _scheduled: Any
    _clock_resolution: float

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__()
        self._clock = clock
        self._tasks: WeakSet[asyncio.Task[Any]] = WeakSet()

    def create_task(self, coro: Any, **options: Any) -> "asyncio.Task[Any]":
        task: asyncio.Task[Any] = super().create_task(coro, **options)
        self._tasks.add(task)
        return task

    @property
    def open_tasks(self) -> "list[asyncio.Task[Any]]":
        """As `asyncio.all_tasks`, which looks at those of every loop that was not freed yet."""
        return [task for task in self._tasks if not task.done()]

    def time(self) -> float:
        return self._clock.now

    def run_in_executor(
        self, _executor: Any, func: Callable[[*Args], T], *args: *Args
    ) -> "asyncio.Future[T]":
        done: asyncio.Future[T] = self.create_future()
        try:
            done.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 - it is the caller's to handle
            done.set_exception(error)
        return done

    def turn(self) -> None:
        """Runs what is ready, once.

        As `_run_once` of the base class, without what files need: a simulation is a thousand short turns.
        """
        ready, scheduled = self._ready, self._scheduled
        limit = self._clock.now + self._clock_resolution
        while scheduled and scheduled[0]._when < limit:
            handle = heappop(scheduled)
            handle._scheduled = False
            ready.append(handle)
        outer = events._get_running_loop()  # where whoever simulates runs in a loop of its own
        events._set_running_loop(self)
        try:
            for _ in range(len(ready)):
                handle = ready.popleft()
                if not handle._cancelled:
                    handle._run()
        finally:
            events._set_running_loop(outer)

    @property
    def next_time(self) -> float:
        """When there is something to do; infinity if nothing will happen by itself."""
        if self._ready:
            return self._clock.now
        scheduled = self._scheduled
        while scheduled and scheduled[0]._cancelled:
            heappop(scheduled)._scheduled = False
        when: float = scheduled[0]._when if scheduled else inf
        return when

    def silence(self) -> None:
        """Nothing of what is ready runs any more, also in the present turn."""
        for handle in self._ready:
            handle.cancel()

    def _write_to_self(self) -> None:
        """Nobody sleeps."""


class VirtualProcess:
    """A loop that may die, or stand still for a while; what comes meanwhile piles up."""

    def __init__(self, name: str, clock: VirtualClock, random: Random, skew: float = 0.0) -> None:
        self.name = name
        self.alive = True
        self.asleep_until = 0.0
        self.began = clock.now
        self.loop = VirtualLoop(clock)
        self.errors: list[BaseException] = []
        self.loop.set_exception_handler(self._on_error)
        self._clock = clock
        self._main: asyncio.Task[Any] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.system = System(
            now=lambda: clock.wall_time(skew),
            monotonic=self.loop.time,
            new_execution_id=lambda: _execution_id(random, clock),
            new_session_id=lambda: f"{random.getrandbits(128):032x}",
            jitter=lambda: random.uniform(0.5, 1.5),
        )

    def start(self, main: Coroutine[Any, Any, Any]) -> "asyncio.Task[Any]":
        self._main = self.loop.create_task(main)
        return self._main

    @property
    def ended(self) -> bool:
        """Whether what it was started for is done. Raises what ended it."""
        if self._main is None or not self._main.done():
            return False
        if not self._main.cancelled():
            self._main.result()
        return True

    def call_after(self, seconds: float, action: Callable[[], object]) -> None:
        """From any process: what a message does here when it arrives."""
        if self.alive:
            self.loop.call_later(seconds, action)

    def spawn(self, work: Callable[[*Args], Coroutine[Any, Any, None]], *args: *Args) -> None:
        """Does something beside everything else; what it raises, nobody should."""
        task = self.loop.create_task(self._watched(work, *args))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _watched(self, work: Callable[[*Args], Coroutine[Any, Any, None]], *args: *Args) -> None:
        try:
            await work(*args)
        except Exception as error:  # noqa: BLE001 - whatever the code in here raises is what is looked for
            self.errors.append(error)

    def kill(self) -> None:
        self.alive = False
        self.loop.silence()

    def dispose(self) -> None:
        """Ends what is left of it, so that nothing of it runs when its memory is freed."""
        self.alive = False
        self.loop.set_exception_handler(lambda *_: None)
        for _ in range(DISPOSAL):
            if not (tasks := self.loop.open_tasks):
                break
            for task in tasks:
                task.cancel()
            self.loop.turn()
        for task in self.loop.open_tasks:  # that were killed before they began
            task._log_destroy_pending = False  # type: ignore[attr-defined]  # nobody needs to know
            with suppress(RuntimeError):  # it waits for something while it ends
                task.get_coro().close()
        self.loop.close()

    def _on_error(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        self.errors.append(error if error is not None else AssertionError(context["message"]))


def _execution_id(random: Random, clock: VirtualClock) -> str:
    """A UUID of version 7."""
    digits = f"{clock.wall_time() // 1_000:012x}7{random.getrandbits(12):03x}8{random.getrandbits(60):015x}"
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


class VirtualMachine:
    """All processes, one of which turns at a time."""

    def __init__(self, clock: VirtualClock, random: Random) -> None:
        self.clock = clock
        self.turns = 0
        self._random = random
        self._processes: list[VirtualProcess] = []

    def add(self, process: VirtualProcess) -> None:
        self._processes.append(process)

    def step(self) -> VirtualProcess | None:
        """One turn of one process, at once or later: which it was. None if nothing will happen any more."""
        now, moment = self.clock.now, inf
        due: list[VirtualProcess] = []
        for process in self._processes:
            if not process.alive:
                continue
            when = max(process.loop.next_time, process.asleep_until, now)
            if when < moment:
                moment, due = when, [process]
            elif when == moment < inf:
                due.append(process)
        if not due:
            return None
        self.clock.now = moment
        process = due[0] if len(due) == 1 else self._random.choice(due)
        self.turns += 1
        process.loop.turn()
        if process.errors and process.alive:
            raise process.errors[0]
        return process

    def dispose(self) -> None:
        for process in self._processes:
            process.dispose()
