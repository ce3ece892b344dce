"""Types and faults in the words of a message."""

import re
from collections.abc import Iterable

from msgspec import inspect

from noetl.dsl.document.source import Node, Scalar
from noetl.expr.language.guard import is_template

_NUMBER = re.compile(r"\s*[-+]?[0-9]+(\.[0-9]+)?\s*")
_MOST_KEYS = 24
"""A hint lists no more keys than this."""


def describe_type(type_: inspect.Type) -> str:
    """What a type accepts, in words."""
    match type_:
        case inspect.Metadata():
            return "an expression" if (type_.extra or {}).get("expression") else describe_type(type_.type)
        case inspect.UnionType():
            options = dict.fromkeys(describe_type(option) for option in type_.types)
            if "a number" in options:
                options.pop("a whole number", None)
            return " or ".join(option for option in options if option != "empty")
        case inspect.StrType():
            return "text"
        case inspect.IntType():
            return "a whole number"
        case inspect.FloatType():
            return "a number"
        case inspect.BoolType():
            return "`true` or `false`"
        case inspect.NoneType():
            return "empty"
        case inspect.ListType():
            return "a list"
        case inspect.DictType() | inspect.StructType():
            return "a mapping"
        case inspect.LiteralType():
            return "one of " + ", ".join(f"`{value}`" for value in type_.values)
        case _:
            return "a value"


def inline_description(description: str) -> str:
    """A description as part of a sentence."""
    text = description.rstrip(".")
    return text if text[1:2].isupper() else text[:1].lower() + text[1:]


def known_keys_hint(fields: Iterable[str]) -> str:
    keys = list(fields)
    return "known keys: " + ", ".join(f"`{key}`" for key in keys) if len(keys) <= _MOST_KEYS else ""


def quote_hint(node: Node, type_: inspect.Type) -> str:
    """What to do about a value that quotes, or braces, make the wrong type."""
    if not isinstance(node, Scalar) or node.value is None:
        return ""
    if isinstance(type_, inspect.StrType):
        return "quote it to make it text"
    if isinstance(node.value, str) and is_template(node.value):
        return "write the value itself: no expression is evaluated here"
    if isinstance(node.value, str) and isinstance(type_, inspect.IntType | inspect.FloatType):
        return "write the number without quotes" if _NUMBER.fullmatch(node.value) else ""
    return ""
