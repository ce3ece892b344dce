"""One simulation: store, clock, servers, workers, network and people in one thread."""

from collections import deque
from collections.abc import Callable
from random import Random
from typing import Any

from noetl.kernel.net import decider
from noetl.kernel.plan import Plan
from noetl.kernel.state.execution_state import ExecutionState
from noetl.stores.sqlite.store import SqliteStore
from noetl.testing.simulator.archive import Archive, call_inline
from noetl.testing.simulator.audit import Audit, AuditFailure
from noetl.testing.simulator.playbook_pieces import SimulatedPlaybook
from noetl.testing.simulator.scenario import Faults, SimulatedScenario
from noetl.testing.simulator.simulated_operator import SimulatedOperator
from noetl.testing.simulator.simulated_server import SimulatedServer
from noetl.testing.simulator.simulated_tools import SimulatedTools
from noetl.testing.simulator.simulated_worker import SimulatedWorker
from noetl.testing.simulator.virtual_clock import SECOND, Action, VirtualClock

MOST_STEPS = 10_000
"""More than anything takes that ends at all."""
TRACE_LENGTH = 60
SHORT_APPEND = 3
"""Events decided at once where appends are short."""


class SimulatedNetwork:
    """Messages between client, servers and workers: late, in any order, twice, or never.

    Delivers by calling. After `faults.until` it is perfect.
    """

    def __init__(self, clock: VirtualClock, faults: Faults, random: Random) -> None:
        self._clock = clock
        self._faults = faults
        self._random = random
        self.broken_until = clock.now + round(faults.until * SECOND)

    @property
    def perfect(self) -> bool:
        return self._clock.now >= self.broken_until

    def send(self, deliver: Action) -> None:
        if self.perfect:
            self._clock.later(0.001, deliver)
            return
        faults, random = self._faults, self._random
        copies = 2 if random.random() < faults.duplicate else 1
        for _ in range(copies):
            if random.random() >= faults.drop:
                self._clock.later(self._delay(), deliver)

    def _delay(self) -> float:
        faults, random = self._faults, self._random
        if random.random() < faults.late:
            return random.uniform(5, 30)
        if random.random() < faults.reorder:
            return random.uniform(0, 2)
        return 0.001


class SimulatedWorld:
    """Everything there is. `settled`: all executions are over, and nobody wants anything any more."""

    execution_id = "01939d2e-0000-7000-8000-000000000001"

    def __init__(self, scenario: SimulatedScenario, plan_of: Callable[[SimulatedPlaybook], Plan]) -> None:
        self.scenario = scenario
        self.faults = scenario.faults
        self.random = Random(f"luck {scenario.seed}")  # noqa: S311 - it must be repeatable
        self.clock = VirtualClock()
        self.began = self.clock.now
        self.network = SimulatedNetwork(self.clock, self.faults, self.random)
        self.tools = SimulatedTools(scenario.outcomes, scenario.errors)
        self.plans: dict[str, Plan] = {}
        self.catalog: dict[str, Plan] = {}
        self.trace: deque[tuple[int, str, Any]] = deque(maxlen=TRACE_LENGTH)
        self.archive = Archive(SqliteStore.in_memory(), self.plans)
        self.audit = Audit(self.archive)
        for document in (scenario.document, *scenario.children):
            plan = self.catalog[document.path] = plan_of(document)
            self.plans[plan.playbook.hash] = plan
            call_inline(self.archive.store.put_playbook(plan.playbook.hash, document.text.encode()))
        self.servers = [SimulatedServer(self, f"server {number}") for number in range(self.faults.servers)]
        self.workers = [SimulatedWorker(self, f"worker {number}") for number in range(self.faults.workers)]
        self.workers_started = len(self.workers)
        self.settled = False
        self.steps = 0
        self.operator = SimulatedOperator(self)

    @property
    def root(self) -> ExecutionState | None:
        return self.audit.mirrors.get(self.execution_id)

    def note(self, source: str, event: Any) -> None:
        self.trace.append((self.clock.now, source, event))

    def send(self, server: SimulatedServer, action: Action) -> None:
        self.network.send(lambda: server.receive(action))

    def any_server(self) -> SimulatedServer:
        return self.random.choice(self.servers)

    def unlucky(self, chance: float) -> bool:
        """Whether something with this chance happens; nothing does when the bad time is over."""
        return chance > 0 and not self.network.perfect and self.random.random() < chance

    def tool_time(self) -> float:
        if self.unlucky(self.faults.slow):
            return self.random.uniform(8, 20)
        return 0.01 if self.network.perfect else self.random.uniform(0, 2)

    def wants_retry(self, state: ExecutionState) -> bool:
        """Several failed runs that go on at once would make the end depend on their order."""
        return (
            self.scenario.retry
            and state.execution_id == self.execution_id
            and state.retriable
            and self.execution_id not in self.audit.retried
            and (len(state.failed_runs) == 1 or not self.scenario.comparable)
        )

    def run(self) -> None:
        """To the end. Raises AuditFailure, and whatever broken code raises."""
        # A constant of the kernel: short appends leave decisions over, which must survive a crash.
        limit = decider.MAX_EVENTS_AT_ONCE
        decider.MAX_EVENTS_AT_ONCE = SHORT_APPEND if self.faults.short_appends else limit
        try:
            self._begin()
            while self.clock.step():
                self.steps += 1
                if self.steps > MOST_STEPS:
                    raise AuditFailure(f"it never ends; {self._unfinished()}")
                if not self.settled:
                    self.settled = self._is_settled()
            states = [server.states for server in self.servers]
            self.audit.check_end(self.tools.effects, states)
            if self.scenario.comparable:
                self.audit.check_joins(self.execution_id)
        finally:
            decider.MAX_EVENTS_AT_ONCE = limit
            call_inline(self.archive.store.close())

    def _is_settled(self) -> bool:
        root = self.root
        if root is None or not root.over or self.wants_retry(root):
            return False
        if not all(state.over for state in self.audit.mirrors.values()):
            return False
        return not call_inline(self.archive.store.outbox())

    def _unfinished(self) -> str:
        return "; ".join(
            f"{name} is {state.status}, runs: {[(run.id, run.phase) for run in state.runs.values()]}, "
            f"agenda: {list(state.agenda)}, tokens: {list(state.tokens)}"
            for name, state in self.audit.mirrors.items()
            if not state.over
        )

    def _begin(self) -> None:
        random, faults = self.random, self.faults
        for server in self.servers:
            self.clock.later(0, server.tick)
        for worker in self.workers:
            self.clock.later(0, worker.tick)
        self.clock.later(0, self.operator.tick)
        accidents = [
            (faults.server_crashes, lambda: random.choice(self.servers).crash()),
            (faults.worker_crashes, self._replace_worker),
            (faults.zombies, self._put_to_sleep),
        ]
        for count, accident in accidents:
            for _ in range(count):
                # Rather early, when most is still to be done.
                self.clock.later(random.random() ** 2 * faults.until, accident)

    def _choose_busy_worker(self, accident: Action) -> SimulatedWorker | None:
        """One that has something to lose; if there is none, the accident comes later."""
        busy = [worker for worker in self.workers if any(held_run.in_flight for held_run in worker.held_runs)]
        if busy:
            return self.random.choice(busy)
        if not self.network.perfect:
            self.clock.later(0.3, accident)
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
            worker.up = False
        self.workers.remove(worker)
        self.workers.append(SimulatedWorker(self, f"worker {self.workers_started}"))
        self.workers_started += 1
        self.workers[-1].tick()

    def _put_to_sleep(self) -> None:
        worker = self._choose_busy_worker(self._put_to_sleep)
        if worker is not None:
            self.note(worker.name, "stands still")
            worker.asleep_until = self.clock.now + round(self.random.uniform(2, 25) * SECOND)
