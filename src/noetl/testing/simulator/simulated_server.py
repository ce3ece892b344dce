"""A server: loads states, decides, commits, answers. It dies at any moment and comes back with nothing."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from noetl.events.bodies import RunResumed
from noetl.events.codec import FORMAT, decode
from noetl.events.event import Event
from noetl.kernel.errors import NotOwner, Refused
from noetl.kernel.net.commands import Claim, Command, LeaseLost, Report
from noetl.kernel.net.decider import decision_due, handle, proceed
from noetl.kernel.state.execution_state import ExecutionState, new_state
from noetl.kernel.state.replay import dump_run
from noetl.ports.store import Effects, OutboxMessage
from noetl.testing.simulator.archive import call_inline
from noetl.testing.simulator.simulated_effects import (
    ExecutionMessage,
    awaited_children,
    outbox_messages,
    state_timers,
    timer_changes,
    timer_command,
)
from noetl.testing.simulator.virtual_clock import SECOND, Action

if TYPE_CHECKING:
    from noetl.testing.simulator.simulated_worker import HeldRun, SimulatedWorker
    from noetl.testing.simulator.simulated_world import SimulatedWorld

TICK = 1.5
LEASE = 8 * SECOND


class SimulatedCrash(Exception):
    """The process ends here."""


class RunControl(Struct, frozen=True):
    """What a worker must know about a run that it works on.

    `resumed` are the iterations that do not wait, as of the first `reported` events of the run.
    """

    owned: bool
    stopping: bool = False
    paused: bool = False
    reported: int = 0
    resumed: tuple[RunResumed, ...] = ()


NOT_OWNED = RunControl(owned=False)


class SimulatedServer:
    """Keeps states in memory, and leases, and the workers that ask for work: all of it is lost in a crash."""

    def __init__(self, world: "SimulatedWorld", name: str) -> None:
        self.world = world
        self.name = name
        self.up = True
        self.states: dict[str, ExecutionState] = {}
        self.leases: dict[tuple[str, str, int], int] = {}
        self.unheard: set[tuple[str, str, int]] = set()
        """Leases that it gave, and of which it has heard nothing."""
        self.polling_workers: dict[str, SimulatedWorker] = {}

    def receive(self, action: Action) -> None:
        """Handle one message, unless the process is down or dies of it."""
        if not self.up:
            return
        try:
            action()
        except SimulatedCrash:
            self.crash()

    def crash(self) -> None:
        if not self.up:
            return
        self.world.note(self.name, "crashes")
        self.up = False
        self.states, self.leases, self.unheard, self.polling_workers = {}, {}, set(), {}
        self.world.clock.later(self.world.random.uniform(0.1, 6), self.start)

    def start(self) -> None:
        self.world.note(self.name, "starts")
        self.up = True
        self.receive(self._load_open_executions)

    def _load_open_executions(self) -> None:
        for execution in self.world.archive.open_executions():
            self.state_of(execution)
        self.pump()

    def tick(self) -> None:
        """From time to time for ever."""
        if not self.world.settled:
            self.receive(self.pump)
            self.world.clock.later(TICK, self.tick)

    def pump(self) -> None:
        """Timers, messages between executions, leases that ran out, runs for those who asked."""
        archive, now = self.world.archive, self.world.clock.now
        for execution in list(self.states):
            self.state_of(execution)
        for timer in call_inline(archive.store.timers(until=now)):
            self.submit(timer.execution_id, timer_command(timer.key))
        self.send_outbox()
        for state in list(self.states.values()):
            for run in list(state.claimed_runs()):
                self._check_lease(state.execution_id, run.id, run.fence)
        self.dispatch()

    def _check_lease(self, execution: str, run: str, fence: int) -> None:
        until = self.leases.setdefault((execution, run, fence), self.world.clock.now + LEASE)
        if until <= self.world.clock.now:
            # Who never beat for it may never have heard of it.
            unheard = (execution, run, fence) in self.unheard and not self.states[execution].runs[
                run
            ].reported
            self.submit(execution, LeaseLost(run, fence, "voided" if unheard else "expired"))

    def send_outbox(self) -> None:
        """Send what is in the outbox; it stays there until it is known to have arrived."""
        for message, entry in self.world.archive.outbox():
            server = self.world.any_server()
            self.world.send(server, partial(server.deliver, message, entry))

    def deliver(self, message: ExecutionMessage, entry: OutboxMessage) -> None:
        if message.do != "start" and message.to not in self.world.audit.mirrors:
            return
        try:
            self.submit(message.to, message.command, message.path)
        except Refused as refusal:
            self.world.note(self.name, f"refuses to {message.do} {message.to}: {refusal}")
        # The answer to the sender may be lost: then the message comes again.
        if not self.world.unlucky(self.world.faults.drop):
            call_inline(self.world.archive.store.sent([entry]))

    def state_of(self, execution: str, path: str = "") -> ExecutionState:
        """Up to date, or nearly: another server may just have written."""
        state = self.states.get(execution)
        if state is not None:
            # A single server wrote everything itself: it need not read before each command.
            if len(self.world.servers) > 1:
                self.world.archive.catch_up(state)
        else:
            state = self.world.archive.load(execution)
            if state is None:
                return new_state(self.world.catalog[path], execution)
            self.world.audit.check_loaded_state(state)
            self.states[execution] = state
        if decision_due(state):
            before = state_timers(state)
            if not self._commit(state, before, proceed(state, self.world.clock.now)):
                return self.state_of(execution)
        return state

    def submit(self, execution: str, command: Command, path: str = "") -> list[Event]:
        """Decide and commit. Raises Refused, NotOwner, SimulatedCrash."""
        world = self.world
        while True:
            state = self.states.get(execution) or self.state_of(execution, path)
            before, waiting = state_timers(state), awaited_children(state)
            try:
                events = handle(state, command, world.clock.now)
            except (Refused, NotOwner):
                world.audit.check_refusal(state)
                if self._is_behind(state):
                    continue
                raise
            if not events:
                return events
            world.note(self.name, command)
            if not self._commit(state, before, events, waiting, command):
                continue
            while decision_due(state):
                before = state_timers(state)
                more = proceed(state, world.clock.now)
                if not more or not self._commit(state, before, more):
                    break
                events += more
            self.dispatch()
            return events

    def _is_behind(self, state: ExecutionState) -> bool:
        """Whether another server had written what this one did not know; now it does."""
        version = state.version
        return self.world.archive.catch_up(state).version > version

    def _commit(
        self,
        state: ExecutionState,
        before: dict[str, int],
        events: list[Event],
        waiting: Sequence[str] = (),
        command: Command | None = None,
    ) -> bool:
        """Make it durable. False if another server was faster: what was decided is void."""
        if not events:
            return True
        world, execution = self.world, state.execution_id
        parent = world.archive.parent(execution) if state.over else None
        effects = Effects(
            status=state.status,
            playbook=state.plan.playbook.hash,
            timers=timer_changes(before, state_timers(state)),
            outbox=outbox_messages(state, events, parent, waiting),
        )
        if world.unlucky(world.faults.crash_before_commit):
            raise SimulatedCrash
        if not world.archive.commit(execution, events, effects):
            world.note(self.name, f"was too late with event {events[0].seq} of {execution}")
            self.states.pop(execution, None)
            return False
        self.states[execution] = state
        world.audit.check_commit(state, command)
        if world.unlucky(world.faults.snapshots):
            world.archive.save_snapshot(state)
        if world.unlucky(world.faults.crash_after_commit):
            raise SimulatedCrash
        return True

    def dispatch(self) -> None:
        """Give ready runs to workers that asked."""
        for execution in list(self.states):
            self._dispatch(execution)

    def _dispatch(self, execution: str) -> None:
        while self.polling_workers and (state := self.states.get(execution)) is not None:
            if state.paused or state.stopping or not state.ready:
                return
            worker = self.polling_workers.pop(self.world.random.choice(list(self.polling_workers)))
            run = self.world.random.choice(list(state.ready))
            try:
                self.submit(execution, Claim(run, worker.name))
            except Refused:
                self.polling_workers[worker.name] = worker
                return
            self._send_run(self.states[execution], run, worker)

    def _send_run(self, state: ExecutionState, name: str, worker: "SimulatedWorker") -> None:
        run = state.runs[name]
        lease = state.execution_id, name, run.fence
        self.leases[lease] = self.world.clock.now + LEASE
        self.unheard.add(lease)
        data = msgspec.json.encode(dump_run(run))
        workload = msgspec.json.encode(state.inputs.workload)
        fence, playbook = run.fence, state.plan.playbook.hash
        execution = state.execution_id
        self.world.network.send(
            lambda: worker.receive(lambda: worker.accept_run(execution, playbook, workload, data, fence))
        )

    def poll(self, worker: "SimulatedWorker") -> None:
        self.polling_workers[worker.name] = worker
        self.dispatch()

    def report(self, held_run: "HeldRun", number: int, bodies: Sequence[tuple[int, bytes]]) -> None:
        decoded = tuple(decode(kind, data, FORMAT) for kind, data in bodies)
        self.unheard.discard((held_run.execution, held_run.name, held_run.fence))
        try:
            self.submit(held_run.execution, Report(held_run.name, held_run.fence, number, decoded))
        except NotOwner:
            self._reply(held_run, held_run.lose)
            return
        except Refused:
            return
        self.world.audit.check_worker_state(held_run.run, self.states[held_run.execution])
        control = self.control(held_run)
        done = number + len(decoded)
        self._reply(held_run, lambda: held_run.acknowledge(done, control))

    def heartbeat(self, held_runs: Sequence["HeldRun"]) -> None:
        for held_run in held_runs:
            control = self.control(held_run)
            if control.owned:
                lease = held_run.execution, held_run.name, held_run.fence
                self.unheard.discard(lease)
                self.leases[lease] = self.world.clock.now + LEASE
            self._reply(held_run, partial(held_run.receive_control, control))

    def release(self, held_run: "HeldRun") -> None:
        self.submit(held_run.execution, LeaseLost(held_run.name, held_run.fence, "released"))

    def control(self, held_run: "HeldRun") -> RunControl:
        state = self.state_of(held_run.execution)
        run = state.runs.get(held_run.name)
        if run is None or run.fence != held_run.fence:
            return NOT_OWNED
        resumed = tuple(
            RunResumed(
                run=run.id,
                reason=frame.resumption.reason if frame.resumption else "timer",
                iteration=frame.index,
                payload=frame.resumption.payload if frame.resumption else None,
            )
            for frame in (run.frames[int(index)] for index in run.busy)  # in the order they were resumed
        )
        return RunControl(
            owned=True,
            stopping=bool(state.stopping),
            paused=state.paused,
            reported=run.reported,
            resumed=resumed,
        )

    def _reply(self, held_run: "HeldRun", action: Action) -> None:
        self.world.network.send(lambda: held_run.worker.receive(action))
