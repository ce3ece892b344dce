"""An execution in memory: its state, and what was decided about it but is not written yet."""

from collections.abc import Awaitable, Callable, Iterable
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple, NoReturn, Protocol

from msgspec import Struct

from noetl.dsl.document.playbook import Playbook
from noetl.engine.effects import EFFECT_BODIES, effects_of, row_changes
from noetl.events.bodies import EventBody, ParentTask
from noetl.events.codec import FORMAT
from noetl.events.event import Event
from noetl.events.event_kind import KIND_NUMBERS
from noetl.kernel.derived_rows import UnitRows
from noetl.kernel.errors import Refused
from noetl.kernel.net import decider
from noetl.kernel.net.commands import Command, LeaseLost, Report, claim_of
from noetl.kernel.net.decider import decision_due, handle, proceed
from noetl.kernel.result_rules import ResultRules
from noetl.kernel.state.execution_state import Blob, ExecutionState
from noetl.kernel.state.run_state import ClaimedPart, RunState, Shard, claimable_part
from noetl.model.secret import SecretOrigin
from noetl.ports.catalog import AuditEntry
from noetl.ports.credentials import CredentialError
from noetl.ports.ledger import LogSource, log_source
from noetl.ports.results import ResultStore
from noetl.ports.store import NO_EFFECTS, Append, Effects, Row, merge_effects
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

    def write(self, execution_id: str, source: LogSource, text: str) -> None: ...


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
    now: Callable[[], int]
    """Microseconds since 1970: when events happen."""
    logs: TaskLogWriter | None = None


class UnwrittenCommand(NamedTuple):
    """A command that was decided; its last event has the number `version`."""

    version: int
    command: Command
    refusals: list[Refused] | None


WORKER = "local"
"""The one worker that this process has."""


_STATE_FACTOR = 6
"""Bytes that a state takes in memory for each byte of it, or of the events that led to it, as JSON."""
_EMPTY_STATE = 8_192
"""Bytes of one that nothing has happened to."""


class LiveExecution:
    """Decides commands at once; what follows is durable when the commit log says so.

    Whoever deals with an execution has the same object, also while its state is not in memory: `loaded` is
    False then, and nothing may be asked of it before it was folded again (`Service.load`).
    """

    state: ExecutionState
    origin: ExecutionOrigin
    folder: Path
    trace_id: str
    root: str
    """The execution that somebody asked for, and that this one came from."""

    def __init__(
        self, execution_id: str, resources: ExecutionResources, ownership: Ownership | None = None
    ) -> None:
        self.execution_id = execution_id
        self.loaded = False
        self.reloads = 0
        """How often it was read again because somebody else had written to it."""
        self.durable = 0
        self.snapshot_at = 0
        self.weight = 0
        """Bytes that its state takes, roughly."""
        self.pending: list[Event] = []
        self.started_children: set[str] = set()
        """Children that were there when it was taken up."""
        self.start_key = ""
        self.audit: tuple[AuditEntry, ...] = ()
        """What is noted of the request for it, with its first events."""
        self.answers: list[int] = []
        self.delivered: list[int] = []
        """Messages of the outbox that what is pending follows from."""
        self.outbox: dict[str, bytes] = {}
        """Messages to send with what is pending."""
        self.rows: dict[str, UnitRows] | None = None
        """Its rows in the store, by unit, where a server keeps them."""
        self._boundaries: set[int] = set()
        self._after: list[tuple[int, Callable[[], None]]] = []
        self._commands: list[UnwrittenCommand] = []
        self._objects: dict[ResultRules, ResultStoreObjects] = {}
        self._resources = resources
        self._ownership = ownership

    def load(self, state: ExecutionState, origin: ExecutionOrigin, size: int = 0) -> None:
        """Has this state from here on, which takes `size` bytes as JSON."""
        self.state = state
        self.origin = origin
        self.folder = origin.folder
        self.trace_id = origin.trace_id or self.execution_id.replace("-", "")
        self.root = origin.root or self.execution_id
        self.durable = self.snapshot_at = state.version
        self.weight = _EMPTY_STATE + size * _STATE_FACTOR
        self.loaded = True

    def unload(self) -> None:
        """Lets go of what can be read again."""
        self.loaded = False
        self.rows = None
        self.weight = 0
        self._objects.clear()
        del self.state

    @property
    def idle(self) -> bool:
        """Whether all of it is durable, and nobody waits for more."""
        return self.durable == self.state.version and not (
            self._after or self.pending or self.answers or self.delivered or self.outbox
        )

    def take_unwritten(self) -> "list[UnwrittenCommand]":
        """The commands whose events are not durable, in their order; what they led to is forgotten.

        What they answer stays: they are decided again, and their messages must not be done twice.
        """
        commands, self._commands = self._commands, []
        self.pending, self._boundaries = [], set()
        self.delivered, self.outbox = [], {}
        return commands

    def call_back(self) -> None:
        """Calls whoever waits for something to be durable: it will not be."""
        waiting, self._after = self._after, []
        for _, then in waiting:
            then()

    def defer_callbacks(self) -> None:
        """Whoever waits for what was decided waits for all that is decided now."""
        self._after = [(self.state.version, then) for _, then in self._after]
        if not self.pending:
            self.mark_durable(self.state.version)

    @property
    def paused(self) -> bool:
        return self.state.paused

    @property
    def stopping(self) -> bool:
        return self.state.stopping != ""

    def submit(self, command: Command, refusals: list[Refused] | None = None) -> list[Event]:
        """The events of one decision, none if it was made before. Raises Refused and NotOwner.

        It may have to be decided again, if somebody else has written meanwhile: if it is refused then,
        `refusals` says so, once whoever waits for it is called.
        """
        moment = self._resources.now()
        events = handle(self.state, command, moment)
        if events:
            if len(events) >= decider.MAX_EVENTS_AT_ONCE:
                self._go_on(events, moment)
            self._boundaries.add(events[-1].seq)
            self.pending += events
            if self.rows is not None:
                self._commands.append(UnwrittenCommand(events[-1].seq, command, refusals))
            self._resources.decided(self, events)
        return events

    def _go_on(self, events: list[Event], moment: int) -> None:
        """What follows from a decision may have no end, so it comes in pieces, each an append of its own.

        A crash between two of them leaves a state that goes on.
        """
        while decision_due(self.state) and (more := proceed(self.state, moment)):
            self._boundaries.add(events[-1].seq)
            events += more

    def report(
        self, run: RunState, *bodies: EventBody, shard: Shard | None = None, claim_next: bool = False
    ) -> ClaimedPart | None:
        """What happened in a run that is claimed; with `claim_next`, what its worker owns next."""
        owned = shard or run
        report = Report(run.id, owned.fence, owned.reported, bodies)
        if not claim_next:
            self.submit(report)
            return None
        # As `submit` does it, for both at once: nobody else is offered what is claimed here, and the two of
        # them are one append.
        moment, state = self._resources.now(), self.state
        events = handle(state, report, moment)
        if len(events) >= decider.MAX_EVENTS_AT_ONCE:
            self._go_on(events, moment)
        following = None
        through = owned.phase in ("ended", "ready")  # a loop that was started is for everybody
        if through and state.ready and state.status == "running" and not state.stopping:
            following = claimable_part(state.runs[state.ready.first])
            events += handle(state, claim_of(following, WORKER), moment)
        self._boundaries.add(events[-1].seq)
        self.pending += events
        self._resources.decided(self, events)
        return following

    def give_back(self, run: RunState, shard: Shard | None = None) -> None:
        """A run or shard that is claimed is free again; nothing of it is in flight."""
        self.submit(LeaseLost(run.id, (shard or run).fence, "released"))

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

    async def sealed_value(self, origin: SecretOrigin) -> NoReturn:
        reason = "was masked, and is known only to the process that masked it"
        raise CredentialError(f"`{origin.name}` {reason}: its task must run again")

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
            for event, kind in zip(events, kinds, strict=True):
                if kind in EFFECT_BODIES:
                    effects = merge_effects(effects, effects_of(event.ts, event.body))
        if self.rows is not None:
            effects = merge_effects(effects, self._served_effects(events, self.rows))
        taken, self.answers = self.answers, []
        delivered, self.delivered = self.delivered, []
        append = Append(
            execution_id=self.execution_id,
            expected_version=events[0].seq - 1,
            rows=rows,
            effects=effects,
            start_key=self.start_key if events[0].seq == 1 else "",
            answers=taken,
            delivered=delivered,
            audit=self.audit if events[0].seq == 1 else (),
        )
        return append, events

    def _served_effects(self, events: list[Event], rows: dict[str, UnitRows]) -> Effects:
        """What a server writes beside the facts, so that it need not fold the execution to begin again."""
        self.weight += sum([len(event.data) for event in events]) * _STATE_FACTOR
        effects = row_changes(self.state, events, rows)
        if self.outbox or events[0].seq == 1:
            outbox, self.outbox = self.outbox, {}
            effects = merge_effects(effects, Effects(outbox=outbox, served=events[0].seq == 1 or None))
        return effects

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
        if self._commands:
            self._commands = [unwritten for unwritten in self._commands if unwritten.version > version]
        while self._after and self._after[0][0] <= version:
            self._after.pop(0)[1]()

    def release(self) -> None:
        """Lets others own the execution. A second call does nothing."""
        if self._ownership is not None:
            self._ownership.release()


def once_durable(live: LiveExecution, then: Callable[[], None]) -> None:
    """Calls `then` when everything decided so far is durable: at once if it is."""
    if live.durable >= live.state.version:
        then()
    else:
        live.when_durable(then)


def all_durable(lives: Iterable[LiveExecution], then: Callable[[], None]) -> None:
    """The same for several executions."""
    waiting = {live.execution_id: live for live in lives if live.durable < live.state.version}
    if not waiting:
        then()
        return

    def count_down(execution_id: str) -> None:
        del waiting[execution_id]
        if not waiting:
            then()

    for live in list(waiting.values()):
        live.when_durable(lambda name=live.execution_id: count_down(name))  # type: ignore[misc]  # bound now
