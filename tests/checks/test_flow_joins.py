"""What a join can count on."""

import pytest

from tests.checks.flow_playbooks import messages

FAN = """\
workflow:
  - step: start
    next:
      spec: { mode: inclusive }
      arcs: [{ step: a1 LEFT}, { step: b }]
  - step: a1
    tool: [{ kind: noop, set: { ctx.a: 1 } }]
    next: { arcs: [{ step: a2, args: { left: 1 } }] }
  - step: a2
    tool: [{ kind: noop, set: { ctx.aa: 1 } }]
    next: { arcs: [{ step: both, args: { left: 1 } }] }
  - step: b
    tool: [{ kind: noop, set: { ctx.b: 1 } }]
    next: { arcs: [{ step: both, args: { right: 1 } }] }
  - step: both
    JOIN
    tool: [{ kind: noop, args: { n: "{{ NAME }}" } }]
"""
ALL = "spec: { policy: { join: all } }"


def fan(name: str, *, join: str = ALL, left: str = "") -> list[str]:
    text = FAN.replace("NAME", name).replace("LEFT", left)
    return messages(text.replace("    JOIN\n", f"    {join}\n" if join else ""))


@pytest.mark.parametrize(
    "name", ["ctx.a", "ctx.aa", "ctx.b", "a1", "a2", "b", "args.left", "args.right", "right"]
)
def test_a_join_of_all_has_what_each_branch_sets(name: str) -> None:
    assert fan(name) == []


@pytest.mark.parametrize("name", ["ctx.a", "ctx.aa"])
def test_a_branch_that_may_not_start_is_not_counted_on(name: str) -> None:
    guarded = ', when: "{{ workload.full }}" '
    assert fan(name, left=guarded) == [f"`{name}` may be unset when coming from `start` → `b` → `both`"]
    assert fan("ctx.b", left=guarded) == []


@pytest.mark.parametrize(
    "join", ["", "spec: { policy: { join: any } }", "spec: { policy: { join: { count: 2 } } }"]
)
def test_other_steps_have_what_every_arc_brings(join: str) -> None:
    assert fan("ctx.aa", join=join) == ["`ctx.aa` may be unset when coming from `start` → `b` → `both`"]


def test_a_branch_whose_token_may_be_kept_out_is_not_counted_on() -> None:
    admit = """spec: { policy: { admit: { rules: [{ when: "{{ workload.full }}", then: { allow: true } }] } } }
    tool: [{ kind: noop, set: { ctx.aa: 1 } }]"""
    text = FAN.replace("NAME", "ctx.aa").replace("LEFT", "").replace("JOIN", ALL)
    text = text.replace("tool: [{ kind: noop, set: { ctx.aa: 1 } }]", admit)
    assert messages(text) == ["`ctx.aa` may be unset when coming from `start` → `b` → `both`"]


def test_exclusive_branches_to_a_join_do_not_all_come() -> None:
    text = FAN.replace("NAME", "ctx.b").replace("LEFT", ', when: "{{ workload.full }}" ').replace("JOIN", ALL)
    text = text.replace("mode: inclusive", "mode: exclusive")
    assert messages(text) == ["`ctx.b` may be unset when coming from `start` → `a1` → `a2` → `both`"]


def test_a_branch_that_may_fail_into_the_join_is_not_counted_on() -> None:
    text = """\
workflow:
  - step: start
    next: { spec: { mode: inclusive }, arcs: [{ step: a }, { step: b }] }
  - step: a
    tool: [{ name: get, kind: http, url: "http://127.0.0.1", set: { ctx.a: 1 } }]
    next:
      arcs:
        - { step: both, when: "{{ event.name == 'step.done' }}" }
        - { step: both, when: "{{ event.name == 'step.failed' }}" }
  - step: b
    tool: [{ kind: noop, set: { ctx.b: 1 } }]
    next: { arcs: [{ step: both }] }
  - step: both
    spec: { policy: { join: all } }
    tool: [{ kind: noop, args: { a: "{{ ctx.a }}", b: "{{ ctx.b }}", c: "{{ steps.a.status }}" } }]
"""
    assert messages(text) == ["`ctx.a` may be unset when coming from `start` → `a` → `both`"]


@pytest.mark.no_cover
def test_very_many_joins_far_from_their_fork_are_not_accused() -> None:
    last = 300
    arcs = ", ".join(f"{{ step: s{n} }}" for n in range(1, last))
    text = f"workflow:\n  - step: start\n    next: {{ spec: {{ mode: inclusive }}, arcs: [{arcs}] }}\n"
    for n in range(1, last):
        read = f'args: {{ a: "{{{{ ctx.x{n - 1} }}}}" }}, ' if n > 1 else ""
        text += f"  - step: s{n}\n    {ALL}\n    tool: [{{ kind: noop, {read}set: {{ ctx.x{n}: 1 }} }}]\n"
        text += f"    next: {{ arcs: [{{ step: s{n + 1} }}] }}\n"
    text += f"  - step: s{last}\n    tool: [{{ kind: noop }}]\n"
    assert messages(text) == []
