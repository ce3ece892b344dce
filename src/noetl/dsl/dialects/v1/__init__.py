"""004, the first version, as a canonical document."""

from noetl.dsl.dialects.node_reader import Reader
from noetl.dsl.dialects.nodes import entry, mapping, present, sequence, text
from noetl.dsl.dialects.v1.v1_steps import Steps, StepSource
from noetl.dsl.dialects.v1.v1_workbook import Workbook
from noetl.dsl.dialects.v1.workflow_upgrade import Workflow
from noetl.dsl.document.shape_check import Report
from noetl.dsl.document.source import Entry, Mapping, Node, node_of

_ROOT = ["apiVersion", "kind", "name", "path", "workload", "workbook", "workflow"]
_HINTS = {"metadata": "v1 has `name` and `path` at the root", "vars": "use `workload`"}


def upgrade_v1(root: Mapping, report: Report) -> Mapping:
    """The canonical document. What was reported has a harmless value there, so nobody hears of it twice."""
    read = Reader(report)
    root = present(root)
    read.only(root, _ROOT, "a v1 playbook", _HINTS)
    metadata = _metadata(root, read)
    path = metadata.get("path")
    workbook = Workbook(root.get("workbook"), read)
    steps = _steps(root, workbook, read)
    workload = root.get("workload")
    keys = frozenset(workload.entries) if isinstance(workload, Mapping) else frozenset()
    workflow = Workflow(steps, keys, str(getattr(path, "value", "")), report).nodes()
    _unused(workbook, steps, report)
    entries: list[Entry] = []
    for item in root:
        if item.key == "apiVersion":
            entries.append(entry("apiVersion", text("noetl.io/v2", item.value), item))
        elif item.key in ("kind", "workload"):
            entries.append(item)
    at = root.entries.get("workflow") or root
    entries.append(entry("metadata", metadata))
    entries.append(entry("workflow", sequence(workflow or [_nowhere(at)], at), at))
    return mapping(entries, root)


def _metadata(root: Mapping, read: Reader) -> Mapping:
    entries: list[Entry] = []
    for key in ("name", "path"):
        node = read.required(root, key, "a v1 playbook")
        if read.text(node, f"`{key}`") is None:
            entries.append(entry(key, text("unknown", root)))
        else:
            entries.append(root.entries[key])
    return mapping(entries, root.entries.get("name") or root)


def _steps(root: Mapping, workbook: Workbook, read: Reader) -> list[StepSource]:
    node = read.required(root, "workflow", "a v1 playbook")
    items = read.sequence(node, "`workflow`")
    if node is None or items is None:
        return []
    reader = Steps(workbook, read)
    steps = [step for item in items if (step := reader.read(item)) is not None]
    if not any(step.name == "start" for step in steps):
        read.report(
            "missing-start", node, "the workflow has no step `start`", "v1 playbooks begin at `start`"
        )
    return steps


def _unused(workbook: Workbook, steps: list[StepSource], report: Report) -> None:
    run = {call.task.name for step in steps for call in step.invocations}
    for name, task in workbook.tasks.items():
        if name not in run:
            report("v1-unused-task", task.node, f"no step runs the task `{name}`: it is left out", "")


def _nowhere(at: Mapping | Entry) -> Node:
    return node_of({"step": "start", "tool": [{"name": "done", "kind": "noop"}]}, at)
