"""Values of a playbook with expressions inside."""

import pytest

from noetl.expr import Constant, ListData, MapData, Site, data_of, expressions_in, parse, render, uses_of
from noetl.model import ExpressionError, Json

VALUE: Json = {"url": "{{ base }}/x", "n": 1, "list": ["a", "{{ n }}"], "fixed": {"a": [1, "b"]}}


def test_expressions_inside_are_evaluated_where_they_stand() -> None:
    assert render(data_of(VALUE), {"base": "http://h", "n": [2]}) == {
        "url": "http://h/x",
        "n": 1,
        "list": ["a", [2]],
        "fixed": {"a": [1, "b"]},
    }


def test_parts_without_expressions_are_one_constant_and_the_same_object() -> None:
    data = data_of(VALUE)
    assert isinstance(data, MapData)
    assert data.entries["fixed"] == Constant({"a": [1, "b"]})
    assert data.entries["list"] == ListData((Constant("a"), parse("{{ n }}")))
    fixed: Json = {"a": [1, {"b": None}]}
    assert render(data_of(fixed), {}) is fixed


def test_uses_and_expressions_come_in_document_order() -> None:
    data = data_of(VALUE)
    assert [expression.source for expression in expressions_in(data)] == ["{{ base }}/x", "{{ n }}"]
    assert [use.path for use in uses_of(data)] == [("base",), ("n",)]
    assert list(uses_of(data_of([1]))) == []


def test_the_site_reaches_every_expression() -> None:
    assert render(data_of(["{{ nothing }}"]), {}, Site.GUARD) == [None]
    with pytest.raises(ExpressionError):
        render(data_of(["{{ nothing }}"]), {})


def test_a_value_nested_without_end_is_refused() -> None:
    value: Json = "x"
    for _ in range(200):
        value = [value]
    with pytest.raises(ExpressionError, match="nested"):
        data_of(value)
