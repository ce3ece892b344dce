"""The tool kinds that this process declared itself, with `noetl.tool`."""

from typing import NamedTuple

from noetl.dsl.document.kinds import Kind, KindTaken
from noetl.tools import BUILTIN


class _Declared(NamedTuple):
    kind: Kind
    origin: str


_declared: dict[str, _Declared] = {}


def declare_kind(kind: Kind, origin: str) -> None:
    """Adds a kind to those of this process. `origin` is the name of the code that declares it.

    Declaring it again from the same origin replaces it, as running a notebook's cell again does.
    Raises KindTaken if the name is a built-in kind's or comes from another origin.
    """
    known = _declared.get(kind.name)
    if any(builtin.name == kind.name for builtin in BUILTIN):
        raise KindTaken(f"the tool kind `{kind.name}` is built in: choose another name")
    if known is not None and known.origin != origin:
        raise KindTaken(f"the tool kind `{kind.name}` of `{origin}` is declared by `{known.origin}` already")
    _declared[kind.name] = _Declared(kind, origin)


def declared_kinds() -> tuple[Kind, ...]:
    """The kinds that were declared so far."""
    return tuple(declared.kind for declared in _declared.values())
