"""Nodes of older documents: reading what may be wrong anywhere, and making new ones.

Each new node has the position of what caused it, so that problems point into the older document.
"""

from collections.abc import Iterable

from noetl.dsl.document.shape_check import ProblemReporter, describe_node, did_you_mean
from noetl.dsl.document.source import Located, Mapping, MappingEntry, Node, Scalar, Sequence


class NodeReader:
    """Reads parts of a document; what has the wrong type is reported and comes back as absent."""

    __slots__ = ("report",)

    def __init__(self, report: ProblemReporter) -> None:
        self.report = report

    def mapping(self, node: Node | None, subject: str) -> Mapping | None:
        if isinstance(node, Mapping):
            return node
        self._report_type(node, subject, "a mapping")
        return None

    def sequence(self, node: Node | None, subject: str) -> list[Node] | None:
        if isinstance(node, Sequence):
            return node.items
        self._report_type(node, subject, "a list")
        return None

    def text(self, node: Node | None, subject: str) -> str | None:
        if isinstance(node, Scalar) and isinstance(node.value, str) and node.value:
            return node.value
        self._report_type(node, subject, "text")
        return None

    def whole_number(self, node: Node | None, subject: str) -> int | None:
        """A whole number, zero or more."""
        if isinstance(node, Scalar) and type(node.value) is int:
            if node.value >= 0:
                return node.value
            self.report("bad-value", node, f"{subject} cannot be negative")
            return None
        self._report_type(node, subject, "a whole number")
        return None

    def required(self, owner: Mapping, key: str, subject: str) -> Node | None:
        """The value of a key that must be there."""
        node = owner.get(key)
        if node is None:
            self.report("missing-key", owner, f"{subject} needs `{key}`")
        return node

    def check_keys(
        self, owner: Mapping, known: list[str], subject: str, hints: dict[str, str] | None = None
    ) -> None:
        """Report every key that is not known."""
        for entry in owner:
            if entry.key not in known:
                hint = (hints or {}).get(entry.key) or did_you_mean(entry.key, known)
                self.report("unknown-key", entry, f"{subject} has no key `{entry.key}`", hint)

    def _report_type(self, node: Node | None, subject: str, expected: str) -> None:
        if node is not None:
            self.report("wrong-type", node, f"{subject} must be {expected}, not {describe_node(node)}")


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
