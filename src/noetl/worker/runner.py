"""Drives the runs that a worker owns: asks the kernel what they want, and does it."""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import TypeVarTuple, assert_never

from noetl.events.bodies import EventBody, LoopIterationCompleted, LoopStarted, StepFailed
from noetl.kernel.pipeline.interpreter import advance, advance_shard, cancel_run, is_in_flight, pause_run
from noetl.kernel.pipeline.moves import Fetch, Finish, Record, RunTask, Suspend, Wait
from noetl.kernel.pipeline.policy import judge, judge_without_policy
from noetl.kernel.pipeline.task_inputs import open_more_iterations
from noetl.kernel.state.run_state import RunState, Shard
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
MOST_OPENED = 16
"""Iterations of a loop that begin with one report: more would gain little, and a report stays small."""
MOST_ENDED = 2 * MOST_OPENED
"""Events of iterations that have ended, after which the next one is reported at once."""


class Runner:
    """Runs pipelines of many executions at once.

    `wake` is called when there is something to do for `drive` or a slot is free, `at` calls back at a time,
    `broken` hears of what should never be raised: nobody could go on with the run.
    """

    def __init__(
        self,
        tools: Tools,
        *,
        wake: Callable[[], None],
        at: Callable[[int, Callable[[], None]], None],
        broken: Callable[[BaseException], None],
        keychains: Keychains,
    ) -> None:
        self._keychains = keychains
        self._tools = tools
        self._now = tools.system.now
        self._monotonic = tools.system.monotonic
        self._wake = wake
        self._at = at
        self._broken = broken
        self._claimed: dict[tuple[str, str, int], ClaimedRun] = {}
        self._todo: deque[ClaimedRun] = deque()
        self._held = False
        self._values = ValueCache()

    @property
    def claimed(self) -> int:
        """How many runs it owns."""
        return len(self._claimed)

    @property
    def busy(self) -> bool:
        """Whether `drive` has something to do."""
        return bool(self._todo) and not self._held

    @property
    def in_flight(self) -> int:
        """Attempts that have begun and not ended."""
        return sum(claimed.open_attempts for claimed in self._claimed.values())

    def take(self, ledger: Ledger, run: RunState, shard: Shard | None = None) -> None:
        """Owns a run or shard that was just claimed."""
        claimed = ClaimedRun(ledger, run, shard)
        if (before := self._claimed.get(claimed.key)) is not None:
            self._leave(before)  # it was lost, and came back before that was noticed
        self._claimed[claimed.key] = claimed
        claimed.keychain = self._keychains.of(ledger)
        if claimed.keychain is not None and not claimed.keychain.opened:
            self._beside(claimed, self._open, claimed, claimed.keychain)
            return
        self._queue(claimed)

    def recheck(self, execution_id: str, run: str) -> None:
        """Something about a run has changed from outside."""
        for claimed in list(self._claimed.values()):
            if claimed.key[:2] != (execution_id, run):
                continue
            if self._held and not claimed.owned:
                self._leave(claimed)
            else:
                self._queue(claimed)

    def recheck_all(self, execution_id: str) -> None:
        """Something about the execution has: it pauses or stops."""
        for claimed in list(self._claimed.values()):
            if claimed.ledger.execution_id == execution_id:
                self._queue(claimed)

    def hold(self) -> None:
        """Begins nothing any more; what is in flight may end."""
        self._held = True
        for claimed in list(self._claimed.values()):
            self._report_ended(claimed)  # no turn would come for it
            if not claimed.owned:
                self._leave(claimed)  # `drive` would, and does nothing from here on

    def give_back(self) -> None:
        """Lets others have the runs of which nothing is in flight. After `hold`."""
        for claimed in list(self._claimed.values()):
            if claimed.open_attempts:
                continue
            if claimed.owned:
                claimed.ledger.give_back(claimed.run, claimed.shard)
            self._leave(claimed)

    async def kill(self) -> None:
        """Interrupts everything in flight. Nothing is reported."""
        self._held = True
        tasks: list[asyncio.Task[None]] = []
        for claimed in self._claimed.values():
            claimed.interrupted = True  # a tool may give an outcome all the same
            tasks += claimed.tasks.values()
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=PATIENCE)

    def forget(self, execution_id: str) -> None:
        """The execution is over: frees what was kept for it."""
        self._keychains.forget(execution_id)
        self._tools.forget(execution_id)

    def drive(self, until: float) -> None:
        """Works until that moment (`System.monotonic`), or nothing is to be done before something happens."""
        while self._todo and not self._held:
            claimed = self._todo.popleft()
            claimed.queued = False
            self._advance(claimed, until)
            if self._monotonic() > until:
                return

    def _queue(self, claimed: ClaimedRun) -> None:
        if not claimed.queued:
            claimed.queued = True
            self._todo.append(claimed)
            self._wake()

    def _advance(self, claimed: ClaimedRun, until: float) -> None:
        ledger = claimed.ledger
        if claimed.ended:
            self._report_ended(claimed)
        while claimed.owned:
            if ledger.stopping:
                self._interrupt(claimed)
                return
            if claimed.keychain is not None and not claimed.keychain.opened:
                return
            if ledger.paused:
                if not self._pause(claimed):
                    return
                continue
            if not self._step(claimed):
                return
            if self._monotonic() > until:
                self._queue(claimed)
                return
        self._leave(claimed)

    def _pause(self, claimed: ClaimedRun) -> bool:
        """Lets go between two tasks; False while one is in flight."""
        ledger, run, shard = claimed.ledger, claimed.run, claimed.shard
        if shard is not None:
            if is_in_flight(run.frames[index] for index in shard.open):
                return False
            ledger.give_back(run, shard)  # nothing is claimed in an execution that is paused
            return True
        if (body := pause_run(run)) is None:
            return False
        ledger.report(run, body)
        return True

    def _step(self, claimed: ClaimedRun) -> bool:
        """One instruction of the kernel. False if the run has to wait for something."""
        ledger, run, shard = claimed.ledger, claimed.run, claimed.shard
        secrets = claimed.keychain.secrets if claimed.keychain else None
        if shard is None:
            move = advance(run, self._now(), secrets, self._values)
        else:
            move = advance_shard(run, shard, self._now(), secrets, self._values)
        match move:
            case RunTask():
                return self._run_task(claimed, move)
            case Record():
                if shard is not None or type(move.body) is LoopStarted:
                    self._report(claimed, move.body)
                else:
                    ledger.report(run, move.body)
                return True
            case Finish():
                self._report(claimed, move.body)
                return True
            case Wait(until=moment):
                if moment is not None and moment != claimed.waits_until:
                    claimed.waits_until = moment
                    self._at(moment, partial(self._wait_over, claimed, moment))
                return False
            case Suspend():
                return False
            case Fetch(keys=keys):
                self._fetch(claimed, keys, partial(self._queue, claimed))
                return False
            case _:
                assert_never(move)

    def _wait_over(self, claimed: ClaimedRun, moment: int) -> None:
        # By the clock it may be a moment early, or the clock was set back: then it must wait once more.
        if claimed.waits_until == moment:
            claimed.waits_until = 0
        self._queue(claimed)

    def _run_task(self, claimed: ClaimedRun, move: RunTask) -> bool:
        """Begins the task, or does it at once. False if nothing else can be begun meanwhile."""
        ledger, run = claimed.ledger, claimed.run
        if self._tools.immediate(move.task.kind):
            # Begin and outcome of a pure task go into one report: nothing has to be durable between them.
            outcome = run_pure_attempt(self._tools, ledger, run, move, claimed.keychain)
            follows = judge_without_policy(run, move, outcome)
            if follows is not None:
                self._report(claimed, *move.begins, *follows)
            else:
                ledger.report(run, *move.begins, shard=claimed.shard)
                self._processed(claimed, move, outcome)
            return True
        moves = [move]
        begins: Sequence[EventBody] = move.begins
        if run.loop is not None:
            moves += open_more_iterations(run, move, self._now(), MOST_OPENED)
            begins = [body for each in moves for body in each.begins]
        ledger.report(run, *begins, shard=claimed.shard)
        claimed.open_attempts += len(moves)
        # What its references stand for may not be stored before everything is durable.
        if self._tools.repeatable(move.task.kind, move.inputs) and not may_hold_marker(move.args):
            self._begin(claimed, moves)
        else:
            ledger.when_durable(partial(self._begin, claimed, moves))
        return run.loop is not None and claimed.shard is None

    def _report(self, claimed: ClaimedRun, *bodies: EventBody) -> None:
        """Records what may end the run; then its slot has the next run of the execution, if there is one."""
        # The next run is claimed in the append that ends this one, which saves an append and a turn of the
        # scheduler; bounded, because the scheduler's fairness between executions is passed over meanwhile.
        claim_next = not self._held and claimed.chained < MOST_CHAINED and claimed.idle
        following = claimed.ledger.report(claimed.run, *bodies, shard=claimed.shard, claim_next=claim_next)
        if following is not None:
            del self._claimed[claimed.key]
            claimed.follow(*following)
            self._claimed[claimed.key] = claimed

    def _report_ended(self, claimed: ClaimedRun) -> None:
        """Records the iterations that have ended since the last turn of the run."""
        bodies = claimed.ended
        if bodies:
            claimed.ended = []
            if claimed.owned:
                claimed.ledger.report(claimed.run, *bodies, shard=claimed.shard)

    def _begin(self, claimed: ClaimedRun, moves: list[RunTask]) -> None:
        if not claimed.owned or claimed.interrupted:
            claimed.open_attempts -= len(moves)
            return
        loop = asyncio.get_running_loop()
        for move in moves:
            # Not by `_task`: that would wrap another coroutine around each attempt.
            claimed.tasks[move.iteration] = loop.create_task(self._await(claimed, move))

    def _task(self, work: Callable[[*Args], Coroutine[None, None, None]], *args: *Args) -> asyncio.Task[None]:
        return asyncio.get_running_loop().create_task(self._watched(work, *args))

    async def _watched(self, work: Callable[[*Args], Coroutine[None, None, None]], *args: *Args) -> None:
        try:
            await work(*args)
        except Exception as error:  # noqa: BLE001 - whatever it is, nobody may wait for the run for ever
            self._broken(error)

    async def _await(self, claimed: ClaimedRun, move: RunTask) -> None:
        try:
            try:
                outcome = await run_attempt(self._tools, claimed.ledger, claimed.run, move, claimed.keychain)
            finally:
                claimed.tasks.pop(move.iteration, None)
                claimed.open_attempts -= 1
                self._wake()
            self._processed(claimed, move, outcome)
        except Exception as error:  # noqa: BLE001 - as in `_watched`
            self._broken(error)

    def _processed(self, claimed: ClaimedRun, move: RunTask, outcome: Outcome) -> None:
        if not claimed.owned or claimed.interrupted:
            return
        waited_for = claimed.ledger.paused or claimed.ledger.stopping
        if not waited_for and (follows := judge_without_policy(claimed.run, move, outcome)) is not None:
            # The fast path for iterations that end at the same time, as those do that began with one commit:
            # one report for all of them saves a decision and a checksum for each. They are reported at the
            # next turn of the run, which is next; the slow path is a report of its own for each.
            # Not in a shard: there one ends after the other, and the last of them frees the slot.
            together = claimed.shard is None and len(claimed.ended) < MOST_ENDED
            if together and type(follows[-1]) is LoopIterationCompleted:
                claimed.ended += follows
            else:
                self._report_ended(claimed)
                self._report(claimed, *follows)
            if self._held:
                self._report_ended(claimed)
            self._queue(claimed)
            return
        self._report_ended(claimed)
        masked = claimed.keychain.secrets.masked if claimed.keychain else None
        verdict = judge(claimed.run, move.iteration, outcome, self._now(), masked, self._values)
        if isinstance(verdict, Fetch):
            self._fetch(claimed, verdict.keys, partial(self._processed, claimed, move, outcome))
            return
        claimed.ledger.report(claimed.run, verdict, shard=claimed.shard)
        self._queue(claimed)

    def _fetch(self, claimed: ClaimedRun, keys: tuple[str, ...], then: Callable[[], None]) -> None:
        """Gets stored values and secrets that the run needs, and goes on."""
        claimed.open_attempts += 1
        self._beside(claimed, self._get, claimed, keys, then)

    def _beside(
        self, claimed: ClaimedRun, work: Callable[[*Args], Coroutine[None, None, None]], *args: *Args
    ) -> None:
        task = self._task(work, *args)
        claimed.fetches.add(task)
        task.add_done_callback(claimed.fetches.discard)

    async def _open(self, claimed: ClaimedRun, keychain: Keychain) -> None:
        await keychain.open(claimed.run.inputs.workload)
        self._queue(claimed)

    async def _get(self, claimed: ClaimedRun, keys: tuple[str, ...], then: Callable[[], None]) -> None:
        try:
            if secret := tuple(key for key in keys if key.startswith(SECRET_KEY_PREFIX)):
                claimed.keychain = self._keychains.make(claimed.ledger)
                await claimed.keychain.open(claimed.run.inputs.workload)
                await claimed.keychain.fetch(secret)
                keys = tuple(key for key in keys if key not in secret)
            await self._values.fetch(keys, claimed.ledger.read_blob)
        except Exception as error:  # noqa: BLE001 - whatever it is, the run must not wait for ever
            self._report_ended(claimed)
            if claimed.owned:
                failed = StepFailed(run=claimed.run.id, error=_unstored(error))
                claimed.ledger.report(claimed.run, failed, shard=claimed.shard)
            self._queue(claimed)
        else:
            then()
        finally:
            claimed.open_attempts -= 1
            self._wake()

    def _interrupt(self, claimed: ClaimedRun) -> None:
        """The execution is cancelled: tasks are stopped, then the run ends."""
        if not claimed.interrupted:
            claimed.interrupted = True
            for task in list(claimed.tasks.values()):
                task.cancel()
            claimed.tasks[-1] = self._task(self._end_interrupted, claimed, list(claimed.tasks.values()))

    async def _end_interrupted(self, claimed: ClaimedRun, tasks: list[asyncio.Task[None]]) -> None:
        if tasks:
            await asyncio.wait(tasks, timeout=PATIENCE)
        claimed.tasks.clear()
        if claimed.owned and claimed.shard is not None:
            claimed.ledger.give_back(claimed.run, claimed.shard)  # the last of them ends the run
        elif claimed.owned:
            claimed.ledger.report(claimed.run, cancel_run(claimed.run))
        self._leave(claimed)

    def _leave(self, claimed: ClaimedRun) -> None:
        """The run is no longer ours: it ended, waits without us, or somebody took it away."""
        if self._claimed.get(claimed.key) is not claimed:
            return
        del self._claimed[claimed.key]
        for task in claimed.tasks.values():
            if task is not asyncio.current_task():
                task.cancel()
        self._wake()


def _unstored(error: Exception) -> ErrorInfo:
    message = f"a stored value cannot be read: {error}"
    if not isinstance(error, ResultError):
        return ErrorInfo(kind="tool", message=f"{message} ({type(error).__name__})")
    message = f"{message}; {error.hint}" if error.hint else message
    return ErrorInfo(kind=error.kind, message=message, retryable=error.retryable)
