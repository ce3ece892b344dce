"""How a dialect says what is wrong, and reads what may be."""

from difflib import get_close_matches
from typing import Protocol

from noetl.dsl.source import Located, Mapping, Node, Scalar, Sequence


class Report(Protocol):
    """Takes one finding at its place in the source."""

    def __call__(self, code: str, at: Located, message: str, hint: str = "") -> None: ...


def kind_of(node: Node) -> str:
    """What a value is, in the words of a message."""
    match node:
        case Mapping():
            return "a mapping"
        case Sequence():
            return "a list"
        case Scalar(value=None):
            return "empty"
        case Scalar(value=bool()):
            return "true or false"
        case Scalar(value=str()):
            return "text"
        case _:
            return "a number"


def did_you_mean(name: str, known: list[str]) -> str:
    """A hint naming the known name that was probably meant; empty where there is none."""
    matches = get_close_matches(name, known, 1)
    return f"did you mean `{matches[0]}`?" if matches else ""


class Reader:
    """Reads parts of a document; what has the wrong type is reported and comes back as absent."""

    __slots__ = ("report",)

    def __init__(self, report: Report) -> None:
        self.report = report

    def mapping(self, node: Node | None, what: str) -> Mapping | None:
        return node if isinstance(node, Mapping) else self._wrong(node, what, "a mapping")

    def sequence(self, node: Node | None, what: str) -> list[Node] | None:
        return node.items if isinstance(node, Sequence) else self._wrong(node, what, "a list")

    def text(self, node: Node | None, what: str) -> str | None:
        if isinstance(node, Scalar) and isinstance(node.value, str) and node.value:
            return node.value
        return self._wrong(node, what, "text")

    def whole(self, node: Node | None, what: str) -> int | None:
        """A whole number, zero or more."""
        if isinstance(node, Scalar) and type(node.value) is int:
            if node.value >= 0:
                return node.value
            self.report("bad-value", node, f"{what} cannot be negative")
            return None
        return self._wrong(node, what, "a whole number")

    def required(self, owner: Mapping, key: str, what: str) -> Node | None:
        """The value of a key that must be there."""
        node = owner.get(key)
        if node is None:
            self.report("missing-key", owner, f"{what} needs `{key}`")
        return node

    def only(self, owner: Mapping, known: list[str], what: str, hints: dict[str, str] | None = None) -> None:
        """Report every key that is not known."""
        for entry in owner:
            if entry.key not in known:
                hint = (hints or {}).get(entry.key) or did_you_mean(entry.key, known)
                self.report("unknown-key", entry, f"{what} has no key `{entry.key}`", hint)

    def _wrong(self, node: Node | None, what: str, expected: str) -> None:
        if node is not None:
            self.report("wrong-type", node, f"{what} must be {expected}, not {kind_of(node)}")
