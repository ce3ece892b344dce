"""A playbook that was read and checked, as bytes: reading it back takes no YAML, no kinds and no Jinja2."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import msgspec
from msgspec import Struct

from noetl.dsl.document import playbook as document_parts
from noetl.dsl.document.playbook import Playbook, Position
from noetl.dsl.document.problem import Problem
from noetl.expr.expression import Expression
from noetl.expr.template import Constant, ListTemplate, MappingTemplate
from noetl.expr.use import Use

PLAYBOOK_FORMAT = 3
"""To be raised when these classes change, or what their fields mean: older bytes are then not read."""

PARTS: dict[str, type[Struct]] = {
    part.__name__: part
    for part in (*vars(document_parts).values(), ListTemplate, MappingTemplate, Problem)
    if isinstance(part, type) and issubclass(part, Struct) and part is not Struct
}


def encode_playbook(playbook: Playbook) -> bytes:
    # `steps` is `workflow` by name.
    fields = {name: getattr(playbook, name) for name in playbook.__struct_fields__ if name != "steps"}
    return msgspec.json.encode({**_plain(fields), "document": playbook.document})


def decode_playbook(data: bytes) -> Playbook:
    """The playbook that `encode_playbook` got. Raises ValueError."""
    try:
        plain = msgspec.json.decode(data)
        document = plain.pop("document")
        fields = _value(plain)
        steps = {step.name: step for step in fields["workflow"]}
        return Playbook(**fields, steps=steps, document=document)
    except (ValueError, AttributeError, KeyError, TypeError) as fault:
        raise ValueError(f"not a playbook: {fault}") from None


def _plain(value: Any) -> Any:
    """Mappings and scalars as they are; everything else is a list that begins with its name."""
    match value:
        case Position():
            return ["@", value.line, value.column]
        case Constant():
            return ["=", value.value]
        case Expression():
            uses = [[use.path, use.offset, use.optional, use.length_only] for use in value.uses]
            return ["{{", value.source, value.single, uses, sorted(value.assigned), value.path]
        case Struct():
            return [type(value).__name__, _plain(_changed_fields(value))]
        case Mapping():
            return {key: _plain(item) for key, item in value.items()}
        case tuple():
            return ["()", *map(_plain, value)]
        case frozenset():
            return ["{}", *sorted(value)]
        case list():  # is a value of the document: nothing of ours is in it
            return ["=[]", value]
        case _:
            return value


@cache  # msgspec evaluates the annotations of the class in each call: that took most of the time of encoding
def _defaults_of(part: type[Struct]) -> dict[str, Any]:
    return {field.name: field.default for field in msgspec.structs.fields(part)}


def _changed_fields(value: Struct) -> dict[str, Any]:
    defaults = _defaults_of(type(value))
    fields = {name: getattr(value, name) for name in value.__struct_fields__}
    return {name: item for name, item in fields.items() if item is not defaults[name]}


def _value(plain: Any) -> Any:
    if type(plain) is dict:
        return {key: _value(item) for key, item in plain.items()}
    if type(plain) is not list:
        return plain
    tag, *parts = plain
    make = _MAKERS.get(tag)
    return make(*parts) if make is not None else PARTS[tag](**_value(parts[0]))


def _expression(source: str, *known: Any) -> Expression:
    single, uses, assigned, path = known
    return Expression(
        source,
        single=single,
        uses=tuple(Use(tuple(use_path), *rest) for use_path, *rest in uses),
        assigned=frozenset(assigned),
        path=tuple(path) if path is not None else None,
    )


_MAKERS: dict[str, Callable[..., Any]] = {
    "@": Position,
    "=": Constant,
    "=[]": lambda items: items,
    "{{": _expression,
    "()": lambda *items: tuple(map(_value, items)),
    "{}": lambda *items: frozenset(items),
}
