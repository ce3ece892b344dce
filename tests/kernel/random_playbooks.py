"""Small playbooks of every shape, and workers that do things in any order."""

from typing import Any

from hypothesis import assume
from hypothesis import strategies as st

from noetl.dsl.playbook import Playbook
from noetl.events import FORMAT, decode, encode, kind_of
from noetl.events.event import Event
from noetl.kernel.net.commands import Cancel, ChildEnded, LeaseLost, Pause, Resume, Retry, Signal
from noetl.kernel.pipeline.advance import advance, cancelled, pause
from noetl.kernel.pipeline.moves import Finish, Record, RunTask, Suspend, Wait
from noetl.kernel.pipeline.policy import judge
from noetl.kernel.run import RunState
from noetl.model.outcome import Outcome, succeeded
from noetl.testing.simulator.document import playbook_of
from noetl.testing.simulator.wild import sketch
from tests.kernel.driver import Driver, error


@st.composite
def playbooks(draw: st.DrawFn) -> Playbook:
    document = sketch(draw(st.randoms(use_true_random=False)))
    loaded = playbook_of(document.text)
    assume(loaded is not None)
    assert loaded is not None
    return loaded


OUTCOMES: list[Outcome] = [
    succeeded(0),
    succeeded(1),
    succeeded(2),
    succeeded({"a": [1]}),
    error(),
    error("sql"),
]

outcomes = st.lists(st.integers(0, len(OUTCOMES) - 1), min_size=1, max_size=12)


def by_place(turns: list[int]) -> Any:
    """An outcome that depends on where the task stands alone, so that it is the same after a crash."""

    def outcome(call: RunTask) -> Outcome:
        started = call.started
        number = (
            started.iteration * 3
            + started.visit * 5
            + started.attempt * 7
            + len(call.task.label + call.task.kind)
        )
        return OUTCOMES[turns[number % len(turns)]]

    return outcome


def stored(event: Event) -> Event:
    """The event after it was written and read."""
    body = event.body
    return Event(event.seq, event.ts, decode(kind_of(body).number, encode(body), FORMAT))


class Chaos(Driver):
    """Workers take runs in any order, are lost, and have several tasks in flight."""

    def __init__(self, playbook: Playbook, turns: list[int]) -> None:
        script = by_place(turns)
        super().__init__(playbook, {"t0": script, "t1": script})
        self.flying: list[tuple[str, int, RunTask]] = []

    def act(self, choice: int) -> bool:
        """One thing that can happen now. False if nothing can, but time may pass."""
        state = self.state
        owned = list(state.claimed_runs())
        ready = [] if state.paused or state.stopping else list(state.ready)
        self.flying = [
            one for one in self.flying if any(run.id == one[0] and run.fence == one[1] for run in owned)
        ]
        if choice % 23 == 22:
            self.give(Resume() if state.paused else Pause())
            return True
        if choice % 97 == 96:
            self.give(Cancel())
            return True
        if choice % 19 == 18 and owned:
            run = owned[choice % len(owned)]
            self.give(LeaseLost(run.id, run.fence))
            return True
        if choice % 3 == 2 and self.flying:
            run_id, _, call = self.flying.pop(choice % len(self.flying))
            run = state.runs[run_id]
            self.report(run, judge(run, call.iteration, self.outcome_of(call), self.now))
            return True
        if ready and (choice % 2 or not owned):
            self.claim(ready[choice % len(ready)])
            return True
        return any(self.push(run) for run in owned) or self.land()

    def push(self, run: RunState) -> bool:
        """One instruction of a run; False if it only waits."""
        if run.phase != "claimed":
            return False
        if self.state.stopping and not any(frame.running for frame in run.frames.values()):
            self.report(run, cancelled(run))
            return True
        if self.state.paused:
            suspended = pause(run)
            if suspended is not None:
                self.report(run, suspended)
            return suspended is not None
        match advance(run, self.now):
            case Record(body=body) | Finish(body=body):
                self.report(run, body)
            case RunTask() as call:
                self.report(run, call.started)
                self.flying.append((run.id, run.fence, call))
            case Wait(until=until):
                if until is None or self.flying:
                    return False
                self.now = until
            case Suspend():
                return False
        return True

    def land(self) -> bool:
        if not self.flying:
            return False
        run_id, _, call = self.flying.pop(0)
        run = self.state.runs[run_id]
        self.report(run, judge(run, call.iteration, self.outcome_of(call), self.now))
        return True

    def unblock(self) -> bool:
        """Whatever is waited for from outside."""
        if self.state.paused:
            self.give(Resume())
            return True
        for signal in list(self.state.listeners):
            self.give(Signal(signal, 1))
            return True
        for run in list(self.state.runs.values()):
            for frame in list(run.frames.values()):
                if frame.suspension is not None and frame.suspension.child:
                    self.give(ChildEnded(run.id, frame.index, frame.suspension.child, "completed", 1))
                    return True
        return self.fire_next_timer()

    def live(self, choices: list[int]) -> "Chaos":
        """To the end, the choices first and then in a fixed order."""
        self.start()
        for choice in choices:
            if self.state.over:
                break
            if not self.act(choice) and not self.unblock():
                break
        return self.settle()

    def try_again(self) -> "Chaos":
        """Retry the failed execution, if it can be retried, and see it to its end."""
        if self.state.status == "failed" and self.state.failed_runs and not self.state.stopping:
            self.give(Retry())
            self.settle()
        return self

    def settle(self) -> "Chaos":
        for _ in range(5000):
            if self.state.over or not (self.act(0) or self.unblock()):
                return self
        raise AssertionError("it never ends")
