"""Older dialects: functions from a document to the canonical document that means the same."""

from pkgutil import resolve_name
from typing import Literal, TypeAlias

from noetl.dsl.dialects.nodes import text_value
from noetl.dsl.document.shape_check import ProblemReporter
from noetl.dsl.document.source import Mapping

Dialect: TypeAlias = Literal["canonical", "draft", "v1"]


def dialect_of(root: Mapping, dialect: str | None) -> Dialect:
    """The dialect of a document: by its `apiVersion`, and for a draft by the caller's or its own word."""
    version = text_value(root.get("apiVersion"))
    if version == "noetl.io/v1":
        return "v1"
    metadata = root.get("metadata")
    declared = dialect or (text_value(metadata.get("dialect")) if isinstance(metadata, Mapping) else None)
    return "draft" if version == "noetl.io/v2" and declared == "draft" else "canonical"


def upgrade_document(root: Mapping, dialect: Literal["v1", "draft"], report: ProblemReporter) -> Mapping:
    """The canonical document; every node has the position of what it came from. Never raises.

    What is wrong in the dialect goes to `report`; the rest is passed on for the canonical reader.
    """
    upgraded: Mapping = resolve_name(_UPGRADES[dialect])(root, report)
    return upgraded


# Imported on first use: most documents are canonical, and the command line shall start fast.
_UPGRADES: dict[Literal["v1", "draft"], str] = {
    "v1": "noetl.dsl.dialects.v1.v1_upgrade:upgrade_v1",
    "draft": "noetl.dsl.dialects.draft.draft_upgrade:upgrade_draft",
}
