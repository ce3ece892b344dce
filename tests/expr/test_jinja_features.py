"""Every feature of Jinja2, by its own lists: it works here, or is refused with the reason."""

from collections.abc import Iterable, Mapping

import pytest
from jinja2.defaults import DEFAULT_NAMESPACE
from jinja2.filters import FILTERS as DEFAULT_FILTERS
from jinja2.tests import TESTS as DEFAULT_TESTS

from noetl.expr.expression import parse
from noetl.expr.language.absent_features import (
    ABSENT_FILTERS,
    ABSENT_FUNCTIONS,
    ABSENT_METHODS,
    ABSENT_STATEMENTS,
    ABSENT_TESTS,
)
from noetl.expr.language.parser import STATEMENTS
from noetl.expr.library.filters import FILTERS
from noetl.expr.library.functions import FUNCTIONS
from noetl.expr.library.methods import METHODS
from noetl.expr.library.tests import TESTS
from noetl.expr.runtime.scope import EvaluationSite, Scope
from noetl.model.errors import ExpressionError
from tests.reference.jinja_page import JINJA_METHODS, JINJA_STATEMENTS, JINJA_TAGS, LOOP_FIELDS, SYNTAX

FEATURES: dict[str, tuple[Iterable[str], Iterable[str], Mapping[str, str]]] = {
    "statements": ([*JINJA_STATEMENTS, *JINJA_TAGS], [*STATEMENTS, "raw"], ABSENT_STATEMENTS),
    "filters": (DEFAULT_FILTERS, FILTERS, ABSENT_FILTERS),
    "tests": (DEFAULT_TESTS, TESTS, ABSENT_TESTS),
    "functions": ([*DEFAULT_NAMESPACE, "super"], FUNCTIONS, ABSENT_FUNCTIONS),
    "methods": (
        [name for names in JINJA_METHODS.values() for name in names],
        [name for methods in METHODS.values() for name in methods],
        ABSENT_METHODS,
    ),
}


@pytest.mark.spec("000 §3.1")
@pytest.mark.parametrize("kind", FEATURES)
def test_every_feature_is_there_or_has_a_reason(kind: str) -> None:
    jinja, available, absent = (set(names) for names in FEATURES[kind])
    assert jinja - available == absent
    assert not available & absent


@pytest.mark.spec("000 §3.1")
@pytest.mark.parametrize(
    ("source", "reason"),
    [
        *((f"{{% {name} %}}", reason) for name, reason in ABSENT_STATEMENTS.items()),
        *((f"{{{{ a | {name} }}}}", reason) for name, reason in ABSENT_FILTERS.items()),
        *((f"{{{{ a | map('{name}') }}}}", reason) for name, reason in ABSENT_FILTERS.items()),
        *((f"{{{{ a is {name} }}}}", reason) for name, reason in ABSENT_TESTS.items()),
        *((f"{{{{ a | select('{name}') }}}}", reason) for name, reason in ABSENT_TESTS.items()),
        *((f"{{{{ {name}() }}}}", reason) for name, reason in ABSENT_FUNCTIONS.items()),
        *((f"{{{{ a.{name}() }}}}", reason) for name, reason in ABSENT_METHODS.items()),
    ],
)
def test_what_is_absent_is_refused_when_read_with_the_reason(source: str, reason: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse(source)
    assert reason
    assert caught.value.hint == reason


@pytest.mark.spec("000 §3.1")
@pytest.mark.parametrize("syntax", SYNTAX)
def test_the_examples_of_the_page_work(syntax: str) -> None:
    source = SYNTAX[syntax].strip("`")
    parse(source).evaluate({"a": 2, "b": 0, "c": 1})


def test_the_fields_of_loops_can_be_read() -> None:
    fields = "".join(
        f"{{% if loop.{field} is defined or true %}}{field} {{% endif %}}" for field in LOOP_FIELDS
    )
    assert parse("{% for i in [1] %}" + fields + "{% endfor %}").evaluate({}) == " ".join([*LOOP_FIELDS, ""])
    for field in set(LOOP_FIELDS) - {"nextitem", "previtem"}:
        parse("{% for i in [1] %}{{ loop." + field + " }}{% endfor %}").evaluate({})


def text(source: str, **names: object) -> object:
    return parse(source).evaluate(names)


SUM = "{% set n = namespace(sum=0) %}{% for i in x %}{% set n.sum = n.sum + i %}{% endfor %}{{ n.sum }}"
TREE = (
    "{% macro tree(node) %}{{ node.name }}{% for child in node.children %}({{ tree(child) }}){% endfor %}"
    "{% endmacro %}{{ tree(x) }}"
)


@pytest.mark.spec("000 §3.1")
@pytest.mark.parametrize(
    ("source", "x", "expected"),
    [
        (SUM, [1, 2, 3], "6"),
        ("{% set n = namespace({'a': x}, b=2) %}{{ n.a }}{{ n['b'] }}{{ n.c | default('-') }}", 1, "12-"),
        ("{% set n = namespace(a=x) %}{% set n.b, n.a = n.a, 5 %}{{ n.a }}{{ n.b }}", 1, "51"),
        ("{% with a = x, b = 2 %}{{ a }}{{ b }}{% endwith %}{{ a | default('-') }}", 1, "12-"),
        ("{% with x = x + 1 %}{{ x }}{% endwith %}{{ x }}", 1, "21"),
        ("{% filter upper | replace('B', '-') %}ab{{ x }}{% endfilter %}", "c", "A-C"),
        ("{% filter length %}{{ x }}{% endfilter %}", "four", "4"),
        ("{% for i in x %}{% filter upper %}{{ i }}{% endfilter %}{% endfor %}", "ab", "AB"),
        ("{% set t %}<{{ x }}>{% endset %}{{ t }}{{ t | length }}", 1, "<1>3"),
        ("{% set t | upper %}a{{ x }}{% endset %}{{ t }}", "b", "AB"),
        ("{% macro m(a, b=2) %}[{{ a }}{{ b }}]{% endmacro %}{{ m(x) }}{{ m(b=x, a=3) }}", 1, "[12][31]"),
        ("{% macro m(a, b=a + 1) %}{{ b }}{% endmacro %}{{ m(x) }}", 1, "2"),
        ("{% macro m(a) %}{{ a | default('-') }}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m() }}{{ m(1, x, k=3) }}", 2,
         "-[]{}1[2]{'k': 3}"),
        (TREE, {"name": "a", "children": [{"name": "b", "children": [{"name": "c"}]}, {"name": "d"}]}, None),
        ("{% macro m() %}{% for i in x %}{{ caller(i) }}{% endfor %}{% endmacro %}{% call(i) m() %}<{{ i }}>{% endcall %}",
         [1, 2], "<1><2>"),
        ("{% macro m(a) %}{{ a }}{% endmacro %}{% for i in range(x) %}{{ m(i % 10) }}{% endfor %}", 40, "0123456789" * 4),
        ("{% set n = namespace(x) %}{% set n.a = 2 %}{{ n.a }}{{ x.a }}", {"a": 1}, "21"),
        ("{% print x, 2 %}", 1, "12"),
        ("{{ '%05.1f|%-3s|%x|%%' | format(x, 'a', 255) }}", 1, "001.0|a  |ff|%"),
        ("{{ '%(a)s %(b)r' | format(a=x, b='q') }}", [1], "[1] 'q'"),
        ("{{ '{} {:>4} {:.2f} {!r} {{}}'.format(x, 'a', 1, 'b') }}", None, "None    a 1.00 'b' {}"),
        ("{{ '{1}{0}{name}'.format(x, 2, name='c') }}", [1], "2[1]c"),
        ("{{ {'a': x, 'b': none, 'c-d': '<\"'} | xmlattr }}", 1, ' a="1" c-d="&lt;&quot;"'),
        ("<p{{ {'a': x} | xmlattr(false) }}>", 1, '<pa="1">'),
        ("{{ x | pprint }}", {"a": ["b" * 40, "c" * 40]}, "{'a': ['" + "b" * 40 + "',\n       '" + "c" * 40 + "']}"),
        ("{{ x | filesizeformat }} {{ 2048 | filesizeformat(true) }} {{ 1 | filesizeformat }}", 1234567, "1.2 MB 2.0 KiB 1 Byte"),
        ("{{ x | safe }}{{ '<' | forceescape }}", "<", "<&lt;"),
        ("{{ 'upper' is filter }}{{ x is filter }}{{ 'odd' is test }}", "odd", "TrueFalseTrue"),
        ("{{ x.isascii() }}{{ x.isidentifier() }}{{ x.isprintable() }}", "a b", "TrueFalseTrue"),
    ],
)  # fmt: skip
def test_features_do_what_they_do_in_jinja(source: str, x: object, expected: str | None) -> None:
    if expected is None:
        expected = "a(b(c))(d)"
        source = source.replace("node.children", "node.children | default([])")
    assert text(source, x=x) == expected


@pytest.mark.parametrize(("source", "value"), [("{{ x.copy() }}", {"a": [1]}), ("{{ x.copy() }}", [[1], 2])])
def test_a_copy_is_another_value_with_the_same_parts(source: str, value: object) -> None:
    copied = text(source, x=value)
    assert copied == value
    assert copied is not value


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("{{ '%d' | format('a') }}", "filter `format` failed: %d format"),
        ("{{ '%s %s' | format(1) }}", "fewer values than placeholders"),
        ("{{ '%s' | format(1, 2) }}", "more values than placeholders"),
        ("{{ '%(a)s' | format(1) }}", "no value called `a`"),
        ("{{ '%s' | format(1, a=2) }}", "in order or by name, not both"),
        ("{{ '50%' | format }}", "does not understand a `%`"),
        ("{{ '%1001d' | format(1) }}", "at most 1,000 characters"),
        ("{{ '{a.b}'.format(a=1) }}", "does not understand `{a.b}`"),
        ("{{ '{a[b]}'.format(a=1) }}", "does not understand `{a[b]}`"),
        ("{{ '{'.format(1) }}", "does not understand `{`"),
        ("{{ '{:1001}'.format(1) }}", "at most 1,000 characters"),
        ("{{ '{:d}'.format('a') }}", "`format()` failed: Unknown format code"),
        ("{{ '{}{0}'.format(1) }}", "either `{}` or `{0}`"),
        ("{{ '{b}'.format(a=1) }}", "no value called `b`"),
        ("{{ [1] | xmlattr }}", "`xmlattr` needs a mapping, not a list"),
        ("{{ {'a b': 1} | xmlattr }}", "`a b` is not the name of an attribute"),
        ("{{ 'a' | filesizeformat }}", "`filesizeformat` needs a number, not text"),
        ("{{ -'a' }}", "`-` does not work on text"),
        ("{{ namespace(1) }}", "`namespace()` takes a mapping and named values, not a number"),
        ("{% set n = namespace() %}{{ n | list }}", "a namespace cannot be iterated"),
        ("{% macro m() %}{% endmacro %}{{ m | length }}", "a macro cannot be iterated"),
        ("{% macro m() %}{{ caller() }}{% endmacro %}{{ m() }}", "`caller` is undefined"),
        ("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "more than 32 deep"),
    ],
)
def test_features_say_what_they_cannot_do(source: str, message: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse(source).evaluate({})
    assert message in caught.value.message


@pytest.mark.parametrize(
    ("source", "uses"),
    [
        ("{% with a = ctx.x %}{{ a.b }}{{ c }}{% endwith %}{{ a }}", ["ctx.x", "c", "a"]),
        ("{% macro m(a, b=d) %}{{ a }}{{ c }}{{ m(e) }}{% endmacro %}{{ a }}", ["d", "c", "e", "a"]),
        ("{% macro m() %}{{ caller(1) }}{% endmacro %}{% call(z) m() %}{{ z }}{{ y }}{% endcall %}{{ z }}", ["y", "z"]),
        ("{% set n = namespace(a=b) %}{% set n.c = d %}{{ n.e }}", ["b", "d"]),
        ("{% filter replace(a, b) %}{{ c }}{% set d = 1 %}{% endfilter %}{{ d }}", ["a", "b", "c", "d"]),
        ("{% set t | replace(a, '') %}{{ b }}{% endset %}{{ t }}", ["a", "b"]),
    ],
)  # fmt: skip
def test_names_of_blocks_are_no_uses_and_end_with_them(source: str, uses: list[str]) -> None:
    assert [".".join(use.path) for use in parse(source).uses] == uses


def test_random_draws_from_the_decision_and_fails_on_nothing() -> None:
    bounds: list[int] = []

    def draw(bound: int) -> int:
        bounds.append(bound)
        return bound - 1

    scope = Scope({"workload": {"x": ["a", "b", "c"], "m": {"k": 1}}}, draw=draw)
    assert parse("{{ [x | random, m | random, 'xy' | random, range(4) | random] }}").evaluate(scope) == [
        "c",
        "k",
        "y",
        3,
    ]
    assert bounds == [3, 1, 2, 4]
    with pytest.raises(ExpressionError, match="`random` is undefined"):
        parse("{{ [] | random }}").evaluate(scope)
    assert parse("{{ zz | random == 1 }}").evaluate(scope, EvaluationSite.GUARD) is False
