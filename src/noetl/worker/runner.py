"""Drives the runs that a worker owns: asks the kernel what they want, and does it."""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Coroutine
from functools import partial
from typing import TypeVarTuple, assert_never

from noetl.events.bodies import EventBody, StepFailed
from noetl.kernel import advance, cancel_run, judge, judge_without_policy, pause_run
from noetl.kernel.pipeline.moves import Fetch, Finish, Record, RunTask, Suspend, Wait
from noetl.kernel.state.run_state import RunState
from noetl.model.outcome import ErrorInfo, Outcome
from noetl.model.reference import may_hold_marker
from noetl.model.secret import SECRET_KEY_PREFIX
from noetl.ports.ledger import Ledger
from noetl.ports.results import ResultError
from noetl.tools.host.worker_tools import Tools
from noetl.worker.attempt import run_attempt, run_pure_attempt
from noetl.worker.claimed_run import ClaimedRun
from noetl.worker.keychain.execution_keychain import Keychain
from noetl.worker.keychain.keychains import Keychains
from noetl.worker.value_cache import ValueCache

Args = TypeVarTuple("Args")

PATIENCE = 2.0
"""Seconds that an interrupted task has for tidying up."""
MOST_CHAINED = 64
"""Runs of one execution in a row, before others have their turn."""


class Runner:
    """Runs pipelines of many executions at once.

    `wake` is called when there is something to do for `drive` or a slot is free, `at` calls back at a time,
    `broken` hears of what should never be raised: nobody could go on with the run.
    """

    def __init__(
        self,
        tools: Tools,
        *,
        now: Callable[[], int],
        wake: Callable[[], None],
        at: Callable[[int, Callable[[], None]], None],
        broken: Callable[[BaseException], None],
        keychains: Keychains,
    ) -> None:
        self._keychains = keychains
        self._tools = tools
        self._now = now
        self._wake = wake
        self._at = at
        self._broken = broken
        self._seats: dict[tuple[str, str], ClaimedRun] = {}
        self._todo: deque[ClaimedRun] = deque()
        self._held = False
        self._stored = ValueCache()

    @property
    def seats(self) -> int:
        """How many runs it owns."""
        return len(self._seats)

    @property
    def busy(self) -> bool:
        """Whether `drive` has something to do."""
        return bool(self._todo) and not self._held

    @property
    def in_flight(self) -> int:
        """Attempts that have begun and not ended."""
        return sum(seat.begun for seat in self._seats.values())

    def take(self, ledger: Ledger, run: RunState) -> None:
        """Owns a run that was just claimed."""
        seat = ClaimedRun(ledger, run)
        self._seats[seat.place] = seat
        seat.keychain = self._keychains.of(ledger)
        if seat.keychain is not None and not seat.keychain.opened:
            self._beside(seat, self._open, seat, seat.keychain)
            return
        self._queue(seat)

    def look(self, execution_id: str, run: str) -> None:
        """Something about a run has changed from outside."""
        if seat := self._seats.get((execution_id, run)):
            self._queue(seat)

    def look_at_all(self, execution_id: str) -> None:
        """Something about the execution has: it pauses or stops."""
        for seat in list(self._seats.values()):
            if seat.ledger.execution_id == execution_id:
                self._queue(seat)

    def hold(self) -> None:
        """Begins nothing any more; what is in flight may end."""
        self._held = True

    async def kill(self) -> None:
        """Interrupts everything in flight. Nothing is reported."""
        self._held = True
        tasks = [task for seat in self._seats.values() for task in seat.tasks.values()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=PATIENCE)

    def drive(self, until: float) -> None:
        """Works until that moment (`time.monotonic`), or nothing is to be done before something happens."""
        while self._todo and not self._held:
            seat = self._todo.popleft()
            seat.queued = False
            self._go_on(seat, until)
            if time.monotonic() > until:
                return

    def _queue(self, seat: ClaimedRun) -> None:
        if not seat.queued:
            seat.queued = True
            self._todo.append(seat)
            self._wake()

    def _go_on(self, seat: ClaimedRun, until: float) -> None:
        ledger = seat.ledger
        while seat.owned:
            if ledger.stopping:
                self._interrupt(seat)
                return
            if seat.keychain is not None and not seat.keychain.opened:
                return
            if ledger.paused:
                if (body := pause_run(seat.run)) is None:
                    return
                ledger.report(seat.run, body)
                continue
            if not self._step(seat):
                return
            if time.monotonic() > until:
                self._queue(seat)
                return
        self._leave(seat)

    def _step(self, seat: ClaimedRun) -> bool:
        """One instruction of the kernel. False if the run has to wait for something."""
        ledger, run = seat.ledger, seat.run
        keychain = seat.keychain
        move = advance(run, self._now(), keychain.secrets if keychain else None, self._stored)
        match move:
            case RunTask():
                return self._run_task(seat, move)
            case Record():
                ledger.report(run, move.body)
                return True
            case Finish():
                self._report(seat, move.body)
                return True
            case Wait(until=moment):
                if moment is not None and moment != seat.waits_until:
                    seat.waits_until = moment
                    self._at(moment, partial(self._queue, seat))
                return False
            case Suspend():
                return False
            case Fetch(keys=keys):
                self._fetch(seat, keys, partial(self._queue, seat))
                return False
            case _:
                assert_never(move)

    def _run_task(self, seat: ClaimedRun, move: RunTask) -> bool:
        """Begins the task, or does it at once. False if nothing else can be begun meanwhile."""
        ledger, run = seat.ledger, seat.run
        if self._tools.effect(move.task.kind) == "pure":
            outcome = run_pure_attempt(self._tools, ledger, run, move, seat.keychain)
            follows = judge_without_policy(run, move, outcome)
            if follows is not None:
                self._report(seat, *move.begins, *follows)
            else:
                ledger.report(run, *move.begins)
                self._processed(seat, move, outcome)
            return True
        ledger.report(run, *move.begins)
        seat.begun += 1
        # What its references stand for may not be stored before everything is durable.
        if self._tools.repeatable(move.task.kind, move.inputs) and not may_hold_marker(move.args):
            self._begin(seat, move)
        else:
            ledger.when_durable(partial(self._begin, seat, move))
        return run.loop is not None

    def _report(self, seat: ClaimedRun, *bodies: EventBody) -> None:
        """Records what may end the run; then the seat has the next one of the execution, if there is one."""
        go_on = not self._held and seat.chained < MOST_CHAINED and seat.idle
        following = seat.ledger.report(seat.run, *bodies, claim_next=go_on)
        if following is not None:
            del self._seats[seat.place]
            seat.follow(following)
            self._seats[seat.place] = seat

    def _begin(self, seat: ClaimedRun, move: RunTask) -> None:
        if not seat.owned or seat.interrupted:
            seat.begun -= 1
            return
        seat.tasks[move.iteration] = self._task(self._await, seat, move)

    def _task(self, work: Callable[[*Args], Coroutine[None, None, None]], *args: *Args) -> asyncio.Task[None]:
        return asyncio.get_running_loop().create_task(self._watched(work, *args))

    async def _watched(self, work: Callable[[*Args], Coroutine[None, None, None]], *args: *Args) -> None:
        try:
            await work(*args)
        except Exception as error:  # noqa: BLE001 -- whatever it is, nobody may wait for the run for ever
            self._broken(error)

    async def _await(self, seat: ClaimedRun, move: RunTask) -> None:
        try:
            outcome = await run_attempt(self._tools, seat.ledger, seat.run, move, seat.keychain)
        finally:
            seat.tasks.pop(move.iteration, None)
            seat.begun -= 1
            self._wake()
        self._processed(seat, move, outcome)

    def _processed(self, seat: ClaimedRun, move: RunTask, outcome: Outcome) -> None:
        if not seat.owned or seat.interrupted:
            return
        waited_for = seat.ledger.paused or seat.ledger.stopping
        if not waited_for and (follows := judge_without_policy(seat.run, move, outcome)) is not None:
            self._report(seat, *follows)
            self._queue(seat)
            return
        masked = seat.keychain.secrets.masked if seat.keychain else None
        verdict = judge(seat.run, move.iteration, outcome, self._now(), masked, self._stored)
        if isinstance(verdict, Fetch):
            self._fetch(seat, verdict.keys, partial(self._processed, seat, move, outcome))
            return
        seat.ledger.report(seat.run, verdict)
        self._queue(seat)

    def _fetch(self, seat: ClaimedRun, keys: tuple[str, ...], then: Callable[[], None]) -> None:
        """Gets stored values and secrets that the run needs, and goes on."""
        seat.begun += 1
        self._beside(seat, self._get, seat, keys, then)

    def _beside(
        self, seat: ClaimedRun, work: Callable[[*Args], Coroutine[None, None, None]], *args: *Args
    ) -> None:
        task = self._task(work, *args)
        seat.fetches.add(task)
        task.add_done_callback(seat.fetches.discard)

    async def _open(self, seat: ClaimedRun, keychain: Keychain) -> None:
        await keychain.open()
        self._queue(seat)

    async def _get(self, seat: ClaimedRun, keys: tuple[str, ...], then: Callable[[], None]) -> None:
        try:
            if secret := tuple(key for key in keys if key.startswith(SECRET_KEY_PREFIX)):
                seat.keychain = self._keychains.make(seat.ledger)
                await seat.keychain.open()
                await seat.keychain.fetch(secret)
                keys = tuple(key for key in keys if key not in secret)
            await self._stored.fetch(keys, seat.ledger.read_blob)
        except Exception as error:  # noqa: BLE001 -- whatever it is, the run must not wait for ever
            if seat.owned:
                seat.ledger.report(seat.run, StepFailed(run=seat.run.id, error=_unstored(error)))
            self._queue(seat)
        else:
            then()
        finally:
            seat.begun -= 1
            self._wake()

    def _interrupt(self, seat: ClaimedRun) -> None:
        """The execution is cancelled: tasks are stopped, then the run ends."""
        if not seat.interrupted:
            seat.interrupted = True
            for task in list(seat.tasks.values()):
                task.cancel()
            seat.tasks[-1] = self._task(self._end_interrupted, seat, list(seat.tasks.values()))

    async def _end_interrupted(self, seat: ClaimedRun, tasks: list[asyncio.Task[None]]) -> None:
        if tasks:
            await asyncio.wait(tasks, timeout=PATIENCE)
        seat.tasks.clear()
        if seat.owned:
            seat.ledger.report(seat.run, cancel_run(seat.run))
        self._leave(seat)

    def _leave(self, seat: ClaimedRun) -> None:
        """The run is no longer ours: it ended, waits without us, or somebody took it away."""
        if self._seats.get(seat.place) is not seat:
            return
        del self._seats[seat.place]
        for task in seat.tasks.values():
            if task is not asyncio.current_task():
                task.cancel()
        self._wake()


def _unstored(error: Exception) -> ErrorInfo:
    message = f"a stored value cannot be read: {error}"
    if not isinstance(error, ResultError):
        return ErrorInfo(kind="tool", message=f"{message} ({type(error).__name__})")
    return ErrorInfo(kind=error.kind, message=f"{message}; {error.hint}" if error.hint else message)
