"""A worker: takes runs, drives them, reports under their fence. It may die, or stand still for a while."""

from functools import partial
from typing import TYPE_CHECKING

import msgspec

from noetl.events.bodies import EventBody, RunSuspended, StepDone
from noetl.events.codec import encode
from noetl.events.event_kind import kind_of_body
from noetl.kernel.pipeline.interpreter import advance, cancel_run, pause_run
from noetl.kernel.pipeline.moves import Finish, Record, RunTask, Suspend, Wait
from noetl.kernel.pipeline.policy import judge, judge_without_policy
from noetl.kernel.state.replay import load_run
from noetl.kernel.state.run_fold import evolve_run
from noetl.kernel.state.run_state import ExecutionInputs, RunState
from noetl.testing.simulator.simulated_server import RunControl
from noetl.testing.simulator.simulated_tools import PURE_KIND
from noetl.testing.simulator.virtual_clock import SECOND, Action

if TYPE_CHECKING:
    from noetl.testing.simulator.simulated_world import SimulatedWorld

SLOTS = 2
BEAT = 2.5
PATIENCE = 1.5
"""Seconds before a report is sent again."""


class SimulatedWorker:
    """One process. After a crash there is a new one under a new name."""

    def __init__(self, world: "SimulatedWorld", name: str) -> None:
        self.world = world
        self.name = name
        self.up = True
        self.asleep_until = 0
        self.held_runs: list[HeldRun] = []
        self.accepted: set[tuple[str, str, int]] = set()

    def receive(self, action: Action) -> None:
        """A message, the end of a tool, a time that has come; while it stands still they pile up."""
        if not self.up:
            return
        if self.asleep_until > self.world.clock.now:
            self.world.clock.at(self.asleep_until, lambda: self.receive(action))
        else:
            action()

    def later(self, seconds: float, action: Action) -> None:
        self.world.clock.later(seconds, lambda: self.receive(action))

    def tick(self) -> None:
        """Heartbeat, and ask for work if there is room."""
        if self.world.settled:
            return
        held_runs = [held_run for held_run in self.held_runs if held_run.open]
        self.held_runs = held_runs
        if held_runs:
            for server in self.world.servers:
                self.world.send(server, partial(server.heartbeat, held_runs))
        self.poll()
        self.later(BEAT, self.tick)

    def poll(self) -> None:
        """Ask for work if there is room."""
        self.held_runs = [held_run for held_run in self.held_runs if held_run.open]
        if len(self.held_runs) < SLOTS:
            server = self.world.any_server()
            self.world.send(server, lambda: server.poll(self))

    def accept_run(self, execution: str, playbook: str, workload: bytes, data: bytes, fence: int) -> None:
        """Begin with a run that was claimed for this worker; the message may come twice."""
        plan = self.world.plans[playbook]
        inputs = ExecutionInputs(execution, msgspec.json.decode(workload))
        run = load_run(plan, inputs, msgspec.json.decode(data))
        if (execution, run.id, fence) in self.accepted:
            return
        self.accepted.add((execution, run.id, fence))
        held_run = HeldRun(self, execution, run, fence)
        self.held_runs.append(held_run)
        held_run.drive()
        self.poll()

    def drain(self) -> None:
        """End in order: give back what is held, and take nothing more."""
        for held_run in self.held_runs:
            if held_run.open:
                held_run.release()
        self.up = False


class HeldRun:
    """A run in the hands of a worker. It folds what it reports, and starts nothing that is not durable."""

    def __init__(self, worker: SimulatedWorker, execution: str, run: RunState, fence: int) -> None:
        self.worker = worker
        self.world = worker.world
        self.execution = execution
        self.run = run
        self.name = run.id
        self.fence = fence
        self.open = True
        self.done = False
        """Nothing is left to do but to report it."""
        self.control = RunControl(owned=True)
        self.unsent: list[EventBody] = []
        self.next_number = run.reported
        """Of the first event that was not sent."""
        self.sent: list[tuple[int, tuple[EventBody, ...]]] = []
        self.durable = run.reported
        self.waiting: list[tuple[int, RunTask]] = []
        """Tools that start when so many events are durable."""
        self.in_flight: set[int] = set()
        self.suspended_at: dict[int, int] = {}
        self.resend_planned = False

    def drive(self) -> None:
        """Go on as far as possible without waiting."""
        while self.open and not self.done:
            if not self._advance():
                break
        if self.open:
            self.flush()

    def _advance(self) -> bool:
        """One instruction; False if something must happen first."""
        run, now = self.run, self.world.clock.now
        if self.control.stopping:
            self.in_flight.clear()
            self.waiting.clear()
            self._finish(cancel_run(run))
            return False
        if self.control.paused:
            suspended = pause_run(run)
            if suspended is not None:
                self._record(suspended)
                self.done = True
                return False
            if self.in_flight:
                return False
        match advance(run, now):
            case Record(body=body):
                self._record(body)
                self.done = run.phase == "suspended"
            case RunTask() as call:
                self._begin_task(call)
            case Finish(body=body):
                self._finish(body)
            case Wait(until=until):
                if until is not None:
                    self.worker.later((until - now) / SECOND, self.drive)
                return False
            case Suspend():
                self.done = True
        return not self.done

    def _record(self, body: EventBody) -> None:
        if isinstance(body, RunSuspended) and body.reason != "pause":
            self.suspended_at[body.iteration] = self.run.reported
        evolve_run(self.run, body)
        self.unsent.append(body)
        if self.world.unlucky(self.world.faults.hurry):
            self.flush()

    def _finish(self, body: EventBody) -> None:
        self.unsent.append(body)
        self.done = True

    def _run_pure(self, call: RunTask) -> None:
        outcome = self.world.tools.run(self.execution, self.run, call)
        # As the real worker does: the short way where it applies, and the full judgement where it does not.
        bodies = judge_without_policy(self.run, call, outcome)
        if bodies is None:
            bodies = (judge(self.run, call.iteration, outcome, self.world.clock.now),)
        for body in bodies:
            if isinstance(body, StepDone):
                self._finish(body)
            else:
                self._record(body)

    def _begin_task(self, call: RunTask) -> None:
        for body in call.begins:
            self._record(body)
        if call.task.kind == PURE_KIND:
            self._run_pure(call)
            return
        self.in_flight.add(call.iteration)
        self.waiting.append((self.run.reported, call))
        self.flush()

    def flush(self) -> None:
        if not self.unsent:
            return
        report = (self.next_number, tuple(self.unsent))
        self.next_number += len(self.unsent)
        self.unsent = []
        self.sent.append(report)
        self._send(*report)
        if not self.resend_planned:
            self.resend_planned = True
            self.worker.later(PATIENCE, self._resend_reports)

    def _resend_reports(self) -> None:
        self.resend_planned = False
        if self.open and self.sent:
            for report in self.sent:
                self._send(*report)
            self.resend_planned = True
            self.worker.later(PATIENCE, self._resend_reports)

    def _send(self, number: int, bodies: tuple[EventBody, ...]) -> None:
        server = self.world.any_server()
        encoded = [(kind_of_body(body).number, encode(body)) for body in bodies]
        self.world.send(server, lambda: server.report(self, number, encoded))

    def acknowledge(self, durable: int, control: RunControl) -> None:
        """So many events are recorded: tools that waited for that may start."""
        if not self.open:
            return
        # Acknowledgements overtake each other.
        self.durable = max(self.durable, durable)
        self.sent = [report for report in self.sent if report[0] + len(report[1]) > self.durable]
        if self.done and not (self.sent or self.unsent):
            self.open = False
            if control.owned:
                self.release()
            self.worker.poll()
            return
        ready = [call for number, call in self.waiting if number <= self.durable]
        self.waiting = [(number, call) for number, call in self.waiting if number > self.durable]
        for call in ready:
            self._run_tool(call)
        if control.owned:
            self.receive_control(control)

    def release(self) -> None:
        """It is said twice, since it may be lost; the second time somebody else may own the run."""
        for delay in (0, 2):
            server = self.world.any_server()
            self.world.clock.later(delay, partial(self.world.send, server, partial(server.release, self)))

    def _run_tool(self, call: RunTask) -> None:
        self.world.audit.check_effect(self.execution, call)
        outcome = self.world.tools.run(self.execution, self.run, call)

        def finish() -> None:
            if self.open and call.iteration in self.in_flight:
                self.in_flight.discard(call.iteration)
                self._record(judge(self.run, call.iteration, outcome, self.world.clock.now))
                self.drive()

        self.worker.later(self.world.tool_time(), finish)

    def receive_control(self, control: RunControl) -> None:
        """News about the run: it was lost, iterations go on, the execution was cancelled or paused."""
        if not self.open:
            return
        if not control.owned:
            if not self.done:
                self.lose()
            return
        self.control = control
        if self.done:
            return
        # A resumption may come more than once, and late: it counts for a suspension the server has seen.
        for resumed in control.resumed:
            frame = self.run.frames.get(resumed.iteration)
            if (
                frame is not None
                and frame.suspension is not None
                and control.reported > self.suspended_at.get(resumed.iteration, -1)
            ):
                evolve_run(self.run, resumed)
        self.drive()

    def lose(self) -> None:
        """Somebody else owns the run, or it is over."""
        if self.open:
            self.world.note(self.worker.name, f"lost {self.execution}/{self.name} under fence {self.fence}")
        self.open = False
        self.in_flight.clear()
        self.waiting.clear()
