"""Reading a document that may be wrong anywhere."""

from noetl.dsl.document.shape_check import ProblemReporter, describe_node, did_you_mean
from noetl.dsl.document.source import Mapping, Node, Scalar, Sequence


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
