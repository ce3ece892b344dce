"""Every shortcut of expressions gives what the long way gives."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noetl.expr import evaluator
from noetl.expr.analysis import partial_evaluation
from noetl.expr.analysis.partial_evaluation import Facts, KnownValue, Uncertain
from noetl.expr.expression import Expression, parse
from noetl.expr.language.depth import check_depth
from noetl.expr.language.environment import ENVIRONMENTS
from noetl.expr.language.lexer import lex
from noetl.expr.language.plain_source import read_plain
from noetl.expr.runtime.evaluation import item
from noetl.expr.runtime.limits import MAX_DEPTH
from noetl.expr.runtime.missing_value import Missing
from noetl.expr.runtime.scope import EvaluationSite, Scope
from noetl.model.errors import ExpressionError
from noetl.model.reference import value_reference

BOUNDED = settings(max_examples=200, deadline=None)
"""A machine that is busy is not a failure."""

KEYS = ("a", "b", "data", "result", "extracted")
STORED = value_reference("E/abc", {"a": 1, "b": 2}, size=9, extracted={"a": 1}, absent=["data"])
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.sampled_from([None, True, 0, 1.5, "", "text", STORED]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=3),
    max_leaves=8,
)
NAMES = ("ctx", "steps", "outcome", "output", "a", "b", "job", "nothing")
PATHS = st.builds(
    lambda name, keys: (name, *keys), st.sampled_from(NAMES), st.lists(st.sampled_from(KEYS), max_size=3)
)
SPACES = st.fixed_dictionaries(
    {"ctx": st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=3)},
    optional={"outcome": VALUES, "execution_id": st.just("E"), "args": st.fixed_dictionaries({"a": VALUES})},
)


def outcome(expression: Expression, scope: Mapping[str, object] | Scope, site: EvaluationSite) -> object:
    """The value, or all that the error says."""
    try:
        value = expression.evaluate(scope, site)
    except ExpressionError as error:
        return type(error), error.message, error.offset, error.hint, error.kind
    return repr(value)


@BOUNDED
@given(PATHS, SPACES, VALUES, st.booleans(), st.sampled_from(EvaluationSite))
def test_a_path_that_is_followed_is_the_value_of_its_code(
    path: tuple[str, ...], spaces: dict[str, Any], result: Any, scoped: bool, site: EvaluationSite
) -> None:
    source = "{{ " + ".".join(path) + " }}"
    followed = parse(source)
    compiled = Expression(source, single=True, uses=followed.uses, assigned=followed.assigned, path=None)
    scope = Scope(spaces, results={"b": result}) if scoped else spaces
    assert followed.path == path
    assert outcome(followed, scope, site) == outcome(compiled, scope, site)


TEXTS = st.sampled_from(["step.done", "loop.done", "step.failed", "call.done", "call.error", "x"])
SUBJECTS = st.sampled_from([("event", "name"), ("outcome", "status")])
OPEN = st.sampled_from(
    ["ctx.a", "not ctx.a", "ctx.a == 'x'", "ctx.a is defined", "ctx.b | default(false)", "3 in ctx.a"]
)
CONSTANT = st.sampled_from(["true", "false", "1 == 1", "'a' == 'b'"])


def usual_condition(
    subject: tuple[str, str], operator: str, text: str, conditions: list[str], value: str
) -> tuple[Expression, Facts]:
    comparison = f"{'.'.join(subject)} {operator} '{text}'"
    return parse("{{ " + " and ".join([comparison, *conditions]) + " }}"), {subject: KnownValue(value)}


def verdict_of_syntax(condition: Expression, facts: Facts) -> bool | None:
    expression = condition.syntax().expression
    assert expression is not None
    return partial_evaluation._truth(partial_evaluation._evaluate(expression, facts))


@BOUNDED
@given(
    st.builds(
        usual_condition, SUBJECTS, st.sampled_from(["==", "!="]), TEXTS, st.lists(OPEN, max_size=3), TEXTS
    )
)
def test_the_verdict_on_a_usual_condition_is_that_of_its_syntax(case: tuple[Expression, Facts]) -> None:
    condition, facts = case
    by_pattern = partial_evaluation._verdicts_by_pattern(condition, {"case": facts})
    assert by_pattern == {"case": verdict_of_syntax(condition, facts)}


@BOUNDED
@given(
    st.builds(
        usual_condition,
        SUBJECTS,
        st.sampled_from(["==", "!="]),
        TEXTS,
        st.lists(OPEN | CONSTANT, max_size=3),
        TEXTS,
    )
)
def test_the_verdict_on_a_usual_condition_never_is_another(case: tuple[Expression, Facts]) -> None:
    condition, facts = case
    by_pattern = partial_evaluation._verdicts_by_pattern(condition, {"case": facts})
    if by_pattern is not None and by_pattern["case"] is not None:
        assert by_pattern["case"] is verdict_of_syntax(condition, facts)


PIECES = st.recursive(
    st.sampled_from(["a", "1", "a.b.c", "a | lower", "not a", "a is defined", "a[0]", "f()"]),
    lambda inner: st.one_of(
        st.builds("({})".format, inner),
        st.builds("[{}, {}]".format, inner, inner),
        st.builds("{{'k': {}}}".format, inner),
        st.builds("{} {} {}".format, inner, st.sampled_from(["+", "**", "and", "==", "~", "not in"]), inner),
        st.builds("{} if {} else {}".format, inner, inner, inner),
    ),
    max_leaves=60,
)


@BOUNDED
@given(PIECES)
def test_a_tag_with_few_tokens_is_never_too_deep(source: str) -> None:
    """So the depth of most tags need not be measured."""
    try:
        inside = lex("{{ " + source + " }}")[1:-1]
    except ExpressionError:
        return
    if len(inside) <= MAX_DEPTH:
        check_depth(inside)


@BOUNDED
@given(st.dictionaries(st.sampled_from(KEYS), VALUES), st.sampled_from(KEYS), st.sampled_from(EvaluationSite))
def test_a_plain_mapping_answers_as_every_mapping_does(
    mapping: dict[str, Any], key: str, site: EvaluationSite
) -> None:
    environment = ENVIRONMENTS[site]
    plain, other = item(environment, mapping, key), item(environment, MappingProxyType(mapping), key)
    if isinstance(plain, Missing):
        assert isinstance(other, Missing)
        assert plain.key == other.key
    else:
        assert plain is other


WORDS = st.sampled_from(
    [
        "ctx",
        "n",
        "_prev",
        "a1",
        "in",
        "is",
        "not",
        "and",
        "or",
        "if",
        "else",
        "elif",
        "self",
        "loop",
        "true",
        "True",
        "none",
        "None",
        "false",
        "False",
        "recursive",
        "0",
        "ä",
    ]
)
OPERATORS = st.sampled_from(["==", "!=", "<", "<=", ">", ">=", "=", "in", "is", "~", "+", "===", "=>"])
CONSTANTS = st.sampled_from(
    [
        *("'x'", '"x"', "'it\\'s'", "'a}}b'", "'{% x %}'", "''", "'ä'", "true", "none", "[]", "ctx.b"),
        *("0", "7", "007", "1.5", "1_000", "999999999", "12345678901", "-1", "1}", "1e3", "0x1"),
    ]
)
BLANKS = st.sampled_from(["", " ", "  ", "\n", "\t", "-", "+"])
TEXT_AROUND = st.sampled_from(["", "", "", " ", "x", "\n", "{# c #}"])


@st.composite
def nearly_plain_sources(draw: st.DrawFn) -> str:
    """Sources of about the form that the pattern of plain ones reads, and some that are just not."""
    path = ".".join(draw(st.lists(WORDS, min_size=1, max_size=3)))
    comparison = ""
    if draw(st.booleans()):
        comparison = draw(OPERATORS) + draw(BLANKS) + draw(CONSTANTS) + draw(BLANKS)
    inside = draw(BLANKS) + path + draw(BLANKS) + comparison
    return draw(TEXT_AROUND) + "{{" + inside + "}}" + draw(TEXT_AROUND)


def analysis_of(analyse: Callable[[str], object], source: str) -> object:
    try:
        return analyse(source)
    except ExpressionError as error:
        return error.message, error.offset, error.hint


@settings(max_examples=1_000, deadline=None)
@given(nearly_plain_sources())
def test_a_plain_source_is_read_as_the_parser_reads_it(source: str) -> None:
    by_parser = analysis_of(evaluator._analyse_syntax, source)
    assert analysis_of(evaluator.analyse_source, source) == by_parser


@pytest.mark.parametrize("keys", [14, 15, 16, 100, 200, 450])
def test_a_long_path_is_read_as_the_parser_reads_it(keys: int) -> None:
    source = "{{ " + ".".join(["a"] * (keys + 1)) + " }}"
    by_parser = analysis_of(evaluator._analyse_syntax, source)
    assert analysis_of(evaluator.analyse_source, source) == by_parser


def test_the_usual_guards_are_plain() -> None:
    for source in ("{{ ctx.n == 7 }}", "{{ctx.n}}", "{{ event.name == 'step.done' }}", '{{ a.b != "x" }}'):
        assert read_plain(source) is not None
    for source in (
        "{{ ctx.n == 7 and ctx.m }}",
        "{{ true }}",
        "{{ self.x }}",
        "{{ ctx.n == 007 }}",
        "a {{ b }}",
    ):
        assert read_plain(source) is None


ABSTRACT = st.sampled_from([*Uncertain, KnownValue("x"), KnownValue(0)])


@settings(max_examples=500, deadline=None)
@given(
    st.lists(st.sampled_from(["event", "name", "n"]), min_size=1, max_size=3),
    st.sampled_from(["==", "!=", "<", "<=", ">", ">="]),
    st.sampled_from(["'x'", "0", '"step.done"', "'call.done'"]),
    st.dictionaries(
        st.lists(st.sampled_from(["event", "name", "n"]), min_size=1, max_size=3).map(tuple), ABSTRACT
    ),
)
def test_the_verdict_on_a_plain_comparison_is_that_of_its_syntax(
    path: list[str], operator: str, constant: str, facts: Facts
) -> None:
    condition = parse(f"{{{{ {'.'.join(path)} {operator} {constant} }}}}")
    expected = verdict_of_syntax(condition, facts)
    assert partial_evaluation.verdicts(condition, {"case": facts}) == {"case": expected}
    plain = partial_evaluation._verdicts_on_plain(condition, {"case": facts})
    assert plain in (None, {"case": expected})
