"""Reading sources: places of faults, tokens, guards, truth."""

import pytest

from noetl.expr.expression import parse
from noetl.expr.language.guard import guard_fault, is_template
from noetl.expr.language.lexer import tokenize
from noetl.expr.runtime.truth import truthy
from noetl.model.errors import ExpressionError


@pytest.mark.parametrize(
    ("source", "at", "message", "hint"),
    [
        ("{{ a b }}", "b }}", "unexpected `b`", "an operator or `}}` is missing"),
        ("text {{ a | uper }}", "uper", "there is no filter `uper`", "did you mean `upper`?"),
        ("{{ a is defned }}", "defned", "there is no test `defned`", "did you mean `defined`?"),
        ("{{ a | map('uper') }}", "'uper'", "there is no filter `uper`", "did you mean `upper`?"),
        ("{{ a | selectattr('x', 'eqal', 1) }}", "'eqal'", "there is no test `eqal`", "did you mean"),
        ("{{ nw() }}", "nw", "there is no function `nw`", "did you mean `now`?"),
        ("{{ a.uper() }}", ".uper", "there is no method `uper`", "did you mean `upper`?"),
        ("x {{ a", "{{", "`{{` is never closed", "add `}}`"),
        ("x {% if a", "{%", "`{%` is never closed", "add `%}`"),
        ("{{ [1, (2 }}", "}}", "`}` does not close the `(`", "`)` is missing"),
        ("{{ [1, 2", "[1", "`[` is never closed", "add `]`"),
        ("{{ [1) }}", ")", "`)` does not close the `[`", "`]` is missing"),
        ("{{ a) }}", ")", "`)` closes nothing", ""),
        ("{{ a and 'b }}", "'b", "`'` is never closed", "add `'`"),
        ("{{ a && b }}", "&&", "unexpected `&`", "write `and`"),
        ("{{ a == }}", "}}", "the expression ends too early", ""),
        ("{{ }}", "}}", "an expression is missing", ""),
        ("line one\n{{ a }}\n{{ * }}", "* }}", "unexpected `*`", ""),
        ("x {{- a -}} {{ b c }}", "c }}", "unexpected `c`", ""),
        ("{% include 'a' %}", "include", "`{% include %}` is not available here", "no templates to load"),
        ("{% foo %}", "foo", "`{% foo %}` is not available here", "`call`, `filter`, `for`, `if`"),
        ("{% if a %}x", "if a", "is never closed", "{% endif %}"),
        ("{% endif %}", "endif", "`{% endif %}` closes nothing", ""),
        ("{{ '\\x' }}", "\\x", "`\\x` is not a character", ""),
        ("{{ foo.bar.baz(*a) }}", ".baz", "there is no method `baz`", ""),
    ],
)
def test_a_fault_is_reported_at_its_place(source: str, at: str, message: str, hint: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse(source)
    assert message in caught.value.message
    assert hint in caught.value.hint
    assert caught.value.offset is not None
    assert source[caught.value.offset :].startswith(at)


@pytest.mark.parametrize(
    "source",
    ["", "text", "a {{- b.c | d('x') -}} {# c #}\n{% raw %}{{ x }}{% endraw %} {%+ if a %}1{% endif %}\r\n"],
)
def test_tokens_cover_the_whole_source(source: str) -> None:
    tokens = tokenize(source)
    assert "".join(token.text for token in tokens) == source
    assert all(source.startswith(token.text, token.offset) for token in tokens)


def test_tokens_say_what_they_are() -> None:
    assert [(token.type, token.text) for token in tokenize("a {{ b == 'c' }}")] == [
        ("data", "a "),
        ("variable_begin", "{{"),
        ("whitespace", " "),
        ("name", "b"),
        ("whitespace", " "),
        ("eq", "=="),
        ("whitespace", " "),
        ("string", "'c'"),
        ("whitespace", " "),
        ("variable_end", "}}"),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [("{{ a }}", True), ("x{% if a %}", True), ("{# c #}", True), ("{ {", False), ("a", False), ("", False)],
)
def test_a_template_holds_a_tag(text: str, expected: object) -> None:
    assert is_template(text) is expected


@pytest.mark.parametrize(
    "value", [False, None, 0, 0.0, "", " ", "false", " False\n", "0", "no", "NO", "none", "None", [], {}]
)
def test_what_counts_as_false(value: object) -> None:
    assert truthy(value) is False


@pytest.mark.parametrize("value", [True, 1, -1, "true", "yes", "1", "null", "off", "x", [0], {"a": None}])
def test_what_counts_as_true(value: object) -> None:
    assert truthy(value) is True


@pytest.mark.parametrize(
    ("source", "message", "hint"),
    [
        ("ctx.n == 1", "in braces", "write `{{ ctx.n == 1 }}`"),
        ("{{ a }} and {{ b }}", "several", "write `{{ a and b }}`"),
        ("{{ a or c }} and not {{ b }}", "several", "write `{{ (a or c) and not b }}`"),
        ("{{ a }} == 1", "text around", "write `{{ a == 1 }}`"),
        ("true", "boolean", "write true without quotes"),
        ("{% if a %}true{% endif %}", "not a template", "`{{ … }}`"),
        ("", "empty", ""),
        ("is it {{ a }}?", "text around", ""),
    ],
)
def test_a_guard_is_one_expression(source: str, message: str, hint: str) -> None:
    fault = guard_fault(source)
    assert fault is not None
    assert message in fault[0]
    assert hint in fault[1]


@pytest.mark.parametrize("source", ["{{ a }}", " {{ a and b }}\n", "{{ a }}{# why #}", "{{ a"])
def test_one_expression_is_a_guard(source: str) -> None:
    assert guard_fault(source) is None
