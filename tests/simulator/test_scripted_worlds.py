"""The real server and its workers in moments that chance meets once in thousands of seeds."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from noetl.engine.inbox import RemoteCommand
from noetl.events.bodies import (
    LeaseExpired,
    RunResumed,
    RunSuspended,
    SignalReceived,
    StepDone,
    TaskProcessed,
    TaskStarted,
    TokenClaimed,
)
from noetl.events.codec import FORMAT, encode
from noetl.events.event_kind import KIND_NUMBERS
from noetl.kernel.net.commands import Cancel, Pause, Resume
from noetl.ports.control import Beaten
from noetl.ports.store import Append, Committed, Row
from noetl.testing.simulator.playbook_fragments import CHILD, NOOP, POLICIES, PYTHON
from noetl.testing.simulator.playbook_pieces import ArcPiece, SimulatedPlaybook, StepPiece, TaskPiece
from noetl.testing.simulator.scenario import Faults, SimulatedScenario
from noetl.testing.simulator.simulated_operator import SimulatedOperator
from noetl.testing.simulator.simulated_processes import TTL
from noetl.testing.simulator.simulated_store import call_inline
from noetl.testing.simulator.simulated_world import SimulatedPlaybooks, SimulatedWorld
from noetl.worker.heartbeat import LeaseClock

PLAYBOOKS = SimulatedPlaybooks()
WITH_A_MESSAGE = 0.5
"""As `crash_after_commit`: the server dies after the first commit that leaves something in the outbox."""
ONE_TASK = (StepPiece("s0", tasks=(TaskPiece("t0", PYTHON),)),)


class ScriptedWorld(SimulatedWorld):
    """Nothing goes wrong by chance. Tools take `seconds`."""

    def __init__(
        self,
        steps: Sequence[StepPiece] = ONE_TASK,
        *,
        child: Sequence[StepPiece] = ONE_TASK,
        seconds: float = 0.01,
        errors: float = 0,
        **faults: Any,
    ) -> None:
        document = SimulatedPlaybook("scripted", "max_step_runs: 20", tuple(steps))
        scenario = SimulatedScenario(
            seed=0,
            outcomes=1,
            errors=errors,
            document=document,
            children=(SimulatedPlaybook(CHILD, "", tuple(child)),),
            faults=Faults(**faults),
            retry=errors > 0,
        )
        super().__init__(scenario, PLAYBOOKS)
        self._seconds = seconds
        self.network.script = self._script
        self._rules: list[tuple[str, bytes, int, Callable[[], Sequence[float] | None]]] = []
        self.frames: list[tuple[str, bytes]] = []
        self.crashed = False

    def tool_time(self) -> float:
        return self._seconds

    def unlucky(self, chance: float) -> bool:
        """Nothing happens by chance, but the server dies once with a message in the outbox if that is asked for."""
        if chance != WITH_A_MESSAGE or self.crashed or not call_inline(self.store.outbox(after=0)):
            return False
        self.crashed = True
        return True

    def on_frame(
        self, worker: str, text: bytes, then: Callable[[], Sequence[float] | None], times: int = 1
    ) -> None:
        """The first frames that hold this text arrive when `then` says; see `SimulatedNetwork.script`."""
        self._rules.append((worker, text, times, then))

    def _script(self, worker: str, frame: bytes) -> Sequence[float] | None:
        self.frames.append((worker, frame))
        for position, (name, text, times, then) in enumerate(self._rules):
            if name == worker and text in frame:
                self._rules[position : position + 1] = [(name, text, times - 1, then)] if times > 1 else []
                return then()
        return None

    def bodies(self, kind: type) -> list[Any]:
        (history, *_) = self.audit.histories.values()
        return [event.body for event in history if isinstance(event.body, kind)]

    @property
    def reasons(self) -> list[str]:
        """Why leases have ended that did not end with their run."""
        return [body.reason for body in self.bodies(LeaseExpired)]

    def cut_connection(self) -> None:
        (connection,) = self.workers[0].link.connections
        connection.cut()

    def drain_now(self) -> Sequence[float]:
        """The first worker is told to leave while a frame is on its way."""
        self.workers[0].drain()
        return (0.001,)

    def submit(self, command: RemoteCommand) -> None:
        execution, *_ = self.audit.mirrors  # the children come after it
        SimulatedOperator(self)._submit(execution, command)

    def write_from_elsewhere(self) -> None:
        """Another process has the same store."""
        ((execution, state),) = self.audit.mirrors.items()
        body = SignalReceived(signal="elsewhere")
        row = Row(
            state.version + 1,
            self.clock.wall_time(),
            KIND_NUMBERS[SignalReceived],
            FORMAT,
            encode(body),
            True,
        )
        append = Append(execution_id=execution, expected_version=state.version, rows=[row])
        assert call_inline(self.store.commit([append])) == [Committed(row.seq)]

    def put_worker_to_sleep(self, seconds: float) -> None:
        self.troubled.add(self.workers[0].name)
        self.workers[0].process.asleep_until = self.clock.now + seconds

    def put_server_to_sleep(self, seconds: float) -> None:
        self.server.process.asleep_until = self.server_troubled_at = self.clock.now + seconds


def test_a_worker_that_is_told_to_leave_while_it_registers_gets_no_more_runs() -> None:
    later = TaskPiece("t0", "kind: wait, seconds: 2")
    world = ScriptedWorld(
        [
            StepPiece("s0", arcs=(ArcPiece("s1"), ArcPiece("s2"))),
            StepPiece("s1", tasks=(TaskPiece("t0", PYTHON),)),
            StepPiece("s2", tasks=(later, TaskPiece("t1", PYTHON))),
        ],
        seconds=5,
    )
    world.later(1, world.cut_connection)
    world.later(1, lambda: world.on_frame("worker 0", b'"type":"registered"', world.drain_now))
    world.later(4, world._start_worker)
    world.run()
    assert len(world.reasons) <= 1
    assert [worker.name for worker in world.workers] == ["worker 1"]


def test_a_command_that_comes_once_more_does_not_take_the_run_away_that_was_claimed_since() -> None:
    wait = TaskPiece("t0", "kind: wait, seconds: 1")
    world = ScriptedWorld([StepPiece("s0", tasks=(wait, TaskPiece("t1", PYTHON)))], seconds=5)
    world.on_frame("worker 0", b'"commands":[{', lambda: (0.001, 3))
    world.run()
    assert world.reasons == []
    assert len(world.bodies(TokenClaimed)) == 2
    assert world.clock.now < 10


def test_a_worker_that_loses_its_run_while_it_leaves_does_not_wait_for_it() -> None:
    world = ScriptedWorld(seconds=30)
    world.later(1, lambda: world.workers[0].drain())  # noqa: PLW0108 - it is not there yet
    world.later(2, lambda: world.put_worker_to_sleep(TTL * 1.5))
    world.later(3, world._start_worker)
    remaining: list[str] = []
    world.later(20, lambda: remaining.extend(worker.name for worker in world.workers))
    world.run()
    assert world.reasons == ["expired"]
    assert remaining == ["worker 1"]


WAITS_HERE = (StepPiece("s0", tasks=(TaskPiece("t0", PYTHON, POLICIES[1]),)),)
"""Its first try fails, and until the next one its worker has the run and nothing to report."""


@pytest.mark.parametrize("moment", [b'"type":"release"', b'"type":"released"'])
def test_a_worker_does_not_leave_before_others_can_have_what_it_gave_back(moment: bytes) -> None:
    world = ScriptedWorld(WAITS_HERE, errors=1)
    world.on_frame("worker 0", moment, tuple)
    world.later(0.5, lambda: world.workers[0].drain())  # noqa: PLW0108 - it is not there yet
    world.later(0.5, world._start_worker)
    world.run()
    assert world.reasons in (["released"], ["voided"])
    assert [worker.name for worker in world.workers] == ["worker 1"]
    assert world.clock.now < TTL


def test_what_is_on_its_way_to_a_worker_that_leaves_is_free_at_once() -> None:
    world = ScriptedWorld()
    world.on_frame("worker 0", b'"type":"work"', lambda: (2,))
    world.later(0.5, lambda: world.workers[0].drain())  # noqa: PLW0108 - it is not there yet
    world.later(0.5, world._start_worker)
    world.run()
    assert world.reasons == ["voided"]
    assert [worker.name for worker in world.workers] == ["worker 1"]
    assert world.clock.now < TTL


def test_a_worker_that_leaves_does_not_wait_for_a_server_that_is_gone() -> None:
    second = StepPiece("s1", tasks=(TaskPiece("t0", PYTHON),))
    world = ScriptedWorld([replace(ONE_TASK[0], arcs=(ArcPiece("s1"),)), second], seconds=1)
    world.on_frame("worker 0", b'"leaving"', tuple)
    world.later(0.5, lambda: world.workers[0].drain())  # noqa: PLW0108 - it is not there yet
    world.later(0.6, world._start_worker)
    world.run()
    assert [worker.name for worker in world.workers] == ["worker 1"]


def test_what_a_worker_gives_back_while_it_registers_is_free() -> None:
    world = ScriptedWorld(WAITS_HERE, errors=1)
    world.later(0.5, world.cut_connection)
    world.later(0.5, lambda: world.on_frame("worker 0", b'"type":"register"', world.drain_now))
    world.later(0.5, world._start_worker)
    world.run()
    assert world.reasons == ["released"]
    assert world.clock.now < TTL


def test_a_worker_that_gives_its_runs_up_says_so() -> None:
    world = ScriptedWorld(seconds=2)
    # Both stood still: the server does not take for lost whom it could not hear.
    world.later(0.5, lambda: world.put_server_to_sleep(TTL + 3))
    world.later(0.5, lambda: world.put_worker_to_sleep(TTL + 2))
    world.run()
    assert world.reasons == ["released"]
    assert world.clock.now < TTL * 3


def test_a_worker_beats_in_time_though_it_hears_late_that_it_is_registered() -> None:
    world = ScriptedWorld(seconds=4)
    for position, kind in enumerate((b"registered", b"work", b"news")):
        world.on_frame("worker 0", b'"type":"%s"' % kind, lambda at=position: (TTL * 0.75 + at,))  # type: ignore[misc]  # bound now
    world.run()
    assert world.reasons == []


PAIR = (StepPiece("s0", tasks=(TaskPiece("t0", PYTHON), TaskPiece("t1", PYTHON))),)


def test_a_run_that_was_paused_goes_on_when_its_execution_does() -> None:
    world = ScriptedWorld(PAIR, seconds=2)
    world.later(0.5, lambda: world.submit(Pause()))
    world.later(4, lambda: world.submit(Resume()))
    world.run()
    assert [body.reason for body in world.bodies(RunSuspended)] == ["pause"]


def test_so_does_one_that_was_paused_too_late() -> None:
    world = ScriptedWorld(PAIR, seconds=2)
    world.on_frame("worker 0", b'"reason":"pause"', lambda: (1,))
    world.later(0.5, lambda: world.submit(Pause()))
    world.later(2.5, lambda: world.submit(Resume()))
    world.run()
    assert [body.reason for body in world.bodies(RunResumed)] == ["resume"]


def _branches() -> ScriptedWorld:
    """Two branches: the first sees what the second wrote if it may, and ends after it."""
    seen = 'args: {x: "{{ ctx.flag | default(0) }}"}'
    slow = (TaskPiece("t0", "kind: wait, seconds: 2"), TaskPiece("t1", PYTHON, seen))
    world = ScriptedWorld(
        [
            StepPiece("s0", arcs=(ArcPiece("s1"), ArcPiece("s2"))),
            StepPiece("s1", tasks=slow),
            StepPiece("s2", tasks=(TaskPiece("t0", PYTHON, 'set: {ctx.flag: "1"}'),)),
        ]
    )
    world.run()
    return world


def test_a_run_sees_nothing_that_others_write_after_it_began() -> None:
    (attempt,) = (body for body in _branches().bodies(TaskStarted) if body.task == "t1")
    assert attempt.input["args"] == {"x": 0}


def test_the_last_step_gives_the_result_whenever_it_ends() -> None:
    world = _branches()
    _, second, first = world.bodies(StepDone)
    assert world.root is not None
    assert world.root.result == second.result != first.result


def test_what_somebody_else_has_written_meanwhile_stays_and_the_rest_is_decided_again() -> None:
    world = ScriptedWorld(PAIR, seconds=2)
    world.later(1, world.write_from_elsewhere)
    world.run()
    assert len(world.bodies(SignalReceived)) == 1
    assert len(world.bodies(TaskProcessed)) == 2
    assert world.reasons == []


def test_reports_that_overtake_others_are_recorded_in_their_order() -> None:
    tasks = (TaskPiece("t0", NOOP), TaskPiece("t1", PYTHON))
    loop = 'in: "{{ [1, 2, 3, 4] }}", iterator: item, spec: {mode: parallel, max_in_flight: 4}'
    world = ScriptedWorld([StepPiece("s0", loop=loop, tasks=tasks)], short_messages=True)
    delays = iter([0.5, 0.001, 0.3, 0.001, 0.2, 0.001])
    world.on_frame("worker 0", b'"type":"report"', lambda: (next(delays),), times=6)
    world.run()
    assert any(b'"again"' in frame for _, frame in world.frames)
    assert world.reasons == []
    assert len(world.bodies(TaskStarted)) == 8


def test_a_server_that_stood_still_counts_no_worker_as_lost_that_spoke_meanwhile() -> None:
    world = ScriptedWorld(seconds=TTL * 2)
    world.later(1, lambda: world.put_server_to_sleep(TTL * 2))
    world.run()
    assert world.reasons == ["released"]


def test_a_run_that_is_claimed_when_its_execution_is_taken_up_for_a_retry_is_handed_over() -> None:
    steps = [
        StepPiece("s0", tasks=(TaskPiece("t0", NOOP),), arcs=(ArcPiece("s1"),)),
        StepPiece("s1", tasks=(TaskPiece("t0", PYTHON),)),
    ]
    world = ScriptedWorld(steps, errors=1)
    world.later(0.5, world.crash_server)
    world.run()
    (execution,) = world.audit.mirrors
    assert world.audit.retried == {execution}
    assert world.reasons == []


def test_a_worker_that_comes_back_hears_what_it_missed() -> None:
    world = ScriptedWorld(seconds=30)
    world.later(1, world.cut_connection)
    world.later(1, lambda: world.submit(Cancel()))
    world.run()
    assert world.reasons == []
    assert world.clock.now < TTL


def test_a_lease_lives_from_when_its_heartbeat_was_sent() -> None:
    seconds = 0.0
    leases = LeaseClock(lambda: seconds, ttl=10, registered_at=0)
    sent, seconds = 4.0, 9.0
    leases.beaten(sent, Beaten(known=True))
    assert leases.deadline == 14
    leases.beaten(2.0, Beaten(known=True))
    assert leases.deadline == 14, "an answer that comes late takes nothing away"


def test_what_a_server_left_in_the_outbox_the_next_one_delivers() -> None:
    parent = StepPiece("s0", tasks=(TaskPiece("t0", f"kind: playbook, path: {CHILD}"),))
    waiting = StepPiece("s0", tasks=(TaskPiece("t0", "kind: wait, signal: never"),))
    world = ScriptedWorld([parent], child=[waiting], crash_after_commit=WITH_A_MESSAGE)
    world.later(1, world.crash_server)  # the next one has nothing of the child in memory
    world.later(9, lambda: world.submit(Cancel()))
    world.run()
    assert world.crashed
    assert {state.status for state in world.audit.mirrors.values()} == {"cancelled"}
    assert world.clock.now < 30
