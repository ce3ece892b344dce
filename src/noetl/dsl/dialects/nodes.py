"""Making nodes: each has the place of what caused it."""

from collections.abc import Iterable

from noetl.dsl.document.source import Located, Mapping, MappingEntry, Node, Scalar, Sequence


def new_text(value: str, at: Located) -> Scalar:
    return Scalar(value, at.line, at.column)


def new_sequence(items: Iterable[Node], at: Located) -> Sequence:
    return Sequence(list(items), at.line, at.column)


def new_mapping(entries: Iterable[MappingEntry], at: Located) -> Mapping:
    """A mapping of entries in order; of two with one key the last counts."""
    return Mapping({entry.key: entry for entry in entries}, at.line, at.column)


def new_entry(key: str, value: Node, at: Located | None = None) -> MappingEntry:
    """An entry placed where `at` stands, or where its value does."""
    place = at or value
    return MappingEntry(key, value, place.line, place.column)


def without_keys(node: Mapping, *keys: str) -> Mapping:
    """The mapping without some keys."""
    return new_mapping((item for item in node if item.key not in keys), node)


def without_nulls(node: Mapping) -> Mapping:
    """The mapping without the keys that nothing stands behind: they count as absent."""
    return new_mapping((item for item in node if not is_null(item.value)), node)


def is_null(node: Node | None) -> bool:
    """Whether there is no value, or null."""
    return node is None or (isinstance(node, Scalar) and node.value is None)


def with_entry(node: Node | None, added: MappingEntry) -> Node:
    """A mapping with one more entry; where there is none yet, a new one."""
    entries = list(node) if isinstance(node, Mapping) else []
    return new_mapping([*entries, added], node or added)
