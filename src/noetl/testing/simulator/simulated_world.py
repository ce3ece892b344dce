"""One simulation: a store, a server, workers, a network and people in one thread, on one clock."""

import logging
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from random import Random
from typing import Any

from noetl.dsl.compiler import CompiledPlaybook
from noetl.engine import service
from noetl.engine.catalog.playbook_record import PlaybookSource
from noetl.engine.catalog.playbooks import PlaybookDocument, Playbooks
from noetl.kernel.net import decider
from noetl.kernel.state.execution_state import ExecutionState
from noetl.loader import examine
from noetl.stores.sqlite.store import SqliteStore
from noetl.testing.simulator.audit import Audit, AuditFailure
from noetl.testing.simulator.scenario import SimulatedScenario
from noetl.testing.simulator.simulated_network import SimulatedNetwork
from noetl.testing.simulator.simulated_operator import SimulatedOperator
from noetl.testing.simulator.simulated_processes import TTL, SimulatedServer, SimulatedWorker
from noetl.testing.simulator.simulated_store import call_inline
from noetl.testing.simulator.simulated_tools import SimulatedTools
from noetl.testing.simulator.virtual_processes import VirtualClock, VirtualMachine, VirtualProcess
from noetl.worker import remote_ledgers, reporter

MOST_TURNS = 60_000
"""More than anything takes that ends at all."""
LONGEST = 600.0
"""Seconds after the faults in which everything must be over."""
LOOK_EVERY = 50
"""Turns."""
AFTERWARDS = 60.0
"""Seconds in which whoever still works on something must learn that it is over."""
TAKEOVER = 2.0
"""Seconds after its lease in which a run must be somebody else's."""
MOMENT = 0.1
TRACE_LENGTH = 60
SHORT_APPEND = 3
SHORT_MESSAGE = 150
FREQUENT_SNAPSHOTS = 5


class SimulatedPlaybooks(Playbooks):
    """The documents of a scenario; what is read is kept for the next simulation of the same."""

    def __init__(self) -> None:
        super().__init__()
        self._by_path: dict[str, PlaybookDocument] = {}
        self.by_hash: dict[str, PlaybookDocument] = {}

    def read(self, source: PlaybookSource) -> PlaybookDocument:
        document = super().read(source)
        self.by_hash[document.playbook.hash] = document
        return document

    def add(self, path: str, text: str) -> None:
        self._by_path[path] = self.read(PlaybookSource(text, "simulated.yaml", "/simulated/simulated.yaml"))

    def find(self, path: str, version: object, folder: Path) -> PlaybookDocument:  # noqa: ARG002 - the port's names
        return self._by_path[path]


class SimulatedWorld:
    """Everything there is. `settled`: all executions are over, and nobody wants anything any more."""

    def __init__(self, scenario: SimulatedScenario, playbooks: SimulatedPlaybooks) -> None:
        self.scenario = scenario
        self.faults = scenario.faults
        self.random = Random(f"luck {scenario.seed}")  # noqa: S311 - it must be repeatable
        self.clock = VirtualClock()
        self.machine = VirtualMachine(self.clock, self.random)
        self.network = SimulatedNetwork(self.clock, self.faults, self.random)
        self.network.on_trouble = self._on_trouble
        self.trace: deque[tuple[float, str, Any]] = deque(maxlen=TRACE_LENGTH)
        self.store = SqliteStore.in_memory()
        self.playbooks = playbooks
        for document in (scenario.document, *scenario.children):
            playbooks.add(document.path, document.text)
        self.audit = Audit(self.store, playbooks, self)
        self.tools = SimulatedTools(scenario.outcomes, scenario.errors, self.audit.check_effect)
        self.settled = False
        self.server_troubled_at = -1.0
        """When the server last died or stood still."""
        self.sessions: dict[str, str] = {}
        """The workers by their sessions."""
        self.troubled: set[str] = set()
        """Workers that were stopped, or not heard: leases of theirs may be lost."""
        self.servers_started = 0
        self.workers: list[SimulatedWorker] = []
        self.workers_started = 0
        self._people = VirtualProcess("people", self.clock, self.random)
        self.machine.add(self._people)

    @property
    def root(self) -> ExecutionState | None:
        return next(iter(self.audit.mirrors.values()), None)

    @property
    def turns(self) -> int:
        return self.machine.turns

    def note(self, source: str, event: Any) -> None:
        self.trace.append((self.clock.now, source, event))

    def later(self, seconds: float, action: Callable[[], object]) -> None:
        self._people.call_after(seconds, action)

    def unlucky(self, chance: float) -> bool:
        """Whether something with this chance happens; nothing does when the bad time is over."""
        return self.network.unlucky(chance)

    def tool_time(self) -> float:
        if self.unlucky(self.faults.slow):
            return self.random.uniform(8, 20)
        return 0.01 if self.network.perfect else self.random.uniform(0, 2)

    def wants_retry(self, state: ExecutionState) -> bool:
        """Several failed runs that go on at once would make the end depend on their order."""
        return (
            self.scenario.retry
            and state is self.root
            and state.retriable
            and state.execution_id not in self.audit.retried
            and (len(state.failed_runs) == 1 or not self.scenario.comparable)
        )

    def run(self) -> None:
        """To the end. Raises AuditFailure, and whatever broken code raises."""
        with _constants(self.scenario):
            try:
                self._begin()
                self._run_until_settled()
                self._run_until_idle()
                self.audit.check_end(self.tools.effects)
                if self.scenario.comparable:
                    self.audit.check_joins()
            finally:
                self.machine.dispose()
                call_inline(self.store.close())

    def _run_until_settled(self) -> None:
        while not self.settled:
            self._step(self.faults.until + LONGEST)
            # Now and then also without a commit: messages leave the outbox when they are delivered.
            if self.audit.changed or not self.turns % LOOK_EVERY:
                self.audit.changed = False
                self.settled = self._is_settled()

    def _run_until_idle(self) -> None:
        """Whoever does not know yet that all is over learns it; then nothing may be left."""
        limit = max(self.clock.now, self.faults.until) + AFTERWARDS
        while left := self._left_over():
            if self.clock.now > limit:
                raise AuditFailure(f"all executions are over, and still: {left}")
            self._step(limit + 1)

    def _step(self, limit: float) -> None:
        process = self.machine.step()
        if process is None or self.clock.now > limit or self.turns > MOST_TURNS:
            raise AuditFailure(f"it never ends; {self._unfinished()}")
        if process.alive and process.ended:  # no other can have ended: it alone had a turn
            assert process is not self.server.process
            process.kill()
            self.workers.remove(next(worker for worker in self.workers if worker.process is process))

    def _left_over(self) -> str:
        if self.server.engine is None or self.clock.now < self.server.process.asleep_until:
            return "the server is not there"
        leases = self.server.leases_left()
        held = [f"{worker.name} has {left}" for worker in self.workers if (left := worker.left_over())]
        return "; ".join([*(f"{lease} is leased" for lease in leases), *held])

    def _is_settled(self) -> bool:
        root = self.root
        if root is None or not root.over or self.wants_retry(root):
            return False
        if not all(state.over for state in self.audit.mirrors.values()):
            return False
        return not call_inline(self.store.outbox())

    def _unfinished(self) -> str:
        return "; ".join(
            f"{name} is {state.status}, runs: {[(run.id, run.phase) for run in state.runs.values()]}, "
            f"agenda: {list(state.agenda)}, tokens: {list(state.tokens)}"
            for name, state in self.audit.mirrors.items()
            if not state.over
        )

    # What happens to processes.

    def _begin(self) -> None:
        random, faults = self.random, self.faults
        self._start_server()
        for _ in range(faults.workers):
            self._start_worker()
        self._people.spawn(SimulatedOperator(self).run)
        accidents = [
            (faults.server_crashes, self.crash_server),
            (faults.server_stalls, self._stall_server),
            (faults.worker_crashes, self._replace_worker),
            (faults.zombies, self._put_to_sleep),
        ]
        for count, accident in accidents:
            for _ in range(count):
                # Rather early, when most is still to be done.
                self.later(random.random() ** 2 * faults.until, accident)

    def _start_server(self) -> None:
        self.server = SimulatedServer(self, f"server {self.servers_started}")
        self.servers_started += 1
        if self.servers_started > 1:
            self.server_troubled_at = self.clock.now  # each lease has one full ttl from here
        self.machine.add(self.server.process)
        self.note(self.server.process.name, "starts")

    def _start_worker(self) -> None:
        worker = SimulatedWorker(self, f"worker {self.workers_started}")
        self.workers_started += 1
        self.workers.append(worker)
        self.machine.add(worker.process)

    def crash_server(self, moment: str = "") -> None:
        if not self.server.process.alive:
            return
        self.note(self.server.process.name, f"dies {moment}".strip())
        self.server.process.kill()
        self.server.engine = None
        self.server_troubled_at = self.clock.now
        for worker in self.workers:
            for connection in worker.link.connections:
                connection.lose_server()
        self.later(self.random.uniform(0.1, 6), self._start_server)

    def _stall_server(self) -> None:
        if self.server.process.alive:
            seconds = self.random.uniform(1, 15)
            self.note(self.server.process.name, f"stands still for {seconds:.1f} s")
            self.server.process.asleep_until = self.server_troubled_at = self.clock.now + seconds

    def _choose_busy_worker(self, accident: Callable[[], None]) -> SimulatedWorker | None:
        """One that has something to lose; if there is none, the accident comes later."""
        if busy := [worker for worker in self.workers if worker.busy and not worker.leaving]:
            return self.random.choice(busy)
        if not self.network.perfect and not self.settled:
            self.later(0.3, accident)
        return None

    def _replace_worker(self) -> None:
        worker = self._choose_busy_worker(self._replace_worker)
        if worker is None:
            return
        if self.random.random() < 0.5:
            self.note(worker.name, "leaves")
            worker.drain()
        else:
            self.note(worker.name, "dies")
            self._kill(worker)
        self._start_worker()

    def _kill(self, worker: SimulatedWorker) -> None:
        worker.process.kill()
        self.workers.remove(worker)
        for connection in worker.link.connections:
            connection.close()
        if worker.name not in self.troubled:  # else a heartbeat of its may be on its way for a long time
            died_at = self.clock.now
            self.later(TTL + TAKEOVER, lambda: self.audit.check_takeover(worker.name, died_at))
        self.troubled.add(worker.name)

    def _put_to_sleep(self) -> None:
        worker = self._choose_busy_worker(self._put_to_sleep)
        if worker is not None:
            seconds = self.random.uniform(2, 25)
            self.note(worker.name, f"stands still for {seconds:.1f} s")
            self.troubled.add(worker.name)
            worker.process.asleep_until = self.clock.now + seconds

    def woke_up(self, execution_id: str, run: str) -> bool:
        """Whether a worker that has this run stood still a moment ago: what it had checked may be old."""
        return any(
            self.clock.now - worker.process.asleep_until < MOMENT
            for worker in self.workers
            if any(
                (each.ledger.execution_id, each.run.id) == (execution_id, run) for each in worker.open_runs()
            )
            or worker.busy
        )

    def _on_trouble(self, process: VirtualProcess) -> None:
        for worker in self.workers:
            if worker.process is process:
                self.troubled.add(worker.name)


@contextmanager
def _constants(scenario: SimulatedScenario) -> Iterator[None]:
    """Sizes that only large executions reach, small: what they cut short must survive a crash.

    Documents are compiled once, whoever reads them: that costs more than a run.
    """
    faults = scenario.faults
    values: list[tuple[Any, str, Any]] = [
        (remote_ledgers, "examine", _examine),
        (logging.getLogger("noetl"), "disabled", True),  # nobody operates these processes
    ]
    if faults.short_appends:
        values.append((decider, "MAX_EVENTS_AT_ONCE", SHORT_APPEND))
    if faults.short_messages:
        values.append((reporter, "MESSAGE_BYTES", SHORT_MESSAGE))
    if faults.snapshots:
        values.append((service, "SNAPSHOT_EVERY", FREQUENT_SNAPSHOTS))
    before = [(module, name, getattr(module, name)) for module, name, _ in values]
    for module, name, value in values:
        setattr(module, name, value)
    try:
        yield
    finally:
        for module, name, value in before:
            setattr(module, name, value)


@lru_cache(maxsize=1_000)
def _examine(
    text: str, name: str, *, dialect: str | None = None, allow_kinds: tuple[str, ...] = ()
) -> CompiledPlaybook:
    return examine(text, name, dialect=dialect, allow_kinds=allow_kinds)
