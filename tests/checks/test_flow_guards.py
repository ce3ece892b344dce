"""What guards and admission say of names, and what they prove of them."""

import pytest

from tests.checks.flow_playbooks import TWO_WAYS, messages

GUARD = """\
workflow:
  - step: start
    next:
      arcs:
        - { step: work, when: "{{ ctx.NAME == 1 }}" }
  - step: work
    tool: [{ kind: noop, set: { ctx.seen: 1 } }]
    next: { arcs: [{ step: start }] }
"""


def test_in_a_guard_only_names_that_nothing_ever_sets_are_reported() -> None:
    assert messages(GUARD.replace("NAME", "seen")) == []
    assert messages(GUARD.replace("NAME", "sene")) == ["nothing sets `ctx.sene`"]


@pytest.mark.parametrize(
    ("guard", "proves"),
    [
        ("ctx.page is defined", True),
        ("ctx.page", True),
        ("ctx.page > 3 and workload.full", True),
        ("ctx.page == 'x'", True),
        ("ctx.page | length > 0", True),
        ("not (ctx.page is undefined)", True),
        ("ctx.page is string", True),
        ("ctx.page is none", True),
        ("ctx.page | int > 3", True),
        ("ctx.page + 1 < 5", True),
        ("0 < ctx.page < 5", True),
        ("ctx.page[0].id == 3", True),
        ("ctx.page.startswith('a')", True),
        ("not (ctx.page != 3)", True),
        ("ctx.page != 3", False),
        ("ctx.page not in [3]", False),
        ("ctx.page is undefined", False),
        ("ctx.page or workload.full", False),
        ("ctx.page | length >= 0", False),
        ("ctx.page | default(4) > 3", False),
        ("ctx.page ~ 'x' == 'x'", False),
        ("(workload.full and ctx.page) is defined", False),
        ("(not ctx.page) is boolean", False),
    ],
)
def test_a_guard_that_holds_proves_the_names_it_compares(guard: str, proves: bool) -> None:
    text = TWO_WAYS.replace("- { step: report }\n", f'- {{ step: report, when: "{{{{ {guard} }}}}" }}\n')
    assert (messages(text) == []) is proves


def test_an_exclusive_arc_behind_one_for_the_undefined_is_for_the_defined() -> None:
    text = """\
workflow:
  - step: start
    next:
      arcs:
        - { step: init, when: "{{ ctx.page is undefined }}" }
        - { step: report }
  - step: init
    tool: [{ kind: noop, set: { ctx.page: 1 } }]
    next: { arcs: [{ step: start }] }
  - step: report
    tool: [{ kind: noop, args: { page: "{{ ctx.page }}" } }]
"""
    assert messages(text) == []


def test_admission_proves_what_its_rules_ask_for() -> None:
    text = TWO_WAYS.replace(
        "  - step: report\n    tool",
        """  - step: report
    spec:
      policy:
        admit:
          rules:
            - { when: "{{ ctx.page is defined }}", then: { allow: true } }
            - else: { allow: false }
    tool""",
    )
    assert messages(text) == []
    assert messages(text.replace("else: { allow: false }", "else: { allow: true }")) != []


@pytest.mark.no_cover
def test_a_router_with_many_guards_is_judged_in_good_time() -> None:
    count = 1500
    arcs = "".join(
        f"""\
        - {{ step: end, when: "{{{{ ctx.n == {number} }}}}", args: {{ n: "{{{{ ctx.n }}}}" }} }}
"""
        for number in range(count)
    )
    text = f"""\
workflow:
  - step: start
    next:
      arcs:
{arcs}        - {{ step: count }}
  - step: count
    tool: [{{ kind: noop, set: {{ ctx.n: 1 }} }}]
    next: {{ arcs: [{{ step: start }}] }}
  - step: end
    tool: [{{ kind: noop, args: {{ n: "{{{{ args.n }}}}" }} }}]
"""
    assert messages(text) == []
