"""What earlier tasks and steps gave, for tools that are told of it by name."""

from contextlib import suppress

from noetl.dsl.document.kinds import Kind
from noetl.dsl.document.source import Mapping, node_value
from noetl.dsl.reader.reader_context import ReaderContext
from noetl.dsl.reader.rule_reader import PipelineLabels
from noetl.expr import MappingTemplate, Template, parse
from noetl.model import ExpressionError

LABELS = "labels"
"""The input that they come in."""


def labels_of(
    context: ReaderContext, tool: Mapping, kind: Kind | None, pipeline: PipelineLabels
) -> dict[str, Template]:
    """The input with what tasks and steps gave whose labels the others mention; empty if there is none."""
    if kind is None or kind.reads_labels is None:
        return {}
    inputs = {entry.key: node_value(entry.value) for entry in tool}
    tasks = set(pipeline.labels or ()) - {pipeline.label}
    # A name may be written in capitals or not, as SQL takes both.
    known = {label.lower(): label for label in sorted(context.step_names | tasks)}
    entries: dict[str, Template] = {}
    for name in sorted(kind.reads_labels(inputs)):
        label = name if name in tasks or name in context.step_names else known.get(name.lower())
        if label is not None:
            with suppress(ExpressionError):  # a word of expressions is no name in them
                entries[name] = parse(_value_of(label))
    return {LABELS: MappingTemplate(entries)} if entries else {}


def _value_of(label: str) -> str:
    """What it gave; null if it did not run."""
    if label.isidentifier():
        return f"{{{{ {label} | default(none) }}}}"
    return f"{{{{ steps['{label}'].result | default(none) }}}}"
