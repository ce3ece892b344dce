import pytest

from noetl.dsl.document.playbook import Admission, AdmitRule, Break, Loop, Policy, Task, Then
from noetl.expr.expression import parse
from noetl.graph.picture import Badge, ExecutionFacts, PictureEdge, PictureNode, PolicyMark, picture_of
from noetl.graph.playbook_text import (
    flatten,
    guard_label,
    inner_source,
    reads_failure,
    shorten,
    split_event_mark,
)
from noetl.model.json import Json
from tests.graph.playbook_builder import (
    POSITION,
    admit,
    arc,
    full_playbook,
    guard,
    join_count,
    loop,
    playbook,
    step,
)
from tests.templates import parse_template


def nodes() -> dict[str, PictureNode]:
    return {node.name: node for node in picture_of(full_playbook(), None).nodes}


def edge(source: str, target: str) -> PictureEdge:
    picture = picture_of(full_playbook(), None)
    names = [node.name for node in picture.nodes]
    return next(e for e in picture.edges if (names[e.source], names[e.target]) == (source, target))


def test_steps_play_their_parts() -> None:
    assert {name: node.roles for name, node in nodes().items() if node.roles} == {
        "start": ("start",),
        "end": ("end",),
        "cleanup": ("final",),
    }


def test_a_step_without_arcs_in_or_out_is_both_start_and_end() -> None:
    (only,) = picture_of(playbook(step("only")), None).nodes
    assert only.roles == ("start", "end")


def test_tasks_show_what_their_policy_may_do() -> None:
    first, second = nodes()["fetch"].rows
    assert (first.label, first.kind, first.marks) == ("fetch_page", "http", (PolicyMark("retry", "5\u00d7"),))
    assert second.marks == (PolicyMark("jump", "fetch_page"), PolicyMark("break", "break"))


def test_what_a_policy_does_otherwise_is_shown_too() -> None:
    policy = Policy((), Then(Break(), POSITION), "continue", POSITION)
    only = Task("t", "noop", POSITION, policy=policy)
    (node,) = picture_of(playbook(step("s", only)), None).nodes
    assert node.rows[0].marks == (PolicyMark("break", "break"),)


def test_gates_joins_and_loops_are_badges() -> None:
    assert nodes()["fetch"].badges == (
        Badge("loop", "for endpoint in workload.endpoints", "parallel, 7 in flight"),
    )
    assert nodes()["merge"].badges == (Badge("admit", "admit if ctx.errors == 0"), Badge("join", "join all"))
    assert nodes()["alert"].badges == (Badge("join", "join 1 of 1"),)


def test_a_count_join_names_how_many_arcs_lead_to_it() -> None:
    steps = [
        step("a", to=["b", "c"]),
        step("b", to=["d"]),
        step("c", to=["d"]),
        step("d", join=join_count(2)),
    ]
    assert picture_of(playbook(*steps), None).nodes[3].badges == (Badge("join", "join 2 of 2"),)


def test_every_rule_of_a_gate_is_shown_in_order() -> None:
    rules = (AdmitRule(guard("a"), True, POSITION), AdmitRule(guard("b"), False, POSITION))
    gate = Admission(rules, True, "fail", POSITION)
    (node,) = picture_of(playbook(step("s", admit=gate)), None).nodes
    assert node.badges == (
        Badge("admit", "admit if a", "else fail"),
        Badge("admit", "deny if b"),
        Badge("admit", "admit otherwise"),
    )


@pytest.mark.parametrize(
    ("items", "text"),
    [
        ("{{ ctx.pages }}", "ctx.pages"),
        ([1, 2], "[1, 2]"),
        (["{{ a }}", 2], "[2 items]"),
        ({"a": 1}, '{"a": 1}'),
        ({"a": "{{ b }}"}, "{1 entries}"),
    ],
)
def test_loops_say_what_they_run_over(items: Json, text: str) -> None:
    loop_spec = loop(items, "x")
    (node,) = picture_of(playbook(step("s", loop=loop_spec)), None).nodes
    assert node.badges[0].text == f"for x in {text}"
    assert node.badges[0].detail == "sequential"


def test_loops_say_how_they_run() -> None:
    loop_spec = Loop(
        parse_template("{{ a }}"),
        "x",
        POSITION,
        mode="parallel",
        max_in_flight=parse("{{ workload.n }}"),
        placement="distributed",
        failure="best_effort",
    )
    (node,) = picture_of(playbook(step("s", loop=loop_spec)), None).nodes
    assert node.badges[0].detail == "parallel, workload.n in flight, distributed, best effort"


def test_arcs_of_an_exclusive_router_are_numbered() -> None:
    assert (edge("start", "fetch").order, edge("start", "fetch").text) == ("1", "workload.enabled")
    assert (edge("start", "end").order, edge("start", "end").text) == ("2", "otherwise")


def test_arcs_of_an_inclusive_router_are_not() -> None:
    assert nodes()["fetch"].inclusive
    assert (edge("fetch", "right").order, edge("fetch", "right").text) == ("+", "")


def test_an_only_arc_has_neither_number_nor_text() -> None:
    assert (edge("left", "merge").order, edge("left", "merge").text) == ("", "")


def test_arcs_for_failures_are_marked() -> None:
    assert edge("fetch", "alert").failure
    assert not edge("fetch", "left").failure


@pytest.mark.parametrize(
    ("condition", "failure"),
    [
        ("event.name == 'step.failed'", True),
        ('event.name in ["call.error"]', True),
        ("event.name != 'step.failed'", False),
        ("event.name == 'step.done'", False),
    ],
)
def test_a_guard_that_asks_for_failure(condition: str, failure: bool) -> None:
    assert reads_failure(guard(condition)) is failure


def test_states_colour_what_they_name_and_fade_the_rest() -> None:
    picture = picture_of(full_playbook(), ExecutionFacts({"start": "completed", "fetch": "running"}))
    by_name = {node.name: node for node in picture.nodes}
    assert (by_name["start"].state, by_name["start"].faded) == ("completed", False)
    assert by_name["merge"].faded
    assert [edge.faded for edge in picture.edges[:2]] == [False, True]
    assert not any(node.faded for node in picture_of(full_playbook(), None).nodes)


def test_an_arc_to_a_step_that_is_not_there_is_left_out() -> None:
    assert picture_of(playbook(step("a", to=[arc("nowhere")])), None).edges == ()


def test_braces_are_taken_off_one_expression_only() -> None:
    assert inner_source("{{ a.b == 'x' }}") == "a.b == 'x'"
    assert inner_source("{{- a -}}") == "a"
    assert inner_source("{{ a }} and {{ b }}") == "{{ a }} and {{ b }}"
    assert guard_label(True) == ""
    assert guard_label(False) == "never"


def test_text_is_made_one_printable_line() -> None:
    assert flatten("a\n\tb\x00c\u202ed\ufffe") == "a b cd"
    assert flatten("\ud800x") == "x"
    assert shorten("abcdef", 4) == "abc…"
    assert shorten("abcd", 4) == "abcd"


def test_gates_with_many_rules_keep_them_all() -> None:
    (node,) = picture_of(playbook(step("s", admit=admit(*"abcdefgh"))), None).nodes
    assert [badge.text for badge in node.badges] == [f"admit if {name}" for name in "abcdefgh"]


@pytest.mark.parametrize(
    ("condition", "mark", "rest"),
    [
        ("event.name == 'step.done'", "done", ""),
        ('event.name=="loop.done"', "done", ""),
        ("event.name in ('step.done', 'loop.done')", "done", ""),
        ("event.name in ['step.done'] and ctx.a", "done", "ctx.a"),
        ("event.name != 'step.failed'", "done", ""),
        ("event.name == 'step.failed'", "failed", ""),
        ("event.name == 'call.error' and event.error.kind == 'sql'", "failed", "event.error.kind == 'sql'"),
        ("ctx.a and event.name == 'step.done'", "done", "ctx.a"),
        ("ctx.a or ctx.b and event.name == 'step.done'", "", None),
        ("event.name == 'step.done' and ctx.a or ctx.b", "", None),
        ("event.name == 'step.done' and (1 if ctx.a else 0)", "", None),
        ("event.name == 'step.done' or ctx.b", "", None),
        ("event.name != 'step.done'", "", None),
        ("event.name in ('step.done', 'step.failed')", "", None),
        ("not event.name == 'step.done'", "", None),
        ("my.event.name == 'step.done'", "", None),
        ("ctx.a", "", None),
    ],
)
def test_a_condition_on_the_end_of_a_step_is_split_from_the_rest(
    condition: str, mark: str, rest: str | None
) -> None:
    assert split_event_mark(condition) == (mark, condition if rest is None else rest)
