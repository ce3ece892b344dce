"""The tables of docs/dialects.md as cases: a spelling in use, what it becomes, and what that gives."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import noetl
from noetl.dsl.dialects import lower_document
from noetl.dsl.document.composer import compose
from noetl.dsl.document.source import Located, Mapping, node_value
from tests.dialects.dialect_execution import MEMORY

HEADER = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: { name: page, path: docs/page }\n"
CANONICAL = HEADER.replace(" }", ", dialect: canonical }")
ROWS = Path(__file__).parent / "rows"
_UNSAID = object()


class SpellingRow(NamedTuple):
    """`gives`, `rows`, `stdout` and `ctx`: the result, those parts of it, and ctx at the end, where they are said."""

    spelling: str
    source: str
    becomes: str
    case: str = ""
    warns: Sequence[str] = ()
    """Codes of warnings that its document gets."""
    gives: Any = _UNSAID
    rows: Any = _UNSAID
    stdout: Any = _UNSAID
    ctx: Any = _UNSAID
    fails: str = ""
    """The kind of the error with which it ends."""
    allows: Sequence[str] = ()
    """Kinds that need not be installed."""
    elsewhere: str = ""
    """Why it is not run here: what it needs, and which tests run it."""

    def __str__(self) -> str:
        return f"{self.spelling}: {self.case}" if self.case else self.spelling

    def check(self, execution: noetl.Execution) -> None:
        """Raises AssertionError unless an execution of it ended as the row says."""
        assert (execution.status, (execution.error or {}).get("kind", "")) == (
            "failed" if self.fails else "completed",
            self.fails,
        ), execution.error
        if self.gives is not _UNSAID:
            assert execution.result == self.gives
        for key, value in (("rows", self.rows), ("stdout", self.stdout)):
            if value is not _UNSAID:
                assert execution.result[key] == value
        if self.ctx is not _UNSAID:
            assert execution.ctx == self.ctx


def values_of(text: str) -> Any:
    node = compose(text)
    assert node is not None
    return node_value(node)


def rows_of(table: str) -> list[SpellingRow]:
    """The rows of one table, in its order."""
    rows = values_of((ROWS / f"{table}.yaml").read_text("utf-8"))
    return [SpellingRow(**row) for row in rows]


def tables() -> list[str]:
    return sorted(path.stem for path in ROWS.glob("*.yaml"))


class LoweredDocument(NamedTuple):
    document: Any
    codes: tuple[str, ...]
    """Of what was reported on the way."""


def lower_text(text: str) -> LoweredDocument:
    """The canonical form of a document in use."""
    root = compose(text)
    assert isinstance(root, Mapping)
    codes: list[str] = []

    def report(code: str, at: Located, message: str, hint: str = "") -> None:
        assert message
        assert at.line >= 1
        assert isinstance(hint, str)
        codes.append(code)

    return LoweredDocument(node_value(lower_document(root, "in_use", report)), tuple(codes))


def run_text(text: str, workload: dict[str, Any], dialect: str) -> noetl.Execution:
    return noetl.run(text, workload, store=MEMORY, dialect=dialect)
