"""Executions that a server keeps: what the worker of their runs reports, and when that is durable."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import msgspec
from msgspec import Raw

from noetl.dsl.document.playbook import Playbook
from noetl.events.bodies import EventBody, RunSuspended, StepFailed, TaskStarted
from noetl.events.codec import FORMAT, encode
from noetl.events.event_kind import KIND_NUMBERS
from noetl.kernel.net.decider import oversize_error
from noetl.kernel.plan import WAITING_KINDS, Plan
from noetl.kernel.references.externalize import EVENT_MAX_BYTES, externalize
from noetl.kernel.references.loop_chunks import without_results
from noetl.kernel.result_rules import ResultRules
from noetl.kernel.state.execution_state import Blob
from noetl.kernel.state.run_fold import RUN_FOLDS, evolve_run
from noetl.kernel.state.run_state import ClaimedPart, ExecutionInputs, RunState, Shard
from noetl.model.reference import SECRET_MARKER_BYTES
from noetl.model.secret import SecretOrigin, origins_in
from noetl.ports.control import PrintedText, RunLease, RunNews, SentEvent
from noetl.ports.ledger import log_source
from noetl.ports.results import ExecutionObjects, ResultStore
from noetl.stores.results.result_reader import ResultReader
from noetl.stores.results.result_store_objects import ResultStoreObjects, task_objects

FindPlaybook: TypeAlias = Callable[[str], Awaitable[tuple[Playbook, Path]]]
NameObjects: TypeAlias = Callable[[ExecutionObjects, str, str, str], ExecutionObjects]
"""The objects of an execution for one run and task of it, with those that have names and belong to nobody."""


class RemoteRun:
    """A run or shard that the server has given to this worker, and what of it that has not acknowledged.

    `run` is a copy of its own, and `owned` what of it is owned under the fence. `durable` counts the events
    that are, of those reported under it. `done`: nothing is left but to report it. `lost`: somebody else owns
    it, or nobody.
    """

    __slots__ = (
        "done",
        "durable",
        "fence",
        "ledger",
        "lost",
        "owned",
        "queue",
        "run",
        "start",
        "suspended_at",
        "uploads",
    )

    def __init__(self, ledger: "RemoteLedger", run: RunState, shard: Shard | None) -> None:
        self.ledger = ledger
        self.run = run
        self.owned = shard or run
        self.fence = self.owned.fence
        self.start = self.durable = self.owned.reported
        """The number of the first event in `queue`."""
        self.queue: list[SentEvent] = []
        self.uploads = 0
        """Values that its events name and that are on their way: those are not sent before."""
        self.done = False
        self.lost = False
        self.suspended_at: dict[int, int] = {}
        """The number of the event by which an iteration was suspended."""

    @property
    def shard(self) -> Shard | None:
        return self.owned if isinstance(self.owned, Shard) else None

    @property
    def lease(self) -> RunLease:
        return RunLease(self.ledger.execution_id, self.run.id, self.fence)

    @property
    def reported(self) -> int:
        return self.start + len(self.queue)

    @property
    def open(self) -> bool:
        """Whether the server must still be told something, or more may happen in it."""
        return not self.lost and not (self.done and self.durable >= self.reported)


class Uplink(Protocol):
    """How ledgers reach the server."""

    def queue(self, run: RemoteRun, events: int) -> None:
        """It has so many more events to report."""
        ...

    def forget(self, run: RemoteRun) -> None:
        """What it has to report is not to be sent any more."""
        ...

    def hurry(self) -> None:
        """Somebody waits for what is reported."""
        ...

    def print(self, line: PrintedText) -> None: ...

    def upload(self, run: RemoteRun, blob: Blob) -> None:
        """Stores what events of the run name; they wait for it."""
        ...

    def seal(self, run: RemoteRun, origins: set[SecretOrigin]) -> None:
        """Has the server keep what tasks of the run marked secret; events of the run wait for it."""
        ...

    async def sealed_value(self, origin: SecretOrigin) -> Any:
        """Raises CredentialError."""
        ...

    def give_back(self, run: RemoteRun) -> None: ...

    def recheck(self, run: RemoteRun) -> None:
        """Something about a run has changed from outside."""
        ...

    def lease_holds(self) -> bool:
        """Whether nobody else can own what this worker owns. If not, it owns nothing any more."""
        ...


class RemoteLedger:
    """One execution of a server. See `noetl.ports.ledger.Ledger`.

    What is reported is folded at once, as the server will: large values leave it here, by the same rules.
    """

    def __init__(
        self,
        uplink: Uplink,
        plan: Plan,
        inputs: ExecutionInputs,
        *,
        trace_id: str,
        folder: Path,
        results: ResultStore,
        find_playbook: FindPlaybook,
        name_objects: NameObjects,
    ) -> None:
        self._uplink = uplink
        self.plan = plan
        self.inputs = inputs
        self.execution_id = inputs.execution_id
        self.trace_id = trace_id
        self.folder = folder
        self.paused = False
        self.stopping = False
        self.runs: dict[int, RemoteRun] = {}
        """By fence: of one run it may have several shards."""
        self._find_playbook = find_playbook
        self._name_objects = name_objects
        self._results = results
        self._reader = ResultReader(results)
        self._objects: dict[ResultRules, ResultStoreObjects] = {}
        self._blobs: dict[str, bytes] = {}
        self._waiting: list[tuple[dict[RemoteRun, int], Callable[[], None]]] = []

    @property
    def playbook(self) -> Playbook:
        return self.plan.playbook

    async def playbook_of(self, playbook_hash: str) -> tuple[Playbook, Path]:
        return await self._find_playbook(playbook_hash)

    def take(self, run: RunState, shard: Shard | None = None) -> RemoteRun:
        """What was claimed for this worker. Nothing is claimed in an execution that pauses or stops."""
        self.paused = self.stopping = False
        remote = RemoteRun(self, run, shard)
        self.runs[remote.fence] = remote
        return remote

    def objects(self, run: RunState, task: str) -> ExecutionObjects:
        rules = run.step.task_rules.get(task, run.step.rules)
        objects = self._objects.get(rules)
        if objects is None:
            objects = self._objects[rules] = task_objects(self._results, self.execution_id, rules)
        if run.step.step.tasks[run.step.label_at[task]].kind == "artifact":
            return self._name_objects(objects, self.execution_id, run.id, task)
        return objects

    def report(
        self,
        run: RunState,
        *bodies: EventBody,
        shard: Shard | None = None,
        claim_next: bool = False,  # noqa: ARG002 - the next command comes with the acknowledgement
    ) -> ClaimedPart | None:
        owned = shard or run
        remote = self.runs[owned.fence]
        before = len(remote.queue)
        for reported in bodies:
            body, data = self._externalized(remote, reported)
            number = owned.reported
            if type(body) in RUN_FOLDS:
                evolve_run(run, without_results(body))
                if isinstance(body, RunSuspended) and body.reason != "pause":
                    remote.suspended_at[body.iteration] = number
            else:
                owned.phase, owned.fence = "ended", 0
                owned.reported += 1
            remote.queue.append((KIND_NUMBERS[type(body)], FORMAT, Raw(data)))
            if type(body) is not type(reported):
                break  # it fits into no event: what was reported with it does not follow
        remote.done = owned.phase != "claimed"
        self._uplink.queue(remote, len(remote.queue) - before)
        if remote.done:
            self._uplink.hurry()
        return None

    def _externalized(self, remote: RemoteRun, body: EventBody) -> tuple[EventBody, bytes]:
        """As the decider does it with what is reported in its own process; only that gathers results."""
        run, blobs = remote.run, list[Blob]()
        data = encode(body)
        if SECRET_MARKER_BYTES in data and self._may_be_read_again(run, body):
            self._uplink.seal(remote, origins_in(msgspec.json.decode(data)))
        if len(data) > self.plan.smallest_limit:
            externalized, blobs = externalize(self.plan, run.step, body, self.execution_id)
            if externalized is not body:
                body, data = externalized, encode(externalized)
        if len(data) > EVENT_MAX_BYTES:
            body = StepFailed(run=run.id, error=oversize_error(body, len(data)))
            data = encode(body)
        for blob in blobs:
            self._blobs[blob.key] = blob.data
            self._uplink.upload(remote, blob)
        return body, data

    def _may_be_read_again(self, run: RunState, body: EventBody) -> bool:
        """Whether what an event says is more than a record: inputs are rendered anew for each attempt."""
        if not isinstance(body, TaskStarted):
            return True
        return run.step.step.tasks[run.step.label_at[body.task]].kind in WAITING_KINDS

    def uploaded(self, blob: Blob) -> None:
        """Whoever wants it can have it from the server."""
        self._blobs.pop(blob.key, None)

    def give_back(self, run: RunState, shard: Shard | None = None) -> None:
        # What is not here any more was lost or told: there is nothing of it to give.
        if (owned := self.runs.get((shard or run).fence)) is not None:
            self._uplink.give_back(owned)

    def when_durable(self, then: Callable[[], None]) -> None:
        waits = {
            run: run.reported for run in self.runs.values() if run.durable < run.reported and not run.lost
        }
        self._waiting.append((waits, then))
        self._uplink.hurry()
        if not waits:
            asyncio.get_running_loop().call_soon(self.settle)

    def settle(self) -> None:
        """Calls whoever waited for what is durable now. Nothing begins that could run elsewhere, too."""
        ready: list[Callable[[], None]] = []
        waiting, self._waiting = self._waiting, []
        for waits, then in waiting:
            if all(run.lost or run.durable >= number for run, number in waits.items()):
                ready.append(then)
            else:
                self._waiting.append((waits, then))
        if ready and self._uplink.lease_holds():
            for then in ready:
                then()

    def lose(self, remote: RemoteRun) -> None:
        """Nobody here owns the run any more; its tasks are stopped. A second time does nothing."""
        if remote.lost:
            return
        remote.lost = True
        self._uplink.forget(remote)
        remote.queue.clear()
        if remote.owned.phase == "claimed":
            remote.owned.phase, remote.owned.fence = "ready", 0
        self._remove(remote)
        self._uplink.recheck(remote)
        self.settle()

    def close_run(self, remote: RemoteRun) -> None:
        """All of it is told."""
        self._remove(remote)

    def _remove(self, remote: RemoteRun) -> None:
        # Its command may have come a second time, and been taken again.
        if self.runs.get(remote.fence) is remote:
            del self.runs[remote.fence]

    def receive(self, news: RunNews) -> None:
        """It may come twice, and late: a resumption counts for a suspension that the server has seen."""
        remote = self.runs.get(news.fence)
        if remote is None:
            return
        if not news.owned:
            if not remote.done:
                self.lose(remote)
            return
        self.paused, self.stopping = news.paused, news.stopping
        if remote.done:
            return
        for resumed in news.resumed:
            frame = remote.run.frames.get(resumed.iteration)
            if (
                frame is not None
                and frame.suspension is not None
                and news.reported > remote.suspended_at.get(resumed.iteration, -1)
            ):
                evolve_run(remote.run, resumed)
        self._uplink.recheck(remote)

    async def read_blob(self, key: str) -> bytes:
        waiting = self._blobs.get(key)
        return waiting if waiting is not None else await self._reader.read(key)

    async def sealed_value(self, origin: SecretOrigin) -> Any:
        return await self._uplink.sealed_value(origin)

    def log(self, run: RunState, iteration: int, task: str, attempt: int, text: str) -> None:
        source = log_source(run, iteration, task, attempt)
        self._uplink.print(PrintedText(execution=self.execution_id, source=source, text=text))

    async def close(self) -> None:
        await self._reader.close()
