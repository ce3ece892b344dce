"""Values of a playbook with expressions inside."""

import pytest

from noetl.expr.expression import parse
from noetl.expr.runtime.scope import EvaluationSite
from noetl.expr.template import (
    Constant,
    ListTemplate,
    MappingTemplate,
    render,
    template_expressions,
    template_uses,
)
from noetl.model.errors import ExpressionError
from noetl.model.json import Json
from tests.templates import parse_template

VALUE: Json = {"url": "{{ base }}/x", "n": 1, "list": ["a", "{{ n }}"], "fixed": {"a": [1, "b"]}}


def test_expressions_inside_are_evaluated_where_they_stand() -> None:
    assert render(parse_template(VALUE), {"base": "http://h", "n": [2]}) == {
        "url": "http://h/x",
        "n": 1,
        "list": ["a", [2]],
        "fixed": {"a": [1, "b"]},
    }


def test_parts_without_expressions_are_one_constant_and_the_same_object() -> None:
    data = parse_template(VALUE)
    assert isinstance(data, MappingTemplate)
    assert data.entries["fixed"] == Constant({"a": [1, "b"]})
    assert data.entries["list"] == ListTemplate((Constant("a"), parse("{{ n }}")))
    fixed: Json = {"a": [1, {"b": None}]}
    assert render(parse_template(fixed), {}) is fixed


def test_uses_and_expressions_come_in_document_order() -> None:
    data = parse_template(VALUE)
    assert [expression.source for expression in template_expressions(data)] == ["{{ base }}/x", "{{ n }}"]
    assert [use.path for use in template_uses(data)] == [("base",), ("n",)]
    assert list(template_uses(parse_template([1]))) == []


def test_the_site_reaches_every_expression() -> None:
    assert render(parse_template(["{{ nothing }}"]), {}, EvaluationSite.GUARD) == [None]
    with pytest.raises(ExpressionError):
        render(parse_template(["{{ nothing }}"]), {})
