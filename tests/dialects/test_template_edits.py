"""Names and constants change where they are meant, and nothing else does."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noetl.dsl.dialects.draft.draft_tasks import status_edits
from noetl.dsl.dialects.expression_text import edit_text, name_edits
from noetl.expr.expression import parse
from noetl.expr.runtime.scope import EvaluationSite
from noetl.expr.use import Path, Use


def to_run(path: Path, _use: Use) -> tuple[int, str] | None:
    return {("vars",): (1, "run"), ("vars", "x"): (2, "iter.y")}.get(path[:2]) or (
        (1, "run") if path[0] == "vars" else None
    )


RENAMED = [
    ("plain text, vars", "plain text, vars"),
    ("{{ vars }}", "{{ run }}"),
    ("{{ vars.a }} and {{vars.b}}", "{{ run.a }} and {{run.b}}"),
    ("{{ vars.x.z }}", "{{ iter.y.z }}"),
    ("{{ vars['x'].z }}", "{{ iter.y.z }}"),
    ("{{ vars [ 'x' ] }}", "{{ iter.y }}"),
    ("{{ vars[x] }}", "{{ run[x] }}"),
    ("{{ 'vars.a' ~ \"vars\" ~ vars.a }}", "{{ 'vars.a' ~ \"vars\" ~ run.a }}"),
    ("{{ x.vars.y }}", "{{ x.vars.y }}"),
    ("{{ x['vars'] }}", "{{ x['vars'] }}"),
    ("{{ {'vars': vars} }}", "{{ {'vars': run} }}"),
    ("{{ dict(vars=vars.a) }}", "{{ dict(vars=run.a) }}"),
    ("{{ vars.items() | list }}", "{{ run.items() | list }}"),
    ("{{ vars.a | default(vars.b) }}", "{{ run.a | default(run.b) }}"),
    ("{% set vars = 1 %}{{ vars }}", "{% set vars = 1 %}{{ vars }}"),
    (
        "{% for vars in vars.list %}{{ vars.a }}{% endfor %}",
        "{% for vars in run.list %}{{ vars.a }}{% endfor %}",
    ),
    (
        "{% for i in vars.l if vars.on %}{{ i }}{% endfor %}",
        "{% for i in run.l if run.on %}{{ i }}{% endfor %}",
    ),
    ("{# vars #}{{ vars.a }}", "{# vars #}{{ run.a }}"),
    ("{% raw %}{{ vars }}{% endraw %}", "{% raw %}{{ vars }}{% endraw %}"),
    ("{{-  vars.a\n  ~ vars.b  -}}", "{{-  run.a\n  ~ run.b  -}}"),
    ("{{ variables.vars_a + my_vars }}", "{{ variables.vars_a + my_vars }}"),
    ("{{ vars.a ", "{{ vars.a "),
    ("{{ vars.a | nosuchfilter }}", "{{ vars.a | nosuchfilter }}"),
]


@pytest.mark.parametrize(("source", "expected"), RENAMED)
def test_only_free_names_are_renamed(source: str, expected: str) -> None:
    assert edit_text(source, name_edits(to_run)) == expected


GENERAL = "('success' if outcome.status == 'ok' else outcome.status)"
VALUE = f"dict(outcome, status={GENERAL[1:-1]})"

STATUS = [
    ("outcome.status == 'success'", "outcome.status == 'ok'"),
    ('outcome.status != "success"', 'outcome.status != "ok"'),
    ("'success' == outcome.status", "'ok' == outcome.status"),
    ("outcome['status'] == 'success'", "outcome['status'] == 'ok'"),
    ("outcome.status in ['success', 'error']", "outcome.status in ['ok', 'error']"),
    ("outcome.status not in ('success',)", "outcome.status not in ('ok',)"),
    ("outcome.status == 'error'", "outcome.status == 'error'"),
    ("not outcome.status == 'success'", "not outcome.status == 'ok'"),
    ("1 if outcome.status == 'success' else 2", "1 if outcome.status == 'ok' else 2"),
    ("outcome.status == 'success' and outcome.result.n == 'success'", "outcome.status == 'ok' and outcome.result.n == 'success'"),
    ("[outcome.status == 'success', 2]", "[outcome.status == 'ok', 2]"),
    ("output.status == 'success'", "output.status == 'ok'"),
    ("output['status'] | upper", f"{GENERAL} | upper"),
    ("outcome.status", GENERAL[1:-1]),
    ("(outcome.status)", f"({GENERAL})"),
    ("outcome.status | upper", f"{GENERAL} | upper"),
    ("outcome.status == 'ok'", f"{GENERAL} == 'ok'"),
    ("outcome.status == ctx.wanted", f"{GENERAL} == ctx.wanted"),
    ("outcome.status == 'SUCCESS' | lower", f"{GENERAL} == 'SUCCESS' | lower"),
    ("outcome.status in ('success')", f"{GENERAL} in ('success')"),
    ("outcome.status in ['success', ctx.b]", f"{GENERAL} in ['success', ctx.b]"),
    ("'x' ~ outcome.status == 'xsuccess'", f"'x' ~ {GENERAL} == 'xsuccess'"),
    ("outcome.status == 'success' == true", f"{GENERAL} == 'success' == true"),
    ("outcome.status in 'success'", f"{GENERAL} in 'success'"),
    ("outcome.result.status == 'success'", "outcome.result.status == 'success'"),
    ("x.outcome.status == 'success'", "x.outcome.status == 'success'"),
    ("outcome.meta == 'success'", "outcome.meta == 'success'"),
    ("outcome", VALUE),
    ("outcome.get('status')", f"{VALUE}.get('status')"),
    ("output[ctx.key]", f"{VALUE.replace('dict(outcome', 'dict(output')}[ctx.key]"),
    ("{'outcome': outcome}", f"{{'outcome': {VALUE}}}"),
    ("x.outcome", "x.outcome"),
]  # fmt: skip


@pytest.mark.spec("003 §5.3")
@pytest.mark.parametrize(("source", "expected"), STATUS)
def test_a_comparison_changes_its_constant_and_every_other_use_is_translated(
    source: str, expected: str
) -> None:
    assert edit_text("{{ " + source + " }}", status_edits) == "{{ " + expected + " }}"


OPERANDS = st.sampled_from(
    ["'success'", "'error'", "'ok'", "['success', 'x']", "('error', 'success')", "'successful'", "w"]
)
COMPARISONS = st.builds(
    lambda left, operator, right, swap: (
        f"{right} {operator} {left}" if swap and "in" not in operator else f"{left} {operator} {right}"
    ),
    st.sampled_from(["outcome.status", "outcome['status']"]),
    st.sampled_from(["==", "!=", "in", "not in"]),
    OPERANDS,
    st.booleans(),
)
CONDITIONS = st.recursive(
    COMPARISONS,
    lambda inner: (
        st.builds(lambda a, word, b: f"({a}) {word} {b}", inner, st.sampled_from(["and", "or"]), inner)
        | inner.map(lambda a: f"(not {a})")
        | inner.map(lambda a: f"(1 if {a} else 0)")
    ),
    max_leaves=4,
)


@pytest.mark.spec("003 §5.3")
@given(CONDITIONS, st.sampled_from([("success", "ok"), ("error", "error")]))
def test_a_condition_gives_what_it_gave_in_the_draft(condition: str, statuses: tuple[str, str]) -> None:
    source = "{{ " + condition + " }}"
    draft, canonical = ({"outcome": {"status": status}, "w": "success"} for status in statuses)
    expected = parse(source).evaluate(draft, EvaluationSite.VALUE)
    assert parse(edit_text(source, status_edits)).evaluate(canonical, EvaluationSite.VALUE) == expected


@pytest.mark.spec("003 §5.3")
@pytest.mark.parametrize("statuses", [("success", "ok"), ("error", "error")])
@pytest.mark.parametrize(
    "source",
    [
        "{{ outcome }}",
        "{{ outcome | tojson }}",
        "{{ outcome ~ '' }}",
        "{{ outcome.get('status') }}",
        "{{ outcome.items() | list }}",
        "{{ outcome['sta' ~ 'tus'] }}",
        "{{ outcome[w] }}",
        "{{ (outcome).status }}",
        "{{ (outcome if w else none).status == 'success' }}",
        "{{ [outcome, {'status': 'ok'}] | map(attribute='status') | list }}",
        "{{ [outcome] | selectattr('status', 'eq', 'success') | list | length }}",
        "{{ dict(o=outcome).o.status }}",
        "{{ 'success' in outcome.values() }}",
        "{% set o = outcome %}{{ o.status }}",
        "{% set outcome = outcome %}{{ outcome.status }}",
        "{% for key, value in outcome.items() %}{{ key }}={{ value }} {% endfor %}",
        "{% for outcome in [{'status': 'ok'}] %}{{ outcome.status }}{% endfor %}",
        "{{ outcome.get('result').status }} {{ outcome.result }}",
    ],
)
def test_the_value_of_an_outcome_is_the_drafts_wherever_it_goes(
    source: str, statuses: tuple[str, str]
) -> None:
    draft, canonical = (
        {"outcome": {"status": status, "result": {"status": "ok"}}, "w": "status"} for status in statuses
    )
    expected = parse(source).evaluate(draft, EvaluationSite.VALUE)
    assert parse(edit_text(source, status_edits)).evaluate(canonical, EvaluationSite.VALUE) == expected


@given(st.text(max_size=60) | st.text("{}%#'\"vars.[]|() x\n", max_size=40))
def test_text_without_the_name_never_changes(text: str) -> None:
    assert edit_text(text.replace("vars", "v"), name_edits(to_run), status_edits) == text.replace("vars", "v")
