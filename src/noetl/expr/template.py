"""Values of a playbook that may hold expressions anywhere inside them."""

from collections.abc import Iterator, Mapping
from typing import TypeAlias, Union, assert_never

from msgspec import Struct

from noetl.expr.analysis.uses import Use
from noetl.expr.expression import Expression, parse
from noetl.expr.language.guard import is_template
from noetl.expr.runtime.missing_value import Site
from noetl.expr.runtime.scope import Scope
from noetl.model import ExpressionError, Json

_MAX_DEPTH = 100


class Constant(Struct, frozen=True):
    """A value without expressions; rendering gives this very object."""

    value: Json


class ListData(Struct, frozen=True):
    """A list with an expression somewhere in it."""

    items: tuple["Data", ...]


class MapData(Struct, frozen=True):
    """A mapping with an expression somewhere in its values."""

    entries: Mapping[str, "Data"]


Data: TypeAlias = Union[Constant, Expression, ListData, MapData]  # noqa: UP007 -- named before it is defined


def data_of(value: Json) -> Data:
    """Parse every string of `value` that holds a template. Raises ExpressionError."""
    return _data_of(value, 0)


def _data_of(value: Json, depth: int) -> Data:
    if depth > _MAX_DEPTH:
        raise ExpressionError(f"the value is nested more than {_MAX_DEPTH} levels deep")
    match value:
        case str() if is_template(value):
            return parse(value)
        case list():
            items = tuple(_data_of(item, depth + 1) for item in value)
            if all(isinstance(item, Constant) for item in items):
                return Constant(value)
            return ListData(items)
        case dict():
            entries = {key: _data_of(item, depth + 1) for key, item in value.items()}
            if all(isinstance(item, Constant) for item in entries.values()):
                return Constant(value)
            return MapData(entries)
        case _:
            return Constant(value)


def render(data: Data, scope: Mapping[str, object] | Scope, site: Site = Site.VALUE) -> Json:
    """The value with every expression evaluated. Raises ExpressionError."""
    match data:
        case Constant():
            return data.value
        case Expression():
            return data.evaluate(scope, site)
        case ListData():
            return [render(item, scope, site) for item in data.items]
        case MapData():
            return {key: render(item, scope, site) for key, item in data.entries.items()}
        case _:
            assert_never(data)


def expressions_in(data: Data) -> Iterator[Expression]:
    """Every expression inside, in document order."""
    match data:
        case Constant():
            return
        case Expression():
            yield data
        case ListData():
            for item in data.items:
                yield from expressions_in(item)
        case MapData():
            for item in data.entries.values():
                yield from expressions_in(item)
        case _:
            assert_never(data)


def uses_of(data: Data) -> Iterator[Use]:
    """Every use of every expression inside."""
    for expression in expressions_in(data):
        yield from expression.uses
