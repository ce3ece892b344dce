"""Other dialects: functions from a document to the canonical document that means the same."""

from pkgutil import resolve_name
from typing import Literal, NamedTuple, TypeAlias

from noetl.dsl.dialects.in_use.harmless import declared_dialect, rewrite_harmless
from noetl.dsl.dialects.in_use.recognition import Recognition, recognise
from noetl.dsl.dialects.nodes import text_value
from noetl.dsl.document.shape_check import ProblemReporter
from noetl.dsl.document.source import Mapping

Dialect: TypeAlias = Literal["canonical", "draft", "in_use", "v1"]
NamedDialect: TypeAlias = Literal["canonical", "draft", "in_use"]
"""Those that a caller or a document may name; the first version says so itself."""


class DialectChoice(NamedTuple):
    """The dialect of a document, and why: what was recognised, unless somebody said it."""

    dialect: Dialect
    recognition: Recognition | None = None


def dialect_of(root: Mapping, dialect: str | None) -> DialectChoice:
    """By `apiVersion`, else by the caller's word, else by the document's own, else by its marks."""
    version = text_value(root.get("apiVersion"))
    if version == "noetl.io/v1":
        return DialectChoice("v1")
    declared = dialect or declared_dialect(root)
    if version != "noetl.io/v2" or declared == "canonical":
        return DialectChoice("canonical")
    if declared == "draft":
        return DialectChoice("draft")
    if declared == "in_use":
        return DialectChoice("in_use")
    recognition = recognise(root)
    return DialectChoice("in_use" if recognition.is_in_use else "canonical", recognition)


def lower_document(root: Mapping, dialect: Dialect, report: ProblemReporter) -> Mapping:
    """The canonical document of a document of any dialect, as `upgrade_document`."""
    if dialect != "canonical":
        return upgrade_document(root, dialect, report)

    def nested(document: Mapping) -> Mapping:
        declared = declared_dialect(document)
        if declared in (None, "canonical"):
            return rewrite_harmless(document, report, nested)
        return upgrade_document(document, "in_use", report) if declared == "in_use" else document

    return rewrite_harmless(root, report, nested)


def upgrade_document(
    root: Mapping, dialect: Literal["v1", "draft", "in_use"], report: ProblemReporter
) -> Mapping:
    """The canonical document; every node has the position of what it came from. Never raises.

    What is wrong in the dialect goes to `report`; the rest is passed on for the canonical reader.
    """
    upgraded: Mapping = resolve_name(_UPGRADES[dialect])(root, report)
    return upgraded


# Imported on first use: most documents are canonical, and the command line shall start fast.
_UPGRADES: dict[Literal["v1", "draft", "in_use"], str] = {
    "v1": "noetl.dsl.dialects.v1.v1_upgrade:upgrade_v1",
    "draft": "noetl.dsl.dialects.draft.draft_upgrade:upgrade_draft",
    "in_use": "noetl.dsl.dialects.in_use.in_use_upgrade:upgrade_in_use",
}
