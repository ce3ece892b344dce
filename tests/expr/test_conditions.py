"""What is read from the syntax of a condition agrees with every evaluation of it."""

from collections.abc import Iterator, Mapping
from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from noetl.expr.analysis.exclusion import mutually_exclusive
from noetl.expr.analysis.partial_evaluation import AbstractValue, KnownValue, Uncertain, verdicts
from noetl.expr.expression import Expression, parse
from noetl.expr.runtime.scope import EvaluationSite
from noetl.expr.runtime.truth import truthy
from noetl.expr.use import Path
from noetl.model.errors import ExpressionError

ABSENT = object()
VALUES: tuple[object, ...] = (ABSENT, None, 0, 3, "", "a", [], [1])
NAMES = ("a", "b")

ATOMS = st.sampled_from(
    [
        *("ctx.a", "ctx.b", "ctx.a | length", "ctx.b | int", "ctx.a + 1", "ctx.a | default(3)"),
        *("ctx.b[0]", "ctx.a.startswith('a')", "ctx.a | first", "ctx.b ~ 'x'", "-ctx.b", "ctx.a | lower"),
        *("0", "3", "'a'", "none", "[3, 'a']"),
    ]
)
COMPARISONS = st.sampled_from(["==", "!=", "<", "<=", ">", ">=", "in", "not in"])
TESTS = st.sampled_from(
    ["defined", "undefined", "none", "string", "number", "ne 3", "eq 3", "iterable", "odd"]
)
CONDITIONS = st.recursive(
    st.one_of(
        ATOMS,
        st.builds("({} {} {})".format, ATOMS, COMPARISONS, ATOMS),
        st.builds("({} {} {} < 3)".format, ATOMS, COMPARISONS, ATOMS),
        st.builds("({} is {})".format, ATOMS, TESTS),
    ),
    lambda inner: st.one_of(
        st.builds("(not {})".format, inner),
        st.builds("({} {} {})".format, inner, st.sampled_from(["and", "or"]), inner),
        st.builds("({} if {} else {})".format, inner, inner, inner),
        st.builds("({} is {})".format, inner, st.sampled_from(["defined", "undefined", "boolean", "true"])),
    ),
    max_leaves=5,
)


def condition(text: str) -> Expression:
    return parse("{{ " + text + " }}")


def scopes() -> Iterator[dict[str, object]]:
    for values in product(VALUES, repeat=len(NAMES)):
        yield {name: value for name, value in zip(NAMES, values, strict=True) if value is not ABSENT}


def holds(expression: Expression, ctx: Mapping[str, object]) -> bool | None:
    """None where the condition raises, and for text such as `none`, which is false in no other place."""
    try:
        value = expression.evaluate({"ctx": ctx}, EvaluationSite.GUARD)
    except ExpressionError:
        return None
    return truthy(value) if truthy(value) is bool(value) else None


@given(CONDITIONS)
@settings(max_examples=300, deadline=None)
def test_what_a_verdict_proves_is_there(text: str) -> None:
    expression = condition(text)
    for ctx in scopes():
        verdict = holds(expression, ctx)
        if verdict is not None:
            assert {path[1] for path in expression.proves(holds=verdict)} <= set(ctx)


@given(CONDITIONS, CONDITIONS)
@settings(max_examples=300, deadline=None)
def test_conditions_that_exclude_each_other_never_hold_together(first: str, second: str) -> None:
    left, right = condition(first), condition(second)
    if mutually_exclusive(left, right):
        assert not any(holds(left, ctx) and holds(right, ctx) for ctx in scopes())


@given(CONDITIONS, st.sampled_from(VALUES))
@settings(max_examples=300, deadline=None)
def test_a_verdict_from_part_of_the_values_is_that_of_all_of_them(text: str, value: object) -> None:
    expression = condition(text)
    known: AbstractValue = Uncertain.MISSING if value is ABSENT else KnownValue(value)
    facts: Mapping[Path, AbstractValue] = {("ctx", "a"): known}
    verdict = verdicts(expression, {"case": facts})["case"]
    for ctx in scopes():
        actual = holds(expression, ctx)
        if verdict is not None and actual is not None and ctx.get("a", ABSENT) == value:
            assert actual is verdict
