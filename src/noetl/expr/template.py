"""Values of a playbook that may hold expressions anywhere inside them."""

from collections.abc import Iterator, Mapping
from typing import TypeAlias, Union, assert_never

from msgspec import Struct

from noetl.expr.expression import Expression
from noetl.expr.runtime.scope import EvaluationSite, Scope
from noetl.expr.use import Use
from noetl.model.json import Json


class Constant(Struct, frozen=True):
    """A value without expressions; rendering gives this very object."""

    value: Json


class ListTemplate(Struct, frozen=True):
    """A list with an expression somewhere in it."""

    items: tuple["Template", ...]


class MappingTemplate(Struct, frozen=True):
    """A mapping with an expression somewhere in its values."""

    entries: Mapping[str, "Template"]


Template: TypeAlias = Union[Constant, Expression, ListTemplate, MappingTemplate]  # noqa: UP007 - named before it is defined


def render(
    template: Template, scope: Mapping[str, object] | Scope, site: EvaluationSite = EvaluationSite.VALUE
) -> Json:
    """The value with every expression evaluated. Raises ExpressionError."""
    match template:
        case Constant():
            return template.value
        case Expression():
            return template.evaluate(scope, site)
        case ListTemplate():
            return [render(item, scope, site) for item in template.items]
        case MappingTemplate():
            return {key: render(item, scope, site) for key, item in template.entries.items()}
        case _:
            assert_never(template)


def template_expressions(data: Template) -> Iterator[Expression]:
    """Every expression inside, in document order."""
    match data:
        case Constant():
            return
        case Expression():
            yield data
        case ListTemplate():
            for item in data.items:
                yield from template_expressions(item)
        case MappingTemplate():
            for item in data.entries.values():
                yield from template_expressions(item)
        case _:
            assert_never(data)


def template_uses(data: Template) -> Iterator[Use]:
    """Every use of every expression inside."""
    for expression in template_expressions(data):
        yield from expression.uses
