"""Values of a playbook that may hold expressions anywhere inside them."""

from collections.abc import Iterator, Mapping
from typing import TypeAlias, Union, assert_never

from msgspec import Struct

from noetl.expr.analysis.uses import Use
from noetl.expr.expression import Expression, parse
from noetl.expr.language.guard import is_template
from noetl.expr.runtime.limits import MAX_RESULT_DEPTH
from noetl.expr.runtime.missing_value import EvaluationSite
from noetl.expr.runtime.scope import Scope
from noetl.model.errors import ExpressionError
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


def parse_template(value: Json) -> Template:
    """Parse every string of `value` that holds a template. Raises ExpressionError."""
    return _data_of(value, 0)


def _data_of(value: Json, depth: int) -> Template:
    if depth > MAX_RESULT_DEPTH:
        raise ExpressionError(f"the value is nested more than {MAX_RESULT_DEPTH} levels deep")
    match value:
        case str() if is_template(value):
            return parse(value)
        case list():
            items = tuple(_data_of(item, depth + 1) for item in value)
            if all(isinstance(item, Constant) for item in items):
                return Constant(value)
            return ListTemplate(items)
        case dict():
            entries = {key: _data_of(item, depth + 1) for key, item in value.items()}
            if all(isinstance(item, Constant) for item in entries.values()):
                return Constant(value)
            return MappingTemplate(entries)
        case _:
            return Constant(value)


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
