"""The analysis against brute force: every path of a token, every state of the token game."""

import re
from itertools import chain, combinations, pairwise
from typing import NamedTuple

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from noetl.dsl.checks.concurrent_writes import overlapping_steps, token_net
from noetl.loader import load
from tests.checks.flow_playbooks import HEADER, findings

DONE = "{{ event.name == 'step.done' }}"
FAILED = "{{ event.name == 'step.failed' }}"
PERHAPS = "{{ workload.perhaps }}"
ALWAYS = ""

PYTHON = "kind: python\n        code: result = 1"
MOST_STATES = 3_000


class Arc(NamedTuple):
    to: int
    when: str


class Step(NamedTuple):
    inclusive: bool
    arcs: tuple[Arc, ...]
    writes: bool
    join: bool = False


def text_of(steps: tuple[Step, ...], *, tool: str) -> str:
    """Each step reads `ctx.name` as it begins, and may write it when it has succeeded."""
    lines = ["workload: { perhaps: true }", "workflow:"]
    for number, step in enumerate(steps):
        lines.append(f"  - step: s{number}")
        if step.join:
            lines.append("    spec: { policy: { join: all } }")
        lines += ["    tool:", f"      - {tool}"]
        lines.append('        args: { seen: "{{ ctx.name }}" }')
        if step.writes:
            lines.append("        set: { ctx.name: 1 }")
        if step.arcs:
            mode = "inclusive" if step.inclusive else "exclusive"
            lines += ["    next:", f"      spec: {{ mode: {mode} }}", "      arcs:"]
            for arc in step.arcs:
                when = f', when: "{arc.when}"' if arc.when else ""
                lines.append(f"        - {{ step: s{arc.to}{when} }}")
    return "\n".join(lines) + "\n"


@st.composite
def workflows(draw: st.DrawFn, *, guards: tuple[str, ...], acyclic: bool, joins: bool) -> tuple[Step, ...]:
    size = draw(st.integers(2, 6))
    steps = []
    for number in range(size):
        first = number + 1 if acyclic else 0
        targets = st.integers(first, size - 1) if first < size else st.nothing()
        arcs = st.lists(st.builds(Arc, targets, st.sampled_from(guards)), max_size=3 if first < size else 0)
        steps.append(
            Step(
                inclusive=draw(st.booleans()),
                arcs=tuple(draw(arcs)),
                writes=draw(st.booleans()),
                join=joins and number > 0 and draw(st.booleans()),
            )
        )
    return tuple(steps)


def fires_on(step: Step) -> list[tuple[Arc, set[str]]]:
    """The endings on which each arc may fire; arcs that do not ask are meant for success."""
    left = {"done", "failed"}
    endings_by_arc = []
    for arc in step.arcs:
        possible = left & {DONE: {"done"}, FAILED: {"failed"}}.get(arc.when, {"done", "failed"})
        certain = set() if arc.when == PERHAPS else set(possible)
        endings_by_arc.append((arc, {"done"} if "done" in possible else possible))
        if not step.inclusive:
            left -= certain
    return endings_by_arc


@settings(max_examples=150, deadline=None)
@given(workflows(guards=(ALWAYS, DONE, FAILED, PERHAPS), acyclic=False, joins=False))
def test_a_name_is_reported_where_some_path_leaves_it_unset(steps: tuple[Step, ...]) -> None:
    reached = {(0, False)}
    waiting = [(0, False)]
    while waiting:
        number, was_set = waiting.pop()
        for arc, endings in fires_on(steps[number]):
            for ending in endings:
                state = (arc.to, was_set or (steps[number].writes and ending == "done"))
                if state not in reached:
                    reached.add(state)
                    waiting.append(state)
    expected = {number for number, was_set in reached if not was_set}
    unreached = set(range(len(steps))) - {number for number, _ in reached}
    messages = reported(text_of(steps, tool=PYTHON))
    if any(step.writes for step in steps):
        assert set(messages) == expected
        for number, message in messages.items():
            assert_is_way(steps, message, number)
    else:
        assert set(messages) == expected | unreached
        assert set(messages.values()) == {"nothing sets `ctx.name`"}


def reported(text: str) -> dict[int, str]:
    """The messages about unset names by the number of the step that reads them."""
    lines = (HEADER + text).split("\n")
    messages = {}
    for problem in findings(text):
        if problem.code == "unset-name":
            step = re.findall(r"- step: s(\d)", "\n".join(lines[: problem.line]))[-1]
            messages[int(step)] = problem.message
    return messages


def assert_is_way(steps: tuple[Step, ...], message: str, reader: int) -> None:
    """The message names a path of arcs from the entry to the reader on which nothing writes."""
    path = [int(number) for number in re.findall(r"`s(\d)`", message)]
    assert path[-1] == reader
    assert path[0] == 0
    for source, target in pairwise(path):
        endings_of_arcs = [endings for arc, endings in fires_on(steps[source]) if arc.to == target]
        assert endings_of_arcs
        assert not steps[source].writes or {"failed"} in endings_of_arcs


class Game(NamedTuple):
    """Where tokens run, where they wait, and whether the name is set."""

    running: tuple[int, ...]
    waiting: tuple[int, ...]
    was_set: bool


def play(steps: tuple[Step, ...]) -> set[Game]:
    """Every state that the tokens can come to, if no step fails."""
    reach = reach_of(steps)
    first = Game((0,), (), was_set=False)
    seen = {first}
    todo = [first]
    while todo:
        state = todo.pop()
        assume(len(seen) < MOST_STATES and len(state.running) + len(state.waiting) < 7)
        for following in moves(steps, reach, state):
            if following not in seen:
                seen.add(following)
                todo.append(following)
    return seen


def moves(steps: tuple[Step, ...], reach: list[set[int]], state: Game) -> list[Game]:
    next_states = []
    for at, number in enumerate(state.running):
        still_running = state.running[:at] + state.running[at + 1 :]
        for chosen in choices(steps[number]):
            running = sorted([*still_running, *(to for to in chosen if not steps[to].join)])
            waiting = sorted([*state.waiting, *(to for to in chosen if steps[to].join)])
            next_states.append(Game(tuple(running), tuple(waiting), state.was_set or steps[number].writes))
    for join in set(state.waiting):
        other_tokens = [*state.running, *(number for number in state.waiting if number != join)]
        if not any(join in reach[number] for number in other_tokens):
            left = tuple(number for number in state.waiting if number != join)
            next_states.append(Game(tuple(sorted([*state.running, join])), left, state.was_set))
    return next_states


def choices(step: Step) -> list[tuple[int, ...]]:
    """The sets of arcs that may fire together."""
    if step.inclusive:
        sure = [arc.to for arc in step.arcs if arc.when == ALWAYS]
        unsure = [arc.to for arc in step.arcs if arc.when != ALWAYS]
        subsets = chain.from_iterable(combinations(unsure, size) for size in range(len(unsure) + 1))
        return [(*sure, *subset) for subset in subsets]
    targets: list[tuple[int, ...]] = []
    for arc in step.arcs:
        targets.append((arc.to,))
        if arc.when == ALWAYS:
            return targets
    return [*targets, ()]


def reach_of(steps: tuple[Step, ...]) -> list[set[int]]:
    reach: list[set[int]] = [set() for _ in steps]
    for number in range(len(steps) - 1, -1, -1):
        for chosen in choices(steps[number]):
            for to in chosen:
                reach[number] |= {to} | reach[to]
    return reach


@settings(max_examples=150, deadline=None)
@given(workflows(guards=(ALWAYS, PERHAPS), acyclic=True, joins=True))
def test_a_name_that_is_not_reported_is_set_whenever_the_step_begins(steps: tuple[Step, ...]) -> None:
    allowed = reported(text_of(steps, tool="kind: noop"))
    reach = reach_of(steps)
    for state in play(steps):
        for following in moves(steps, reach, state):
            for number in following.running:
                begins = following.running.count(number) > state.running.count(number)
                assert not begins or following.was_set or number in allowed


@settings(max_examples=150, deadline=None)
@given(workflows(guards=(ALWAYS, PERHAPS), acyclic=True, joins=True))
def test_steps_overlap_if_two_tokens_can_run_them_at_once(steps: tuple[Step, ...]) -> None:
    expected = {pair for state in play(steps) for pair in combinations(state.running, 2)}
    playbook = load(HEADER + text_of(steps, tool="kind: noop"))
    rows = overlapping_steps(playbook, token_net(playbook, precise=True))
    overlapping = {
        (step, other_step)
        for step, row in enumerate(rows)
        for other_step in range(step, len(rows))
        if row >> other_step & 1
    }
    assert overlapping == expected
