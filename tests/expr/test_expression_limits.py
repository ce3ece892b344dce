"""What is within the limits works."""

import sys
from typing import Any

import pytest

from noetl.expr.expression import parse
from noetl.expr.runtime.limits import MAX_BLOCKS, MAX_BRACKETS, MAX_DEPTH, MAX_RANGE
from noetl.expr.runtime.scope import EvaluationSite, Scope
from noetl.model.errors import ExpressionError, NoetlError


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = {"b": value}
    return value


@pytest.mark.parametrize(
    ("unit", "most", "source"),
    [
        (".b", MAX_DEPTH, "{{ a%s }}"),
        ("+1", MAX_DEPTH, "{{ 1%s }}"),
        (" and 1", MAX_DEPTH, "{{ 1%s }}"),
        (" ~ 1", 4_000, "{{ 1%s }}"),
        ("|string", MAX_DEPTH, "{{ 1%s }}"),
        (".lower()", MAX_DEPTH // 2 - 1, "{{ 'x'%s }}"),
        (" if 1 else 2", MAX_DEPTH // 2, "{{ 1%s }}"),
        ("{% if 1 %}1{% endif %}", 1_000, "x%s"),
        ("{{ 1 }}", 3_000, "x%s"),
    ],
)
def test_chains_work_up_to_the_limit_and_are_refused_beyond(unit: str, most: int, source: str) -> None:
    scope = {"a": deep(MAX_DEPTH)}
    assert parse(source % (unit * most)).evaluate(scope) is not None
    with pytest.raises(ExpressionError):
        parse(source % (unit * (most + 10_000)))


def test_brackets_and_blocks_work_up_to_the_limit() -> None:
    assert parse("{{ " + "[" * MAX_BRACKETS + "]" * MAX_BRACKETS + " }}").evaluate({})
    assert parse("{{ " + "(" * MAX_BRACKETS + "1" + ")" * MAX_BRACKETS + " }}").evaluate({}) == 1
    nested = "{% for a in [1] %}" * MAX_BLOCKS + "{{ a }}" + "{% endfor %}" * MAX_BLOCKS
    assert parse(nested).evaluate({}) == "1"


def test_an_expression_works_far_down_the_stack() -> None:
    def descend(levels: int) -> Any:
        return (
            descend(levels - 1)
            if levels
            else parse("{{ " + "[" * MAX_BRACKETS + "9" + "]" * MAX_BRACKETS + " }}").evaluate({})
        )

    assert descend(sys.getrecursionlimit() // 2)


@pytest.mark.no_cover
def test_useful_amounts_of_work_are_within_the_budget() -> None:
    rows = [{"id": n, "ok": n % 2 == 0, "name": f"row {n}"} for n in range(50_000)]

    def value(source: str) -> Any:
        return parse(source).evaluate({"rows": rows})

    assert len(value("{{ rows | selectattr('ok') | map(attribute='id') | list }}")) == 25_000
    assert value("{{ rows | sum(attribute='id') }}") == sum(range(50_000))
    assert len(value("{{ rows | to_json }}")) > 1_000_000
    assert len(value("{% for r in rows %}{{ r.id }},{{ r.name }};{% endfor %}")) > 500_000
    assert value(f"{{{{ range({MAX_RANGE}) | list | length }}}}") == MAX_RANGE


def test_a_value_of_any_size_passes_through() -> None:
    rows = list(range(2_000_000))
    assert parse("{{ _prev }}").evaluate({"_prev": rows}) is rows
    assert parse("{{ _prev | length }}").evaluate({"_prev": rows}) == 2_000_000


def test_what_a_namespace_raises_on_purpose_goes_through() -> None:
    class Refusing(dict[str, object]):
        def __contains__(self, _: object) -> bool:
            raise NoetlError("not at hand")

    with pytest.raises(NoetlError, match=r"^not at hand$"):
        parse("{{ x + 1 }}").evaluate(Scope({"ctx": Refusing()}))


def test_a_guard_may_ask_for_fifty_things() -> None:
    source = "{{ " + " or ".join(f"ctx.n == {number}" for number in range(50)) + " }}"
    assert parse(source).evaluate({"ctx": {"n": 49}}, EvaluationSite.GUARD) is True
