"""What is not there: the two rules of guards and values."""

from typing import Any

import pytest

from noetl.expr.expression import parse
from noetl.expr.runtime.scope import EvaluationSite, Scope
from noetl.expr.runtime.truth import truthy
from noetl.model.errors import ExpressionError

SCOPE = Scope({"outcome": {"status": "error"}, "ctx": {"user": {"name": "ann"}, "n": 1}, "args": {}})


def guard(source: str) -> Any:
    return parse(source).evaluate(SCOPE, EvaluationSite.GUARD)


@pytest.mark.parametrize(
    "source",
    [
        "{{ outcome.http.status in [429, 500] }}",
        "{{ outcome.http.status == 429 }}",
        "{{ outcome.http.status >= 500 }}",
        "{{ outcome.http.status < 500 }}",
        "{{ 500 > outcome.http.status }}",
        "{{ nothing in 'abc' }}",
        "{{ nothing in {'a': 1} }}",
        "{{ 'a' in nothing }}",
        "{{ nothing == nothing }}",
        "{{ nothing == none }}",
        "{{ nothing is eq 1 }}",
        "{{ nothing is even }}",
        "{{ nothing is none }}",
        "{{ nothing | lower == 'a' }}",
        "{{ nothing.lower() == 'a' }}",
        "{{ nothing | int > 1 }}",
        "{{ nothing | length > 0 }}",
        "{{ nothing and true }}",
        "{{ nothing }}",
        "{{ nothing.a[0].b }}",
        "{{ [1] | selectattr('a', 'eq', 2) | list }}",
        "{{ 1 < ctx.n < nothing }}",
    ],
)
def test_in_a_guard_every_question_about_an_undefined_is_answered_no(source: str) -> None:
    assert not truthy(guard(source))


@pytest.mark.parametrize(
    "source",
    [
        "{{ outcome.http.status != 429 }}",
        "{{ outcome.http.status not in [429] }}",
        "{{ 'a' not in nothing }}",
        "{{ nothing not in 'abc' }}",
        "{{ nothing | length == 0 }}",
        "{{ nothing | list == [] }}",
        "{{ nothing is not defined }}",
        "{{ not nothing }}",
        "{{ nothing | default(true) }}",
        "{{ nothing | join == '' }}",
        "{{ nothing | sum == 0 }}",
    ],
)
def test_in_a_guard_its_absence_can_be_asked_for(source: str) -> None:
    assert guard(source) is True


@pytest.mark.parametrize("source", ["{{ nothing + 1 }}", "{{ -nothing }}", "{{ 2 * nothing == 4 }}"])
def test_in_a_guard_arithmetic_with_an_undefined_raises(source: str) -> None:
    with pytest.raises(ExpressionError, match="`nothing` is undefined"):
        guard(source)


def test_a_guard_that_is_undefined_is_none() -> None:
    assert guard("{{ outcome.http }}") is None
    assert guard("{{ [nothing] }}") == [None]


@pytest.mark.parametrize(
    ("source", "part"),
    [
        ("{{ nothing }}", "nothing"),
        ("{{ ctx.usr.name }}", "ctx.usr"),
        ("{{ ctx.user.nam }}", "ctx.user.nam"),
        ("{{ ctx.user['nam'].x }}", "ctx.user.nam"),
        ("Hello {{ ctx.user.nam }}", "ctx.user.nam"),
        ("{{ ctx.n == nothing }}", "nothing"),
        ("{{ nothing in 'abc' }}", "nothing"),
        ("{{ 'a' not in nothing }}", "nothing"),
        ("{{ nothing < 1 }}", "nothing"),
        ("{{ nothing | length }}", "nothing"),
        ("{{ nothing | upper }}", "nothing"),
        ("{{ nothing.upper() }}", "nothing"),
        ("{{ 'a'.join(nothing) }}", "nothing"),
        ("{{ [1, nothing] }}", "nothing"),
        ("{{ {'a': {'b': ctx.x}} }}", "ctx.x"),
        ("{{ 'a' ~ nothing }}", "nothing"),
        ("{{ nothing + 1 }}", "nothing"),
        ("{% for a in nothing %}{% endfor %}", "nothing"),
        ("{{ nothing | default(other) }}", "other"),
        ("{{ nothing is even }}", "nothing"),
        ("{{ range(nothing) }}", "nothing"),
        ("{{ ctx.user[nothing] }}", "nothing"),
        ("{{ ctx.n[:nothing] }}", "nothing"),
    ],
)
def test_elsewhere_using_an_undefined_is_an_error_that_names_it(source: str, part: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse(source).evaluate(SCOPE)
    assert caught.value.message.startswith(f"`{part}` is undefined in `")
    assert source[caught.value.offset or 0 :].startswith(part.partition(".")[0])


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("{{ nothing | default('x') }}", "x"),
        ("{{ ctx.a.b.c | d(1) }}", 1),
        ("{{ nothing is defined }}", False),
        ("{{ ctx.user.x is undefined }}", True),
        ("{{ 1 if nothing else 2 }}", 2),
        ("{{ nothing or 'x' }}", "x"),
        ("{{ not nothing }}", True),
        ("{% if nothing %}a{% else %}b{% endif %}", "b"),
        ("{{ ctx.n | default(2) }}", 1),
        ("{{ '' | default('x', true) }}", "x"),
        ("{{ nothing is string }}", False),
    ],
)
def test_elsewhere_truth_defined_and_default_are_fine(source: str, expected: object) -> None:
    assert parse(source).evaluate(SCOPE) == expected


def test_the_hint_offers_a_key_that_is_there() -> None:
    with pytest.raises(ExpressionError) as caught:
        parse("{{ ctx.user.nme }}").evaluate(SCOPE)
    assert caught.value.hint == "did you mean `name`?"
