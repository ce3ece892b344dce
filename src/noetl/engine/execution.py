"""An execution in memory: its state, and what was decided about it but is not written yet."""

from collections.abc import Awaitable, Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from noetl.dsl.document.playbook import Playbook
from noetl.engine.effects import EFFECT_BODIES, effects_of
from noetl.engine.timers import now
from noetl.events.bodies import EventBody, ParentTask
from noetl.events.codec import FORMAT
from noetl.events.event import Event
from noetl.events.event_kind import KIND_NUMBERS
from noetl.kernel.net import decider
from noetl.kernel.net.commands import Claim, Command, LeaseLost, Report
from noetl.kernel.net.decider import decision_due, handle, proceed
from noetl.kernel.net.operations import RUN_ENDS
from noetl.kernel.result_rules import ResultRules
from noetl.kernel.state.execution_state import Blob, ExecutionState
from noetl.kernel.state.run_state import RunState
from noetl.ports.ledger import log_source
from noetl.ports.results import ResultStore
from noetl.ports.store import NO_EFFECTS, Append, Row, merge_effects
from noetl.stores.ownership import Ownership
from noetl.stores.results.result_store_objects import ResultStoreObjects, task_objects


class ExecutionOrigin(Struct, frozen=True, kw_only=True):
    """What an execution came from, as far as its state does not say."""

    file: str = ""
    parent: ParentTask | None = None
    depth: int = 0
    trace_id: str = ""
    root: str = ""
    """The execution that somebody asked for, if it is another one."""

    @property
    def folder(self) -> Path:
        """Where relative paths of its playbook start."""
        return _folder_of(self.file) if self.file else Path.cwd()


@lru_cache(maxsize=64)
def _folder_of(file: str) -> Path:
    return Path(file).parent


class TaskLogWriter(Protocol):
    """Where the lines go that tasks print."""

    def write(self, execution_id: str, source: Mapping[str, str | int], text: str) -> None: ...


class ExecutionResources(Struct, frozen=True):
    """What all live executions of an engine share. `decided` hears of each decision before it is durable."""

    results: ResultStore
    """Where their values are stored."""
    read_blob: Callable[["LiveExecution", str], Awaitable[bytes]]
    """Bytes that events of an execution name. Raises ResultError."""
    read_playbook: Callable[[str], Awaitable[tuple[Playbook, Path]]]
    """A stored playbook by its hash, and where its relative paths start. Raises StoreError."""
    decided: Callable[["LiveExecution", list[Event]], None]
    hurry: Callable[[], None]
    """Somebody waits for what is decided to be durable."""
    logs: TaskLogWriter | None = None


WORKER = "local"
"""The one worker that this process has."""


class LiveExecution:
    """Decides commands at once; what follows is durable when the commit log says so."""

    def __init__(
        self,
        state: ExecutionState,
        origin: ExecutionOrigin,
        resources: ExecutionResources,
        ownership: Ownership | None = None,
    ) -> None:
        self.state = state
        self.execution_id = state.inputs.execution_id
        self.origin = origin
        self.folder = origin.folder
        self.trace_id = origin.trace_id or self.execution_id.replace("-", "")
        self.durable = state.version
        self.snapshot_at = state.version
        self.pending: list[Event] = []
        self.root = origin.root or self.execution_id
        """The execution that somebody asked for, and that this one came from."""
        self.started_children: set[str] = set()
        """Children that were there when it was taken up."""
        self.start_key = ""
        self.answers: list[int] = []
        self._boundaries: set[int] = set()
        self._after: list[tuple[int, Callable[[], None]]] = []
        self._objects: dict[ResultRules, ResultStoreObjects] = {}
        self._resources = resources
        self._ownership = ownership

    @property
    def paused(self) -> bool:
        return self.state.paused

    @property
    def stopping(self) -> bool:
        return self.state.stopping != ""

    def submit(self, command: Command) -> list[Event]:
        """The events of one decision, none if it was made before. Raises Refused and NotOwner."""
        moment = now()
        events = handle(self.state, command, moment)
        if events:
            if len(events) >= decider.MAX_EVENTS_AT_ONCE:
                self._go_on(events, moment)
            self._boundaries.add(events[-1].seq)
            self.pending += events
            self._resources.decided(self, events)
        return events

    def _go_on(self, events: list[Event], moment: int) -> None:
        """What follows from a decision may have no end, so it comes in pieces, each an append of its own.

        A crash between two of them leaves a state that goes on.
        """
        while decision_due(self.state) and (more := proceed(self.state, moment)):
            self._boundaries.add(events[-1].seq)
            events += more

    def report(self, run: RunState, *bodies: EventBody, claim_next: bool = False) -> RunState | None:
        """What happened in a run that is claimed; with `claim_next`, the run that its worker owns next."""
        report = Report(run.id, run.fence, run.reported, bodies)
        if not claim_next:
            self.submit(report)
            return None
        # As `submit` does it, for both at once: nobody else is offered what is claimed here, and the two of
        # them are one append.
        moment, state = now(), self.state
        events = handle(state, report, moment)
        if len(events) >= decider.MAX_EVENTS_AT_ONCE:
            self._go_on(events, moment)
        following = None
        if type(bodies[-1]) in RUN_ENDS and state.ready and state.status == "running" and not state.stopping:
            following = state.runs[state.ready.first]
            events += handle(state, Claim(following.id, WORKER), moment)
        self._boundaries.add(events[-1].seq)
        self.pending += events
        self._resources.decided(self, events)
        return following

    def give_back(self, run: RunState) -> None:
        """A run that is claimed is free again; nothing of it is in flight."""
        self.submit(LeaseLost(run.id, run.fence, "released"))

    def when_durable(self, then: Callable[[], None]) -> None:
        """Calls `then` once everything decided so far is written."""
        self.after_commit(then)
        self._resources.hurry()

    def after_commit(self, then: Callable[[], None]) -> None:
        """The same for what can wait until it is written anyway."""
        self._after.append((self.state.version, then))

    def objects(self, run: RunState, task: str) -> ResultStoreObjects:
        rules = run.step.task_rules.get(task, run.step.rules)
        # One for all tasks with the same rules: this is on the way of every attempt.
        objects = self._objects.get(rules)
        if objects is None:
            objects = self._objects[rules] = task_objects(self._resources.results, self.execution_id, rules)
        return objects

    def log(self, run: RunState, iteration: int, task: str, attempt: int, text: str) -> None:
        if (logs := self._resources.logs) is not None:
            logs.write(self.execution_id, log_source(run, iteration, task, attempt), text)

    @property
    def playbook(self) -> Playbook:
        return self.state.plan.playbook

    async def playbook_of(self, playbook_hash: str) -> tuple[Playbook, Path]:
        return await self._resources.read_playbook(playbook_hash)

    async def read_blob(self, key: str) -> bytes:
        return await self._resources.read_blob(self, key)

    def take_append(self) -> tuple[Append, list[Event]]:
        """What is pending, as one append; from here on it is somebody else's to write."""
        events, self.pending = self.pending, []
        boundaries, self._boundaries = self._boundaries, set()
        kinds = [type(event.body) for event in events]
        rows = [
            Row(event.seq, event.ts, KIND_NUMBERS[kind], FORMAT, event.data, event.seq in boundaries)
            for event, kind in zip(events, kinds, strict=True)
        ]
        effects = NO_EFFECTS
        # Asked of all at once: nearly all events have none, and every event comes this way.
        if not EFFECT_BODIES.isdisjoint(kinds):
            for event in events:
                effects = merge_effects(effects, effects_of(event.ts, event.body))
        taken, self.answers = self.answers, []
        append = Append(
            execution_id=self.execution_id,
            expected_version=events[0].seq - 1,
            rows=rows,
            effects=effects,
            start_key=self.start_key if events[0].seq == 1 else "",
            answers=taken,
        )
        return append, events

    def take_blobs(self) -> list[Blob]:
        """What must be stored before the append."""
        blobs = self.state.blobs
        if not blobs:
            return []
        taken = list(blobs)
        blobs.clear()
        return taken

    def mark_durable(self, version: int) -> None:
        """Everything up to this version is durable."""
        self.durable = version
        while self._after and self._after[0][0] <= version:
            self._after.pop(0)[1]()

    def release(self) -> None:
        """Lets others own the execution. A second call does nothing."""
        if self._ownership is not None:
            self._ownership.release()
