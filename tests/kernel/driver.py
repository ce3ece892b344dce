"""Runs a playbook to its end in one thread: scripted outcomes, a clock of its own, every event kept."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from noetl.dsl.document.playbook import Playbook
from noetl.events.bodies import EventBody, TaskProcessed
from noetl.events.event import Event
from noetl.kernel.net.commands import Command, Report, Request, TimerFired, claim_of
from noetl.kernel.net.decider import decision_due, handle, proceed
from noetl.kernel.pipeline.interpreter import advance, advance_shard
from noetl.kernel.pipeline.moves import Fetch, Finish, Move, Record, RunTask, Suspend, Wait
from noetl.kernel.pipeline.policy import SECOND, judge
from noetl.kernel.plan import Plan
from noetl.kernel.references.resolve import resolve_references
from noetl.kernel.state.execution_state import ExecutionState, new_state
from noetl.kernel.state.run_state import ClaimedPart, RunState, Shard, claimable_part
from noetl.model.outcome import ErrorInfo, Outcome, failed, succeeded
from noetl.model.reference import decode_value
from tests.playbooks import playbook_of

EXECUTION = "01939d2e-0000-7000-8000-000000000001"

Script: TypeAlias = Mapping[str, Any]
"""What tasks give, by label: a value, an Outcome, an exception kind as `Fault`, a list of these in turn, or a function of the call."""


class Fault(str):
    """An error of this kind."""


def error(kind: str = "connection", message: str = "it broke", **details: Any) -> Outcome:
    return failed(ErrorInfo(kind=kind, message=message, retryable=True, details=details))  # type: ignore[arg-type]  # tests name kinds as text


class Driver:
    """One execution, and a worker that runs its tasks one at a time.

    `appends` are the events of each command: the points at which a crash may happen.
    """

    def __init__(
        self, playbook: Playbook | str, script: Script | None = None, *, kinds: Sequence[str] = ()
    ) -> None:
        if isinstance(playbook, str):
            playbook = playbook_of(playbook, allow_kinds=kinds)
        self.plan = Plan(playbook)
        self.state: ExecutionState = new_state(self.plan, EXECUTION)
        self.script = dict(script or {})
        self.turns: dict[str, int] = {}
        self.now = 1_700_000_000 * SECOND
        self.appends: list[list[Event]] = []
        self.calls: list[RunTask] = []
        self.on_append: Callable[[list[Event]], None] = lambda _: None
        self.stored: dict[str, bytes] = {}
        self.decoded: dict[str, Any] = {}
        self.fetches: list[tuple[str, ...]] = []

    def submit(self, command: Command) -> list[Event]:
        events = handle(self.state, command, self.now)
        self._append(events)
        while decision_due(self.state) and (following := proceed(self.state, self.now)):
            self._append(following)
            events = events + following
        return events

    def _append(self, events: list[Event]) -> None:
        self.stored.update((blob.key, blob.data) for blob in self.state.blobs)
        self.state.blobs.clear()
        if events:
            self.appends.append(events)
            self.on_append(events)

    def fetch(self, keys: tuple[str, ...]) -> dict[str, Any]:
        """What is stored under these keys, and nothing else: a worker need not remember what it had."""
        self.fetches.append(keys)
        for key in keys:
            if key not in self.decoded:
                self.decoded[key] = decode_value(self.stored[key])
        return {key: self.decoded[key] for key in keys}

    def advance(self, run: RunState, shard: Shard | None = None) -> Move:
        fetched: dict[str, Any] = {}

        def ask() -> Move:
            if shard is not None:
                return advance_shard(run, shard, self.now, None, fetched)
            return advance(run, self.now, None, fetched)

        while isinstance(move := ask(), Fetch):
            assert not set(move.keys) <= fetched.keys(), "it asks for what it has"
            fetched = self.fetch(move.keys)
        return move

    def judge(self, run: RunState, index: int, outcome: Outcome) -> TaskProcessed:
        fetched: dict[str, Any] = {}
        while isinstance(body := judge(run, index, outcome, self.now, fetched=fetched), Fetch):
            assert not set(body.keys) <= fetched.keys(), "it asks for what it has"
            fetched = self.fetch(body.keys)
        return body

    def resolve(self, value: Any) -> Any:
        """A value with all that is stored in its place."""

        async def get(key: str) -> bytes:
            return self.stored[key]

        return asyncio.run(resolve_references(value, get))

    def start(self, **request: Any) -> "Driver":
        self.submit(Request(**request))
        return self

    def run(self, **request: Any) -> "Driver":
        """From the request to the end, or until nothing happens without somebody from outside."""
        if self.state.status == "new":
            self.start(**request)
        while self.step():
            pass
        return self

    def step(self) -> bool:
        """One run as far as it goes, or the next timer. False if there is nothing to do."""
        if self.state.over:
            return False
        if self.state.ready and not self.state.paused:
            self.work(*self.claim_part(self.state.ready.first))
            return True
        return self.fire_next_timer()

    def claim(self, run: str) -> RunState:
        return self.claim_part(run)[0]

    def claim_part(self, run: str, worker: str = "w1") -> ClaimedPart:
        """The run, or the shard of it that has been ready longest."""
        part = claimable_part(self.state.runs[run])
        self.submit(claim_of(part, worker))
        return part

    def work(self, run: RunState, shard: Shard | None = None) -> None:
        """Drive a run or shard until it ends or is suspended."""
        owned = shard or run
        fence = owned.fence
        while owned.phase == "claimed" and owned.fence == fence and run.id in self.state.runs:
            if not self.move(run, shard):
                return

    def move(self, run: RunState, shard: Shard | None = None) -> bool:
        """One instruction. False if the run is suspended."""
        move = self.advance(run, shard)
        match move:
            case Record():
                self.report(run, move.body, shard=shard)
            case Finish():
                self.report(run, move.body, shard=shard)
            case RunTask():
                self.report(run, *move.begins, shard=shard)
                self.calls.append(move)
                outcome = self.outcome_of(move)
                self.report(run, self.judge(run, move.iteration, outcome), shard=shard)
            case Wait(until=until):
                assert until is not None, "nothing is in flight"
                self.now = until
            case Suspend():
                return False
        return True

    def report(self, run: RunState, *bodies: EventBody, shard: Shard | None = None) -> list[Event]:
        owned = shard or run
        return self.submit(Report(run.id, owned.fence, owned.reported, bodies))

    def outcome_of(self, call: RunTask) -> Outcome:
        label = call.task.label
        if label in self.script:
            scripted = self.script[label]
            if isinstance(scripted, list):
                turn = self.turns.get(label, 0)
                self.turns[label] = turn + 1
                scripted = scripted[min(turn, len(scripted) - 1)]
            if callable(scripted):
                scripted = scripted(call)
            if isinstance(scripted, Fault):
                return error(str(scripted))
            return scripted if isinstance(scripted, Outcome) else succeeded(scripted)
        if call.task.kind == "noop":
            return succeeded(call.inputs.get("args", call.prev))
        return succeeded(None)

    def timers(self) -> list[tuple[int, TimerFired]]:
        state = self.state
        timers = [
            (token.deadline, TimerFired(name))
            for name, token in state.tokens.items()
            if token.deadline is not None
        ]
        for run in state.runs.values():
            if run.deadline is not None:
                timers.append((run.deadline, TimerFired(run.id)))
            timers += [
                (frame.suspension.until, TimerFired(run.id, frame.index))
                for frame in run.frames.values()
                if frame.suspension is not None and frame.suspension.until is not None
            ]
        if state.deadline is not None:
            timers.append((state.deadline, TimerFired()))
        return sorted(timers, key=lambda pair: pair[0])

    def fire_next_timer(self) -> bool:
        timers = self.timers()
        if not timers or self.state.paused:
            return False
        self.now = max(self.now, timers[0][0])
        return bool(self.submit(timers[0][1]))

    @property
    def events(self) -> list[Event]:
        return [event for append in self.appends for event in append]

    @property
    def names(self) -> list[str]:
        return [type(event.body).__name__ for event in self.events]

    def bodies(self, kind: type[Any]) -> list[Any]:
        return [event.body for event in self.events if isinstance(event.body, kind)]

    @property
    def ctx(self) -> dict[str, Any]:
        return self.state.ctx.values

    @property
    def ran(self) -> list[str]:
        """The labels of the tasks that ran, in order."""
        return [call.task.label for call in self.calls]

    @property
    def status(self) -> str:
        return self.state.status

    @property
    def error(self) -> ErrorInfo:
        """Why the execution has failed."""
        assert self.state.error is not None
        return self.state.error

    @property
    def statuses(self) -> dict[str, str]:
        return {name: summary.status for name, summary in self.state.summaries.items()}


def run(text: str, script: Script | None = None, *, kinds: Sequence[str] = (), **request: Any) -> Driver:
    return Driver(text, script, kinds=kinds).run(**request)
