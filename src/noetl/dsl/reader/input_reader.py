"""The inputs of a task: values, code, nested playbooks, and what earlier tasks and steps gave by name."""

from collections.abc import Mapping as AbstractMapping
from contextlib import suppress

from noetl.dsl.document.context import PlaybookPart
from noetl.dsl.document.kinds import Kind
from noetl.dsl.document.shape_check import fields_of
from noetl.dsl.document.shapes import TaskShape
from noetl.dsl.document.source import Located, Mapping, MappingEntry, Scalar, node_value
from noetl.dsl.reader.reader_context import NestedPlaybook, ReaderContext, as_mapping
from noetl.dsl.reader.rule_reader import PipelineLabels
from noetl.expr.expression import parse
from noetl.expr.language.guard import is_template
from noetl.expr.template import Constant, MappingTemplate, Template
from noetl.model.errors import ExpressionError
from noetl.model.json import Json

LABELS = "labels"
"""The input that they come in."""


def read_inputs(
    context: ReaderContext, shaped: Mapping, kind: Kind | None, part: PlaybookPart
) -> dict[str, Template]:
    declared = fields_of(kind.inputs) if kind else {}
    inputs = {}
    for entry in shaped:
        if entry.key in fields_of(TaskShape) and entry.key not in declared:
            continue
        extra = declared[entry.key].extra if entry.key in declared else {}
        if "literal" in extra or "document" in extra:
            if "document" in extra and isinstance(entry.value, Mapping):
                args = as_mapping(shaped.get("args"))
                context.nested.append(NestedPlaybook(entry.value, frozenset(args.entries if args else ())))
            inputs[entry.key] = _literal(context, entry, extra)
        else:
            inputs[entry.key] = context.read_template(entry.value, part._replace(key=entry.key))
            if (
                "auth" in extra
                and isinstance(entry.value, Scalar)
                and isinstance(inputs[entry.key], Constant)
            ):
                context.credentials.append(entry.value)
    return inputs


def _literal(context: ReaderContext, entry: MappingEntry, extra: AbstractMapping[str, Json]) -> Template:
    value = node_value(entry.value)
    if (
        "literal" in extra
        and isinstance(value, str)
        and isinstance(entry.value, Scalar)
        and is_template(value)
    ):
        _warn_about_code(context, entry.value, value)
    return Constant(value)


def _warn_about_code(context: ReaderContext, scalar: Scalar, code: str) -> None:
    at = code.find("{{")
    inside = code[at + 2 :].lstrip() if at >= 0 else ""
    if inside.startswith(("workload.", "ctx.", "iter.", "args.", "_prev", "execution_id", "keychain.")):
        message = "this is not rendered inside code: the braces stay as they are"
        context.report_inside(
            "code-expression", scalar, at, message, "pass the value under `args` and use its name"
        )


def check_inputs(
    context: ReaderContext,
    tool: Mapping,
    shaped: Mapping,
    kind: Kind | None,
    spec: Mapping | None,
    *,
    at: Located,
) -> None:
    """What types cannot say, asked of the inputs as given; those of a wrong type have been told."""
    if kind is None or kind.check is None:
        return
    inputs = {
        entry.key: node_value(entry.value)
        for entry in tool
        if entry.key not in ("kind", "spec", "desc", "set")
    }
    knobs = {entry.key: node_value(entry.value) for entry in spec if entry.key != "policy"} if spec else {}
    for fault in kind.check(inputs, knobs):
        key = fault.key or ""
        if key in tool and key not in shaped:
            continue
        entry = tool.entries.get(key) or (spec.entries.get(key) if spec else None)
        if entry is not None and fault.line and isinstance(entry.value, Scalar):
            # Code may count lines by more characters than a document does.
            lines = str(entry.value.value).split("\n")[: fault.line]
            offset = sum(len(line) + 1 for line in lines[:-1]) + len(lines[-1]) - len(lines[-1].lstrip())
            context.report_inside("bad-input", entry.value, offset, fault.message, fault.hint)
        else:
            context.report("bad-input", entry or at, fault.message, fault.hint)


def read_labels(
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
                entries[name] = parse(_label_expression(label))
    return {LABELS: MappingTemplate(entries)} if entries else {}


def _label_expression(label: str) -> str:
    """What it gave; null if it did not run."""
    if label.isidentifier():
        return f"{{{{ {label} | default(none) }}}}"
    return f"{{{{ steps['{label}'].result | default(none) }}}}"
