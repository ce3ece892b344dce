"""004, the first version, as a canonical document."""

from noetl.dsl.dialects.node_reader import NodeReader
from noetl.dsl.dialects.nodes import new_entry, new_mapping, new_sequence, new_text, without_nulls
from noetl.dsl.dialects.v1.v1_steps import V1Step, V1StepReader
from noetl.dsl.dialects.v1.v1_workbook import V1Workbook
from noetl.dsl.dialects.v1.workflow_upgrade import WorkflowUpgrade
from noetl.dsl.document.shape_check import ProblemReporter
from noetl.dsl.document.source import Mapping, MappingEntry, Node, node_of

_ROOT_KEYS = ["apiVersion", "kind", "name", "path", "workload", "workbook", "workflow"]
_KEY_HINTS = {"metadata": "v1 has `name` and `path` at the root", "vars": "use `workload`"}


def upgrade_v1(root: Mapping, report: ProblemReporter) -> Mapping:
    """The canonical document. What was reported has a harmless value there, so nobody hears of it twice."""
    reader = NodeReader(report)
    root = without_nulls(root)
    reader.check_keys(root, _ROOT_KEYS, "a v1 playbook", _KEY_HINTS)
    metadata = _metadata(root, reader)
    path = metadata.get("path")
    workbook = V1Workbook(root.get("workbook"), reader)
    steps = _steps(root, workbook, reader)
    workload = root.get("workload")
    keys = frozenset(workload.entries) if isinstance(workload, Mapping) else frozenset()
    workflow = WorkflowUpgrade(steps, keys, str(getattr(path, "value", "")), report).step_nodes()
    _report_unused(workbook, steps, report)
    entries: list[MappingEntry] = []
    for entry in root:
        if entry.key == "apiVersion":
            entries.append(new_entry("apiVersion", new_text("noetl.io/v2", entry.value), entry))
        elif entry.key in ("kind", "workload"):
            entries.append(entry)
    at = root.entries.get("workflow") or root
    entries.append(new_entry("metadata", metadata))
    entries.append(new_entry("workflow", new_sequence(workflow or [_empty_start(at)], at), at))
    return new_mapping(entries, root)


def _metadata(root: Mapping, reader: NodeReader) -> Mapping:
    entries: list[MappingEntry] = []
    for key in ("name", "path"):
        node = reader.required(root, key, "a v1 playbook")
        if reader.text(node, f"`{key}`") is None:
            entries.append(new_entry(key, new_text("unknown", root)))
        else:
            entries.append(root.entries[key])
    return new_mapping(entries, root.entries.get("name") or root)


def _steps(root: Mapping, workbook: V1Workbook, reader: NodeReader) -> list[V1Step]:
    node = reader.required(root, "workflow", "a v1 playbook")
    items = reader.sequence(node, "`workflow`")
    if node is None or items is None:
        return []
    step_reader = V1StepReader(workbook, reader)
    steps = [step for item in items if (step := step_reader.read(item)) is not None]
    if not any(step.name == "start" for step in steps):
        reader.report(
            "missing-start", node, "the workflow has no step `start`", "v1 playbooks begin at `start`"
        )
    return steps


def _report_unused(workbook: V1Workbook, steps: list[V1Step], report: ProblemReporter) -> None:
    run = {call.task.name for step in steps for call in step.invocations}
    for name, task in workbook.tasks.items():
        if name not in run:
            report("v1-unused-task", task.node, f"no step runs the task `{name}`: it is left out", "")


def _empty_start(at: Mapping | MappingEntry) -> Node:
    return node_of({"step": "start", "tool": [{"name": "done", "kind": "noop"}]}, at)
