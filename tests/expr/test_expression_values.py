"""What an expression yields."""

from typing import Any

import pytest

from noetl.expr.expression import parse
from noetl.expr.runtime.scope import Scope
from noetl.model.errors import ExpressionError


def value(source: str, **names: Any) -> Any:
    return parse(source).evaluate(names)


@pytest.mark.spec("000 §3.1")
@pytest.mark.parametrize(
    "native", [0, 1.5, "007", "1e5", "true", "[1]", " x ", "", None, True, [1, {"a": []}], {"b": 2}]
)
def test_a_single_expression_yields_the_native_value_and_never_parses_it_again(native: object) -> None:
    assert value("{{ x }}", x=native) is native
    assert value("  {{ x }}\n", x=native) is native
    assert value("{{ (x) if true else 1 }}", x=native) == native


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("{{ a }}{{ a }}", "11"),
        ("n = {{ a }}", "n = 1"),
        ("{{ a }}.", "1."),
        ("{% if a %}yes{% endif %}", "yes"),
        ("{% raw %}{{ a }}{% endraw %}", "{{ a }}"),
        ("x {{- a -}} y", "x1y"),
        ("line {{ a }}\n", "line 1\n"),
        ("no expression", "no expression"),
        ("{# note #}{{ a }}", 1),
        ("{{ a }} {# note #}", 1),
    ],
)
def test_anything_else_renders_to_text(source: str, expected: object) -> None:
    assert value(source, a=1) == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("{{ range(3) }}", [0, 1, 2]),
        ("{{ (1, 2) }}", [1, 2]),
        ("{{ dict(a=1) }}", {"a": 1}),
        ("{{ dict({'a': 1, 'b': 2}, b=3, c=4) }}", {"a": 1, "b": 3, "c": 4}),
        ("{% set a = {'b': 1} %}{% set c = dict(a, b=2) %}{{ [a.b, c.b] }}", "[1, 2]"),
        ("{{ {'a': 1}.items() }}", [["a", 1]]),
        ("{{ {'a': 1}.keys() }}", ["a"]),
        ("{{ [1, 2] | map('string') }}", ["1", "2"]),
        ("{{ [3, 1] | sort }}", [1, 3]),
        ("{{ {1: 'a', false: 'b'} }}", {"1": "a", "false": "b"}),
        ("{{ 'a' if false }}", None),
        ("[{{ 'a' if false }}]", "[]"),
    ],
)
def test_results_are_what_json_can_say(source: str, expected: object) -> None:
    assert value(source) == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("{{ 1 + 2 * 3 ** 2 }}", 19),
        ("{{ 7 // 2 }}", 3),
        ("{{ -x }}", -4),
        ("{{ 7 % 4 }}", 3),
        ("{{ 'a' ~ 1 ~ none }}", "a1None"),
        ("{{ 'ab' * 2 }}", "abab"),
        ("{{ [1] + [2] }}", [1, 2]),
        ("{{ 1 < x <= 4 }}", True),
        ("{{ x in [1, 4] and 'b' not in 'ac' }}", True),
        ("{{ not x or x == 4.0 }}", True),
        ("{{ 'abc'[1:] ~ 'abc'[-1] }}", "bcc"),
        ("{{ [1, 2, 3][::-1] }}", [3, 2, 1]),
        ("{{ 'x' if x is even else 'y' }}", "x"),
        ("{{ ' a b '.strip().split(' ') }}", ["a", "b"]),
        ("{{ 'a' in {'a': 1} }}", True),
        ("{{ {'a': {'b': [5]}}.a.b.0 }}", 5),
        ("{{ 'a\\n\\'b\\u00e9' }}", "a\n'bé"),
        ("{{ 1_000 + 0x10 + 1.5e1 }}", 1031.0),
        ("{% for k, v in {'a': 1}.items() %}{{ k }}={{ v }}{% endfor %}", "a=1"),
        ("{% for i in [1, 2] if i > 1 %}{{ loop.index }}{{ i }}{% else %}none{% endfor %}", "12"),
        ("{% for i in [] %}{{ i }}{% else %}none{% endfor %}", "none"),
        ("{% for i in 'ab' %}{{ loop.cycle(1, 2) }}{{ loop.last }}{% endfor %}", "1False2True"),
        ("{% set y = x + 1 %}{{ y }}", "5"),
        ("{% if x > 4 %}a{% elif x == 4 %}b{% else %}c{% endif %}", "b"),
    ],
)
def test_the_language_is_that_of_jinja(source: str, expected: object) -> None:
    assert value(source, x=4) == expected


def test_a_key_wins_over_a_method_of_the_same_name() -> None:
    names = {"iter": {"items": [1], "get": 2, "keys": 3}}
    assert value("{{ iter.items }}", **names) == [1]
    assert value("{{ iter.get }} {{ iter.keys }}", **names) == "2 3"
    assert value("{{ iter.get('keys') }}", **names) == 3
    assert value("{{ iter.keys() }}", **names) == ["items", "get", "keys"]


@pytest.mark.parametrize(
    ("source", "message", "hint"),
    [
        ("{{ 1 + 'a' }}", "`+` does not work between a number and text", "join text with `~`"),
        ("{{ 1 < 'a' }}", "`<` does not work between a number and text", "convert"),
        ("{{ 'a' % 2 }}", "`%` does not work between text and a number", "`~`"),
        ("{{ 1 in 'a1' }}", "`in` looks for text in text, not for a number", "`| string`"),
        ("{{ 1 in 2 }}", "`in` needs a list", ""),
        ("{{ 'a'.keys() }}", "text has no method `keys`", ""),
        ("{{ 1 / 0 }}", "division by zero in `{{ 1 / 0 }}`", ""),
        ("{{ now() }}", "`now()` is not available here", ""),
        ("{{ {} | join }}{{ 5 | join }}", "a number cannot be iterated", ""),
        ("{{ 'x' | replace }}", "filter `replace` failed", ""),
    ],
)
def test_errors_say_what_went_wrong_in_words_of_the_playbook(source: str, message: str, hint: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        value(source)
    assert message in caught.value.message
    assert hint in caught.value.hint
    assert str(caught.value) == caught.value.message


def test_now_is_what_the_scope_says() -> None:
    assert (
        parse("{{ now() }}").evaluate(Scope({}, now=lambda: "2026-11-05T10:00:00Z")) == "2026-11-05T10:00:00Z"
    )


def test_equal_sources_share_one_expression_which_does_not_change() -> None:
    expression = parse("{{ a.b }}")
    assert parse("{{ a." + "b }}") is expression
    assert {expression: 1}[parse("{{ a.b }}")] == 1
    assert expression != parse("{{ a.c }}")
    with pytest.raises(AttributeError):
        expression.source = "x"


def test_an_expression_can_be_evaluated_again_with_other_values() -> None:
    expression = parse("{{ [x, x + 1] }}")
    assert [expression.evaluate({"x": n}) for n in (1, 2)] == [[1, 2], [2, 3]]
