"""Random canonical playbooks, written in the dialect in use, are themselves again when lowered."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noetl.dsl.dialects.constant_comparison import _on_tokens, find_comparison
from noetl.dsl.dialects.expression_text import TemplateTokens
from noetl.dsl.dialects.yaml_writer import to_yaml
from noetl.expr import expression
from noetl.expr.evaluator import analyse_source
from noetl.loader import examine, upgrade
from noetl.model.errors import ExpressionError
from tests.dsl.in_use.spelling_rows import HEADER, LoweredDocument, lower_text, rows_of, tables
from tests.dsl.in_use.twin_documents import TwinWriter
from tests.new_seeds import new_seeds

UNDRAWN = {"http result `body`", "result with numeric keys"}
"""What results are like, which no document says."""


def lower_checked(text: str) -> LoweredDocument:
    """The canonical form; what the lowering knows of its expressions is what parsing them would tell."""
    expression._renamed.clear()
    lowered = lower_text(text)
    for source, renamed in expression._renamed.items():
        analysed = analyse_source(source)
        assert {name: getattr(renamed, name) for name in analysed} == analysed, source
    return lowered


def check_twins(random: Random) -> None:
    twin = TwinWriter(random).document()
    text = to_yaml(twin.in_use)
    lowered = lower_checked(text)
    assert lowered.document == twin.canonical
    assert set(lowered.codes) == twin.warns
    loaded = examine(to_yaml(twin.canonical), "canonical.yaml")
    assert [problem for problem in loaded.problems if problem.severity == "error"] == []
    assert examine(upgrade(text, "twin.yaml", dialect="in_use"), "again.yaml").document == loaded.document


@settings(max_examples=60)
@given(random=st.randoms(use_true_random=False))
def test_a_playbook_written_in_the_dialect_is_lowered_to_itself(random: Random) -> None:
    check_twins(random)


def test_so_is_one_that_no_run_has_tried_before() -> None:
    for seed in new_seeds(20):
        check_twins(Random(seed))  # noqa: S311 - no secret


def test_the_playbooks_have_something_of_every_row() -> None:
    drawn = set().union(*(TwinWriter(Random(seed)).document().rows for seed in range(150)))  # noqa: S311 - no secret
    assert drawn | UNDRAWN == {row.spelling for table in tables() for row in rows_of(table)}


@pytest.mark.parametrize("table", tables())
def test_what_is_known_of_lowered_expressions_is_what_parsing_tells(table: str) -> None:
    for row in rows_of(table):
        lower_checked(HEADER + row.source)


RULE = """\
workflow:
- step: s
  tool: [{{name: t, kind: http, url: x, spec: {{policy: {{rules: [{{when: "{}", then: {{do: fail}}}}]}}}}}}]
"""


@pytest.mark.parametrize(
    "guard",
    [
        "{{ output.data.x is defined and output.data.y.z == output.data.x.n }}",
        "{{ output.data.x is defined and output.data.data.x }}",  # two paths that become one
        "{{ output.data.data.x is defined and output.data.x.y }}",
        "{{ output.error and outcome.error.kind }}",
        "{{ output.data | default(1) == output.data['x'] | length }}",
        "{{ (output.status == 'error' and output.http.status >= 500) or output.data.items | length }}",
        "{{ output.status   ==  'success' or ctx.n }}",
        "{{ output . data . x and output.ref.store }}",
        "{% if output.data.x is defined %}{{ output.data.x }}{% endif %}",
        "{% set output = 1 %}{{ output.data }}",
        "{{ output.data.x[output.data.y].z and output.data.items() }}",
        "{{ output.data if output.data.x is defined else output.data.x.y }}",
        "{% if ctx.n %}{% set outcome = 1 %}{% endif %}{{ output.data.x }}",
    ],
)
def test_it_is_where_paths_hold_one_another(guard: str) -> None:
    lower_checked(HEADER + RULE.format(guard))


def test_a_name_that_stands_for_nothing_becomes_none() -> None:
    lower_checked(HEADER + 'workflow: [{step: s, tool: {kind: noop, input: {x: "{{ result }}"}}}]\n')


def test_expressions_whose_paths_are_renamed_are_not_parsed_again() -> None:
    lower_checked(HEADER + RULE.format("{{ output.data.n > 1 and output.status == 'error' }}"))
    assert "{{ outcome.result.data.n > 1 and outcome.status == 'error' }}" in expression._renamed


PARTS = st.sampled_from(["output.status", "output.error.kind", "ctx.n"])
COMPARED = st.sampled_from(["'error'", '"success"', "'a\\'b'", "['x', 'y']", "'it'", "ctx.m", "1"])


@given(
    braces=st.sampled_from(["{{%s}}", "{{ %s }}", "{{- %s -}}", "a {{ %s }}", "{{ (%s) }}", "{{ not %s }}"]),
    parts=st.lists(
        st.tuples(PARTS, st.sampled_from([" == ", "!=", " in ", " < ", " ~ "]), COMPARED),
        min_size=1,
        max_size=3,
    ),
    between=st.sampled_from([" and ", " or ", " if ", " == ", "|default(", "  and "]),
)
def test_a_comparison_is_found_in_the_text_as_on_its_tokens(
    braces: str, parts: list[tuple[str, str, str]], between: str
) -> None:
    text = braces % between.join("".join(part) for part in parts)
    try:
        template = TemplateTokens(text)
    except ExpressionError:
        return
    for use in template.uses:
        for _, end in template.path_ends(use):
            on_tokens = _on_tokens(template, template.index_of(use), template.index_before(end))
            assert find_comparison(template, use, end) == on_tokens
