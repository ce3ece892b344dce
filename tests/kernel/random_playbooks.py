"""Small playbooks of every shape, and workers that do things in any order."""

from typing import Any, TypeAlias

from hypothesis import assume
from hypothesis import strategies as st

from noetl.dsl.document.playbook import Playbook
from noetl.events.codec import FORMAT, decode, encode
from noetl.events.event import Event
from noetl.events.event_kind import kind_of_body
from noetl.kernel.net.commands import Cancel, ChildEnded, LeaseLost, Pause, Resume, Retry, Signal
from noetl.kernel.pipeline.interpreter import cancel_run, pause_run
from noetl.kernel.pipeline.moves import Finish, Record, RunTask, Suspend, Wait
from noetl.kernel.state.run_state import ClaimedPart, RunState, Shard
from noetl.model.outcome import Outcome, succeeded
from noetl.testing.simulator.playbook_fragments import (
    KINDS,
    LOOPS,
    NOOP,
    POLICIES,
    PYTHON,
    SPECS,
    WILD_GUARDS,
    join_entries,
)
from noetl.testing.simulator.playbook_pieces import (
    ArcPiece,
    SimulatedPlaybook,
    StepPiece,
    TaskPiece,
    playbook_of,
)
from tests.kernel.driver import Driver, error

BIG_GUARDS = (
    *WILD_GUARDS,
    'when: "{{ event.result.n | default(0) > 1 }}"',
    'when: "{{ event.result.rows | default([]) | length > 2 }}"',
    'when: "{{ event.result is mapping and event.result.more.deep.x | default(1) == 7 }}"',
    'when: "{{ ctx.kept.n is defined or ctx.kept.rows is defined }}"',
    'when: "{{ steps.s0.result.data.n | default(0) == 3 }}", set: {ctx.kept: "{{ event.result }}"}',
)
BIG_ARGS = (
    "",
    'v: "{{ event.result }}"',
    'v: "{{ event.result.rows | default([7]) }}", n: "{{ event.result.n | default(0) }}"',
    "v: \"{{ {'a': event.result, 'b': [1]} }}\"",
    'v: "{{ args.v | default(1) }}", n: "{{ args.v.n | default(0) }}"',
    'v: "{{ ctx.kept | default([4, 5]) }}", n: "{{ ctx.kept.rows | default([]) | length }}"',
)
BIG_KINDS = (
    *KINDS,
    'kind: python, code: "1", args: {all: "{{ args.v | default(none) }}", last: "{{ _prev }}"}',
    'kind: python, code: "1", args: {n: "{{ args.v.n | default(0) }}", text: "{{ ctx.kept | default(0) }} {{ iter.index }}"}',
    'kind: python, code: "1", args: {one: "{{ iter.item | default(0) }}", all: "{{ ctx }}"}',
    'kind: python, code: "1", set: {ctx.kept: "{{ outcome.result }}", iter.mine: "{{ _prev }}"}, args: {mine: "{{ iter.mine | default(0) }}"}',
    'kind: python, code: "1", set: {ctx.kept.n: 5}, args: {n: "{{ ctx.kept.n | default(0) }}"}',
)
BIG_LOOPS = (
    *LOOPS,
    'in: "{{ args.v | default([1, 2], true) }}", iterator: item, spec: {policy: {failure: {mode: best_effort}}, reduce: {ctx.kept: last}}',
    'in: "{{ steps.s0.result }}", iterator: item, spec: {mode: parallel, max_in_flight: 3, reduce: {ctx.kept: first, KEY: append, flag: last}}',
    'in: "{{ range(9) | list }}", iterator: item, spec: {mode: parallel, max_in_flight: 4, reduce: {ctx.kept: last, KEY: append, flag: last}}',
)


SHARDED_LOOPS = (
    'in: "{{ range(5) | list }}", iterator: item, spec: {mode: parallel, max_in_flight: 2, window: 4, reduce: {KEY: append, flag: last}, policy: {exec: distributed}}',
    'in: "{{ range(7) | list }}", iterator: item, spec: {mode: parallel, max_in_flight: 3, reduce: {KEY: append, flag: last}, policy: {exec: distributed, failure: {mode: best_effort}}}',
    "in: [1, 2, 3], iterator: item, spec: {policy: {exec: distributed}}",
)


@st.composite
def playbooks(draw: st.DrawFn) -> Playbook:
    text = draw(texts(guards=WILD_GUARDS, args=("",), kinds=KINDS, loops=(*LOOPS, *SHARDED_LOOPS)))
    return load_sound(text.replace("KNOBS", ""))


def load_sound(text: str) -> Playbook:
    """The playbook, if it is sound."""
    playbook = playbook_of(text)
    assume(playbook is not None)
    assert playbook is not None
    return playbook


Choice: TypeAlias = tuple[str, ...]


@st.composite
def texts(draw: st.DrawFn, guards: Choice, args: Choice, kinds: Choice, loops: Choice) -> str:
    """As the simulator's wild playbooks, drawn so that hypothesis can make them smaller."""
    size = draw(st.integers(1, 4))
    final = draw(st.booleans())
    steps = []
    for number in range(size):
        arcs = [
            ArcPiece(
                f"s{target}", join_entries(f"args: {{{join_entries(f'from: s{number}', extra_args)}}}", guard)
            )
            for target, guard, extra_args in draw(
                st.lists(
                    st.tuples(st.integers(0, size - 1), st.sampled_from(guards), st.sampled_from(args)),
                    max_size=3,
                )
            )
        ]
        drawn = draw(st.lists(st.tuples(st.sampled_from(kinds), st.sampled_from(POLICIES)), max_size=2))
        if not arcs and not drawn:
            drawn = [(PYTHON, "")]
        key = f"k{number}"
        tasks = [
            TaskPiece(f"t{position}", kind, policy.replace("KEY", key))
            for position, (kind, policy) in enumerate(drawn)
        ]
        loop = draw(st.sampled_from(loops)).replace("KEY", key) if tasks else ""
        spec = draw(st.sampled_from(SPECS))
        steps.append(StepPiece(f"s{number}", spec, loop, "", tuple(tasks), draw(st.booleans()), tuple(arcs)))
    if final:
        steps.append(StepPiece("last", tasks=(TaskPiece("t0", NOOP),)))
    executor = "max_step_runs: 25" + (", final_step: last" if final else "") + "KNOBS"
    return SimulatedPlaybook("random/wild", executor, tuple(steps)).text


OUTCOMES: list[Outcome] = [
    succeeded(0),
    succeeded(1),
    succeeded(2),
    succeeded({"a": [1]}),
    error(),
    error("sql"),
]

big_texts = texts(guards=BIG_GUARDS, args=BIG_ARGS, kinds=BIG_KINDS, loops=BIG_LOOPS)
"""Playbooks that hand large values around. `KNOBS` stands where the executor's knobs are."""

BIG_OUTCOMES: list[Outcome] = [
    *OUTCOMES,
    succeeded(
        {"n": 2, "rows": [{"id": number} for number in range(9)], "more": {"deep": {"x": 7, "y": "z" * 40}}}
    ),
    succeeded([{"id": number, "text": "x" * number} for number in range(20)]),
    succeeded({"data": {"n": 3, "text": "y" * 30}, "$noetl": "ref", "key": "mine"}),
    succeeded("text " * 20),
]

big_outcomes = st.lists(st.integers(0, len(BIG_OUTCOMES) - 1), min_size=1, max_size=12)

outcomes = st.lists(st.integers(0, len(OUTCOMES) - 1), min_size=1, max_size=12)
choices = st.lists(st.integers(0, 1000), max_size=60)
"""What a driver does next: which of all that can happen."""


def outcome_by_attempt(turns: list[int], choice: list[Outcome] = OUTCOMES) -> Any:
    """An outcome that depends on where the task stands alone, so that it is the same after a crash."""

    def outcome(call: RunTask) -> Outcome:
        started = call.started
        number = (
            started.iteration * 3
            + started.visit * 5
            + started.attempt * 7
            + len(call.task.label + call.task.kind)
        )
        return choice[turns[number % len(turns)]]

    return outcome


def as_stored(event: Event) -> Event:
    """The event after it was written and read."""
    body = event.body
    return Event(event.seq, event.ts, decode(kind_of_body(body).number, encode(body), FORMAT))


class Chaos(Driver):
    """Workers take runs in any order, are lost, and have several tasks in flight."""

    def __init__(self, playbook: Playbook, turns: list[int], choice: list[Outcome] = OUTCOMES) -> None:
        script = outcome_by_attempt(turns, choice)
        super().__init__(playbook, {"t0": script, "t1": script})
        self.flying: list[tuple[ClaimedPart, int, RunTask]] = []

    def act(self, choice: int) -> bool:
        """One thing that can happen now. False if nothing can, but time may pass."""
        state = self.state
        owned: list[ClaimedPart] = [
            (run, part if isinstance(part, Shard) else None)
            for run in state.claimed_runs()
            for part in run.owned_parts()
        ]
        ready = [] if state.paused or state.stopping else list(state.ready)
        self.flying = [call for call in self.flying if call[0][0].owned_under(call[1]) is not None]
        if choice % 23 == 22:
            self.submit(Resume() if state.paused else Pause())
            return True
        if choice % 97 == 96:
            self.submit(Cancel())
            return True
        if choice % 13 == 12 and state.failed_runs and state.status == "running" and not state.final:
            self.submit(Retry())
            return True
        if choice % 19 == 18 and owned:
            run, shard = owned[choice % len(owned)]
            self.submit(LeaseLost(run.id, (shard or run).fence))
            return True
        if choice % 3 == 2 and self.flying:
            self._land(choice % len(self.flying))
            return True
        if ready and (choice % 2 or not owned):
            self.claim(ready[choice % len(ready)])
            return True
        return any(self.push(*part) for part in owned) or self.land()

    def push(self, run: RunState, shard: Shard | None = None) -> bool:
        """One instruction of a run or shard; False if it only waits."""
        if (shard or run).phase != "claimed":
            return False
        if shard is not None and (self.state.stopping or self.state.paused):
            if any(run.frames[index].running for index in shard.open):
                return False
            self.submit(LeaseLost(run.id, shard.fence, "released"))
            return True
        if self.state.stopping and not any(frame.running for frame in run.frames.values()):
            self.report(run, cancel_run(run))
            return True
        if self.state.paused:
            suspended = pause_run(run)
            if suspended is not None:
                self.report(run, suspended)
            return suspended is not None
        match self.advance(run, shard):
            case Record(body=body) | Finish(body=body):
                self.report(run, body, shard=shard)
            case RunTask() as call:
                self.report(run, *call.begins, shard=shard)
                self.calls.append(call)
                self.flying.append(((run, shard), (shard or run).fence, call))
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
        self._land(0)
        return True

    def _land(self, number: int) -> None:
        (run, shard), _, call = self.flying.pop(number)
        self.report(run, self.judge(run, call.iteration, self.outcome_of(call)), shard=shard)

    def unblock(self) -> bool:
        """Whatever is waited for from outside."""
        if self.state.paused:
            self.submit(Resume())
            return True
        for signal in list(self.state.listeners):
            self.submit(Signal(signal, 1))
            return True
        for run in list(self.state.runs.values()):
            for frame in list(run.frames.values()):
                if frame.suspension is not None and frame.suspension.child:
                    self.submit(ChildEnded(run.id, frame.index, frame.suspension.child, "completed", 1))
                    return True
        return self.fire_next_timer()

    def run_in_order(self, choices: list[int]) -> "Chaos":
        """To the end, the choices first and then in a fixed order."""
        self.start()
        for choice in choices:
            if self.state.over:
                break
            if not self.act(choice) and not self.unblock():
                break
        return self.settle()

    def retry_if_failed(self) -> "Chaos":
        """Retry the failed execution, if it can be retried, and see it to its end."""
        if self.state.status == "failed" and self.state.failed_runs and not self.state.stopping:
            self.submit(Retry())
            self.settle()
        return self

    def settle(self) -> "Chaos":
        for _ in range(5000):
            if self.state.over or not (self.act(0) or self.unblock()):
                return self
        raise AssertionError("it never ends")
