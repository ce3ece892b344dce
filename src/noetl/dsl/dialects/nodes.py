"""Making nodes: each has the position of what caused it, so that problems point into the older document."""

from collections.abc import Iterable

from noetl.dsl.document.source import Located, Mapping, MappingEntry, Node, Scalar, Sequence


def new_text(value: str, at: Located) -> Scalar:
    return Scalar(value, at.line, at.column, origin=at if isinstance(at, Scalar) else None)


def new_sequence(items: Iterable[Node], at: Located) -> Sequence:
    return Sequence(list(items), at.line, at.column)


def new_mapping(entries: Iterable[MappingEntry], at: Located) -> Mapping:
    """A mapping of entries in order; of two with one key the last counts."""
    return Mapping({entry.key: entry for entry in entries}, at.line, at.column)


def new_entry(key: str, value: Node, at: Located | None = None) -> MappingEntry:
    """An entry at the position of `at`, or of its value."""
    position = at or value
    return MappingEntry(key, value, position.line, position.column)


def without_keys(node: Mapping, *keys: str) -> Mapping:
    """The mapping without some keys."""
    return new_mapping((entry for entry in node if entry.key not in keys), node)


def without_nulls(node: Mapping) -> Mapping:
    """The mapping without the keys that nothing stands behind: they count as absent."""
    return new_mapping((entry for entry in node if not is_null(entry.value)), node)


def is_null(node: Node | None) -> bool:
    """Whether there is no value, or null."""
    return node is None or (isinstance(node, Scalar) and node.value is None)


def text_value(node: Node | None) -> str | None:
    """The text of a scalar; None for anything else."""
    return node.value if isinstance(node, Scalar) and isinstance(node.value, str) else None


def with_entry(node: Node | None, added: MappingEntry) -> Node:
    """A mapping with one more entry; where there is none yet, a new one."""
    entries = list(node) if isinstance(node, Mapping) else []
    return new_mapping([*entries, added], node or added)
