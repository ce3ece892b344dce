"""Which run is worked on next, and when what was decided is written: fairness, slots and pacing."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Protocol

from noetl.engine.commit_log import CommitLog
from noetl.engine.execution import WORKER, LiveExecution
from noetl.engine.listener import EngineListener, EventHandler
from noetl.events import bodies as of
from noetl.events.bodies import EventBody
from noetl.kernel.net.commands import claim_of
from noetl.kernel.state.run_state import RunState, Shard, claimable_part
from noetl.ports.ledger import Ledger

SLOTS = 32
TURN = 0.005
"""Seconds of work after which the event loop gets its turn."""
LINGER = 0.025
"""Seconds that what is decided waits for more, while tasks are in flight and nobody waits for it."""
FLUSH_AT = 2_048
"""Events that wait before a turn ends with a commit though nobody waits for it and more could be done."""


class Worker(Protocol):
    """What runs claimed runs, in the event loop that the scheduler runs in."""

    @property
    def claimed(self) -> int:
        """How many runs it owns."""
        ...

    @property
    def busy(self) -> bool:
        """Whether `drive` has something to do."""
        ...

    @property
    def in_flight(self) -> int:
        """Attempts that have begun and not ended."""
        ...

    def take(self, ledger: Ledger, run: RunState, shard: Shard | None = None) -> None:
        """Owns a run or shard that was just claimed."""
        ...

    def recheck(self, execution_id: str, run: str) -> None:
        """Something about a run has changed from outside."""
        ...

    def recheck_all(self, execution_id: str) -> None:
        """Something about all runs of an execution has."""
        ...

    def drive(self, until: float) -> None:
        """Works until that moment (`System.monotonic`), or nothing is to be done before something happens."""
        ...

    def hold(self) -> None:
        """Begins nothing any more; what is in flight may end."""
        ...

    def give_back(self) -> None:
        """Lets others have the runs of which nothing is in flight. After `hold`."""
        ...

    async def kill(self) -> None:
        """Interrupts everything in flight. Nothing is reported."""
        ...

    def forget(self, execution_id: str) -> None:
        """The execution is over: frees what was kept for it."""
        ...


class Scheduler(EngineListener):
    """Gives ready runs to the worker, one of each execution in turn, and has the commit log written in time.

    `stopped` is done when it works no more: after `interrupt` or `stop`, or with the error that ended it.
    """

    def __init__(
        self,
        commit_log: CommitLog,
        worker: Worker,
        wake: asyncio.Event,
        monotonic: Callable[[], float],
        *,
        slots: int = SLOTS,
    ) -> None:
        self._commit_log = commit_log
        self._worker = worker
        self._wake = wake
        self._monotonic = monotonic
        self._slots = slots
        self._ready: OrderedDict[str, LiveExecution] = OrderedDict()
        self._interrupted = False
        self._background_flush: asyncio.Task[None] | None = None
        self._lingering: asyncio.TimerHandle | None = None
        self.stopped: asyncio.Future[None]

    def handlers(self) -> Mapping[type[EventBody], EventHandler]:
        return {
            of.RunResumed: lambda live, body, _: self._worker.recheck(live.execution_id, body.run),
            of.StepFailed: self._on_step_failed,
            of.StepCompletedByHand: lambda live, body, _: self._worker.recheck(live.execution_id, body.run),
            of.StepSkipped: lambda live, body, _: self._worker.recheck(live.execution_id, body.run),
            of.CancelRequested: lambda live, *_: self._worker.recheck_all(live.execution_id),
            of.ExecutionPaused: lambda live, *_: self._worker.recheck_all(live.execution_id),
        }

    def pending(self, live: LiveExecution) -> None:  # noqa: ARG002 - whose it is makes no difference
        self._wake.set()

    def ready(self, live: LiveExecution) -> None:
        if not self._slots:
            return  # a server gives its runs to workers elsewhere
        if live.start_key and not live.durable:
            # Another execution may have its key: nothing begins before that is known.
            live.when_durable(lambda: self.ready(live))
            return
        self._ready[live.execution_id] = live
        self._wake.set()

    def over(self, live: LiveExecution) -> None:
        self._worker.forget(live.execution_id)

    def interrupt(self) -> None:
        """Begins nothing new; `stopped` is done when the attempts in flight are recorded."""
        self._interrupted = True
        self._wake.set()

    async def kill(self) -> None:
        """Ends everything at once. What is not recorded is lost, and can be done again."""
        await self._worker.kill()
        self.stop(None)

    def stop(self, error: BaseException | None) -> None:
        """Whoever waits for anything gets the error, or learns that no more will be done."""
        if self.stopped.done():
            return
        if error is None:
            self.stopped.set_result(None)
        else:
            self.stopped.set_exception(error)

    async def run(self) -> None:
        """Works until it is interrupted or cancelled."""
        commit_log, worker = self._commit_log, self._worker
        try:
            while True:
                self._wake.clear()
                if self._interrupted:
                    worker.hold()
                self._take_turn()
                if self._interrupted and not worker.in_flight:
                    worker.give_back()
                # While tasks are in flight what is decided may wait for more: a commit costs one flush of the
                # disk, whatever is in it. Without any, nothing else would bring it there.
                if commit_log.urgent or not (worker.busy or worker.in_flight):
                    await self._flush()
                elif commit_log.pending_events >= FLUSH_AT:
                    await self._flush_in_background()
                if self._interrupted and not worker.in_flight and not commit_log.dirty:
                    self.stop(None)
                    return
                if self._wake.is_set() or worker.busy:
                    await asyncio.sleep(0)
                else:
                    if commit_log.dirty:
                        self._flush_after_linger()
                    await self._wake.wait()
        except Exception as error:  # noqa: BLE001 - whoever waits for an execution gets it
            await worker.kill()
            self.stop(error)

    def _on_step_failed(self, live: LiveExecution, body: of.StepFailed, _: int) -> None:
        if body.source == "server":
            self._worker.recheck(live.execution_id, body.run)

    def _take_turn(self) -> None:
        """Claims and works until there is nothing to do, or others must have their turn.

        A run is claimed when its turn comes: so what is pure is claimed, done and recorded in one append.
        """
        until = self._monotonic() + TURN
        while self._claim() or self._worker.busy:
            self._worker.drive(until)
            if self._monotonic() > until:
                return

    def _claim(self) -> bool:
        """A free slot takes a run, one of each execution in turn; False if there is no slot or no run."""
        while self._ready and self._worker.claimed < self._slots and not self._interrupted:
            execution_id, live = self._ready.popitem(last=False)
            state = live.state
            if not state.ready or state.paused or state.stopping or state.over:
                continue
            part = claimable_part(state.runs[state.ready.first])
            live.submit(claim_of(part, WORKER))
            self._worker.take(live, *part)
            if state.ready:
                self._ready[execution_id] = live  # at the end of the line: the others come first
            return True
        return False

    async def _flush(self) -> None:
        if self._lingering is not None:
            self._lingering.cancel()
            self._lingering = None
        if self._background_flush is not None:
            flush, self._background_flush = self._background_flush, None
            await flush
        await self._commit_log.flush()

    async def _flush_in_background(self) -> None:
        """Writes what has gathered while more is done; waits if the last time is not over yet."""
        if self._background_flush is not None:
            await self._background_flush
        self._background_flush = asyncio.get_running_loop().create_task(self._commit_log.flush())
        self._background_flush.add_done_callback(lambda _: self._wake.set())
        await asyncio.sleep(0)

    def _flush_after_linger(self) -> None:
        """Has what is decided written after a moment, unless it is written before."""
        if self._lingering is None:

            def hurry() -> None:
                self._lingering = None
                self._commit_log.hurry()
                self._wake.set()

            self._lingering = asyncio.get_running_loop().call_later(LINGER, hurry)
