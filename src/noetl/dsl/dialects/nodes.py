"""Making nodes: each has the place of what caused it."""

from collections.abc import Iterable

from noetl.dsl.document.source import Entry, Located, Mapping, Node, Scalar, Sequence


def text(value: str, at: Located) -> Scalar:
    return Scalar(value, at.line, at.column)


def sequence(items: Iterable[Node], at: Located) -> Sequence:
    return Sequence(list(items), at.line, at.column)


def mapping(entries: Iterable[Entry], at: Located) -> Mapping:
    """A mapping of entries in order; of two with one key the last counts."""
    return Mapping({entry.key: entry for entry in entries}, at.line, at.column)


def entry(key: str, value: Node, at: Located | None = None) -> Entry:
    """An entry placed where `at` stands, or where its value does."""
    place = at or value
    return Entry(key, value, place.line, place.column)


def without(node: Mapping, *keys: str) -> Mapping:
    """The mapping without some keys."""
    return mapping((item for item in node if item.key not in keys), node)


def present(node: Mapping) -> Mapping:
    """The mapping without the keys that nothing stands behind: they count as absent."""
    return mapping((item for item in node if not is_nothing(item.value)), node)


def is_nothing(node: Node | None) -> bool:
    """Whether there is no value, or null."""
    return node is None or (isinstance(node, Scalar) and node.value is None)


def merged(node: Node | None, added: Entry) -> Node:
    """A mapping with one more entry; where there is none yet, a new one."""
    entries = list(node) if isinstance(node, Mapping) else []
    return mapping([*entries, added], node or added)
