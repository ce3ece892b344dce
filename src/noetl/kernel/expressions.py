"""Every expression in a part of a playbook."""

from collections.abc import Iterator, Mapping

from msgspec import Struct

from noetl.expr import Expression


def expressions_in(value: object) -> Iterator[Expression]:
    """The expressions in a step, a policy, a mapping; the plain document is left out."""
    match value:
        case Expression():
            yield value
        case Struct():
            for name in value.__struct_fields__:
                if name != "document":
                    yield from expressions_in(getattr(value, name))
        case Mapping():
            for item in value.values():
                yield from expressions_in(item)
        case tuple() | list():
            for item in value:
                yield from expressions_in(item)
