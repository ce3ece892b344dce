"""004, the first version, as a canonical document."""

from noetl.dsl.dialects.node_reader import NodeReader
from noetl.dsl.dialects.nodes import new_entry, new_mapping, new_sequence, new_text, without_nulls
from noetl.dsl.dialects.v1.v1_steps import V1Step, V1StepReader
from noetl.dsl.dialects.v1.v1_workbook import V1Workbook
from noetl.dsl.dialects.v1.workflow_upgrade import WorkflowUpgrade
from noetl.dsl.document.shape_check import ProblemReporter
from noetl.dsl.document.source import Mapping, MappingEntry, Node, node_of

_ROOT = ["apiVersion", "kind", "name", "path", "workload", "workbook", "workflow"]
_HINTS = {"metadata": "v1 has `name` and `path` at the root", "vars": "use `workload`"}


def upgrade_v1(root: Mapping, report: ProblemReporter) -> Mapping:
    """The canonical document. What was reported has a harmless value there, so nobody hears of it twice."""
    read = NodeReader(report)
    root = without_nulls(root)
    read.check_keys(root, _ROOT, "a v1 playbook", _HINTS)
    metadata = _metadata(root, read)
    path = metadata.get("path")
    workbook = V1Workbook(root.get("workbook"), read)
    steps = _steps(root, workbook, read)
    workload = root.get("workload")
    keys = frozenset(workload.entries) if isinstance(workload, Mapping) else frozenset()
    workflow = WorkflowUpgrade(steps, keys, str(getattr(path, "value", "")), report).step_nodes()
    _unused(workbook, steps, report)
    entries: list[MappingEntry] = []
    for item in root:
        if item.key == "apiVersion":
            entries.append(new_entry("apiVersion", new_text("noetl.io/v2", item.value), item))
        elif item.key in ("kind", "workload"):
            entries.append(item)
    at = root.entries.get("workflow") or root
    entries.append(new_entry("metadata", metadata))
    entries.append(new_entry("workflow", new_sequence(workflow or [_nowhere(at)], at), at))
    return new_mapping(entries, root)


def _metadata(root: Mapping, read: NodeReader) -> Mapping:
    entries: list[MappingEntry] = []
    for key in ("name", "path"):
        node = read.required(root, key, "a v1 playbook")
        if read.text(node, f"`{key}`") is None:
            entries.append(new_entry(key, new_text("unknown", root)))
        else:
            entries.append(root.entries[key])
    return new_mapping(entries, root.entries.get("name") or root)


def _steps(root: Mapping, workbook: V1Workbook, read: NodeReader) -> list[V1Step]:
    node = read.required(root, "workflow", "a v1 playbook")
    items = read.sequence(node, "`workflow`")
    if node is None or items is None:
        return []
    reader = V1StepReader(workbook, read)
    steps = [step for item in items if (step := reader.read(item)) is not None]
    if not any(step.name == "start" for step in steps):
        read.report(
            "missing-start", node, "the workflow has no step `start`", "v1 playbooks begin at `start`"
        )
    return steps


def _unused(workbook: V1Workbook, steps: list[V1Step], report: ProblemReporter) -> None:
    run = {call.task.name for step in steps for call in step.invocations}
    for name, task in workbook.tasks.items():
        if name not in run:
            report("v1-unused-task", task.node, f"no step runs the task `{name}`: it is left out", "")


def _nowhere(at: Mapping | MappingEntry) -> Node:
    return node_of({"step": "start", "tool": [{"name": "done", "kind": "noop"}]}, at)
