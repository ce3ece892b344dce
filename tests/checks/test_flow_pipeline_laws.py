"""The flow through one pipeline against brute force: every way that rules can send it."""

import re
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.checks.flow_playbooks import HEADER, findings

PERHAPS = "{{ workload.perhaps }}"
OK = "{{ outcome.status == 'ok' }}"
ERROR = "{{ outcome.status == 'error' }}"
SURE = {OK: {"ok"}, ERROR: {"error"}, "else": {"ok", "error"}}
END = -1


class Rule(NamedTuple):
    when: str
    do: str
    writes: bool


class Task(NamedTuple):
    rules: tuple[Rule, ...] | None


def text_of(tasks: tuple[Task, ...]) -> str:
    """Each task reads `iter.name` before it runs; its rules may write it."""
    lines = ["workload: { perhaps: true }", "workflow:", "  - step: start", "    tool:"]
    for number, task in enumerate(tasks):
        lines += [f"      - name: t{number}", "        kind: python", "        code: result = 1"]
        lines.append('        args: { seen: "{{ iter.name }}" }')
        if task.rules is not None:
            lines.append("        spec: { policy: { rules: [")
            for rule in task.rules:
                do = f"jump, to: {rule.do}" if rule.do.startswith("t") else rule.do
                then = f"{{ do: {do}{', set_iter: { name: 1 }' if rule.writes else ''} }}"
                head = "else: " if rule.when == "else" else f'when: "{rule.when}", then: '
                lines.append(f"          {{ {head}{then} }},")
            lines.append("        ] } }")
    return "\n".join(lines) + "\n"


@st.composite
def pipelines(draw: st.DrawFn) -> tuple[Task, ...]:
    size = draw(st.integers(1, 4))
    directives = ("continue", "break", "fail", "retry", *(f"t{number}" for number in range(size)))
    rule = st.builds(Rule, st.sampled_from((PERHAPS, OK, ERROR)), st.sampled_from(directives), st.booleans())
    last = st.builds(Rule, st.just("else"), st.sampled_from(directives), st.booleans())
    rules = st.builds(lambda some, end: (*some, *end), st.lists(rule, max_size=2), st.lists(last, max_size=1))
    return draw(
        st.lists(st.builds(Task, st.none() | rules.filter(bool)), min_size=size, max_size=size).map(tuple)
    )


def continuations(tasks: tuple[Task, ...], number: int) -> set[tuple[int, bool]]:
    """Where a task may lead, and whether the name is written on that way."""
    following = number + 1 if number + 1 < len(tasks) else END
    rules = tasks[number].rules
    if rules is None:
        return {(following, False)}
    targets = set()
    for status in ("ok", "error"):
        for rule in rules:
            if status not in SURE.get(rule.when, {"ok", "error"}):
                continue
            target = int(rule.do[1:]) if rule.do.startswith("t") else following
            targets.add((target if rule.do not in ("break", "fail", "retry") else END, rule.writes))
            if status in SURE.get(rule.when, ()):
                break
        else:
            targets.add((following, False))
    return targets


@settings(max_examples=200, deadline=None)
@given(pipelines())
def test_a_name_is_reported_where_some_way_leaves_it_unset(tasks: tuple[Task, ...]) -> None:
    reached = {(0, False)}
    waiting = [(0, False)]
    while waiting:
        number, was_set = waiting.pop()
        for target, writes in continuations(tasks, number):
            state = (target, was_set or writes)
            if target != END and state not in reached:
                reached.add(state)
                waiting.append(state)
    unset = [number for number in range(len(tasks)) if (number, False) in reached]
    text = text_of(tasks)
    problems = [problem for problem in findings(text) if problem.code == "unset-name"]
    if any(rule.writes for task in tasks for rule in task.rules or ()):
        # Of several reads in one step only the first is reported.
        before = ["\n".join((HEADER + text).split("\n")[: problem.line]) for problem in problems]
        assert [int(re.findall(r"name: t(\d)", text_before)[-1]) for text_before in before] == unset[:1]
    else:
        assert [problem.message for problem in problems] == ["nothing sets `iter.name`"]
