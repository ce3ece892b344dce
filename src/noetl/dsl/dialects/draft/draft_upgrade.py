"""003, the draft of the second version, as a canonical document."""

import re

from noetl.dsl.dialects.draft.draft_tasks import DraftTasks
from noetl.dsl.dialects.draft.draft_variables import DraftVariables, is_parallel, run_variable
from noetl.dsl.dialects.expression_text import edit_node, name_edits
from noetl.dsl.dialects.nodes import (
    new_entry,
    new_mapping,
    new_sequence,
    text_value,
    with_entry,
    without_keys,
    without_nulls,
)
from noetl.dsl.document.shape_check import ProblemReporter, describe_node
from noetl.dsl.document.source import Mapping, MappingEntry, Node, Scalar, Sequence, node_of

_TRUE_TEMPLATE = re.compile(r"\{\{\s*true\s*\}\}\Z", re.IGNORECASE)
_RUN_EDITS = name_edits(run_variable)


def upgrade_draft(root: Mapping, report: ProblemReporter) -> Mapping:
    """The canonical document. What 003 itself refuses is passed through for the canonical reader."""
    parallel = _parallel_only(root.get("workflow"))
    entries: list[MappingEntry] = []
    for entry in root:
        match entry.key, entry.value:
            case "metadata", Mapping() as metadata:
                entries.append(new_entry("metadata", without_keys(metadata, "dialect"), entry))
            case "keychain", _:
                report(
                    "unknown-key",
                    entry,
                    "a draft document has no `keychain`",
                    "drafts name stored credentials by `auth`; canonical documents declare them",
                )
            case "workflow", Sequence() as steps:
                tasks = _workbook_tasks(root.get("workbook"))
                upgraded = [_upgrade_step(step, tasks, report) for step in steps.items]
                entries.append(new_entry("workflow", new_sequence(upgraded, steps), entry))
            case "workbook", workbook:
                entries.append(new_entry("workbook", _upgrade_workbook(workbook, parallel, report), entry))
            case _:
                entries.append(entry)
    return new_mapping(entries, root)


def _upgrade_step(step: Node, catalog: dict[str, Node], report: ProblemReporter) -> Node:
    if not isinstance(step, Mapping):
        return step
    step = without_nulls(step)
    variables = DraftVariables(_with_workbook_tasks(step, catalog), report)
    tasks = DraftTasks(variables, report)
    spec = _step_spec(step, report)
    entries: list[MappingEntry] = []
    for entry in step:
        match entry.key:
            case "when" | "spec":
                pass
            case "loop":
                entries.append(new_entry("loop", _upgrade_loop(entry.value, variables), entry))
            case "tool":
                entries.append(new_entry("tool", tasks.upgrade_pipeline(entry.value), entry))
            case "next":
                entries.append(new_entry("next", _upgrade_router(entry.value, step, report), entry))
            case _:
                entries.append(entry)
        # Right behind the name, as the specification writes it: `when` and `spec` may stand anywhere.
        if entry.key == "step" and spec is not None:
            entries.append(spec)
    if spec is not None and "step" not in step:
        entries.append(spec)
    return new_mapping(entries, step)


def _step_spec(step: Mapping, report: ProblemReporter) -> MappingEntry | None:
    """`spec` without the routing mode and with the admission that `when` asks for."""
    spec_entry = step.entries.get("spec")
    when = step.entries.get("when")
    spec: Node | None = spec_entry.value if spec_entry else None
    if isinstance(spec, Mapping):
        _check_next_mode(spec.get("next_mode"), step, report)
        spec = without_keys(spec, "next_mode")
    if when is None or _is_always(when.value):
        return new_entry("spec", spec, spec_entry) if spec is not None and not _is_empty(spec) else None
    if spec is not None and not isinstance(spec, Mapping):
        return spec_entry
    policy = spec.get("policy") if spec else None
    if isinstance(policy, Mapping) and "admit" in policy:
        report(
            "conflicting-keys", when, "the step has both `when` and `spec.policy.admit`", "keep one of them"
        )
        return new_entry("spec", spec, spec_entry) if spec else None
    admit = new_entry("admit", _admission(when), when)
    return new_entry(
        "spec", with_entry(spec, new_entry("policy", with_entry(policy, admit), when)), spec_entry or when
    )


def _check_next_mode(mode: Node | None, step: Mapping, report: ProblemReporter) -> None:
    """A mode without `next` goes nowhere, so nobody else would look at it."""
    if mode is None or "next" in step:
        return
    if not isinstance(mode, Scalar) or mode.value not in ("exclusive", "inclusive"):
        report(
            "bad-value",
            mode,
            f"`next_mode` cannot be {describe_node(mode)}",
            "one of `exclusive`, `inclusive`",
        )


def _admission(when: MappingEntry) -> Mapping:
    # A draft token that is not let in waits for its guard to change, whatever the guard reads.
    rules = [
        new_mapping(
            [new_entry("when", when.value, when), new_entry("then", node_of({"allow": True}, when))], when
        ),
        node_of({"else": {"then": {"allow": False}}}, when),
    ]
    return new_mapping(
        [new_entry("rules", new_sequence(rules, when)), new_entry("on_deny", node_of("park", when))], when
    )


def _upgrade_loop(loop: Node, variables: DraftVariables) -> Node:
    if not isinstance(loop, Mapping):
        return loop
    entries = [
        new_entry(entry.key, edit_node(entry.value, _RUN_EDITS) if entry.key == "in" else entry.value, entry)
        for entry in loop
    ]
    if variables.reducers:
        reduce = new_mapping(
            (new_entry(f"run.{key}", name) for key, name in variables.reducers.items()), loop
        )
        spec = loop.get("spec")
        own_reducers = spec.get("reduce") if isinstance(spec, Mapping) else None
        if isinstance(own_reducers, Mapping):
            reduce = new_mapping([*reduce, *own_reducers], own_reducers)
        entries.append(
            new_entry("spec", with_entry(spec, new_entry("reduce", reduce)), loop.entries.get("spec"))
        )
    return new_mapping(entries, loop)


def _upgrade_router(node: Node, step: Mapping, report: ProblemReporter) -> Node:
    spec = step.get("spec")
    mode = spec.entries.get("next_mode") if isinstance(spec, Mapping) else None
    arcs = _arcs(node)
    if arcs is None:
        if not (isinstance(node, Mapping) and "arcs" in node):
            return node
        if mode is not None and isinstance(inner := node.get("spec"), Mapping) and "mode" in inner:
            report(
                "conflicting-keys",
                mode,
                "the step has both `spec.next_mode` and `next.spec.mode`",
                "keep one of them",
            )
            mode = None
        router = edit_node(node, _RUN_EDITS)
        if mode is None or not isinstance(router, Mapping):
            return router
        mode_entry = new_entry("mode", mode.value, mode)
        return new_mapping(
            [*router, new_entry("spec", with_entry(router.get("spec"), mode_entry), mode)], router
        )
    value = mode.value if mode else node_of("exclusive", node)
    return new_mapping(
        [
            new_entry("spec", new_mapping([new_entry("mode", value, mode or node)], mode or node)),
            new_entry("arcs", new_sequence((edit_node(arc, _RUN_EDITS) for arc in arcs), node)),
        ],
        node,
    )


def _arcs(node: Node) -> list[Node] | None:
    """The arcs of a list, of a single arc, or of a step's bare name."""
    match node:
        case Sequence():
            return [_as_arc(item) for item in node.items]
        case Mapping() if "step" in node:
            return [node]
        case Scalar(value=str()):
            return [_as_arc(node)]
        case _:
            return None


def _as_arc(node: Node) -> Node:
    if isinstance(node, Scalar) and isinstance(node.value, str):
        return new_mapping([new_entry("step", node)], node)
    return node


def _workbook_tasks(workbook: Node | None) -> dict[str, Node]:
    """The named tasks of the workbook."""
    tasks = workbook.get("tasks") if isinstance(workbook, Mapping) else None
    return {entry.key: entry.value for entry in tasks} if isinstance(tasks, Mapping) else {}


def _with_workbook_tasks(step: Mapping, catalog: dict[str, Node]) -> Mapping:
    """The step with the bodies of the named tasks it uses: what they write is written by the step."""
    tool = step.get("tool")
    used = [catalog[name] for name in _workbook_references(tool) if name in catalog]
    if tool is None or not used:
        return step
    return new_mapping([*step, new_entry("tool", new_sequence([tool, *used], tool))], step)


def _upgrade_workbook(node: Node, parallel: set[str], report: ProblemReporter) -> Node:
    """The catalog of tasks, as the mapping `tasks` or as a list."""
    if isinstance(node, Sequence):
        return DraftTasks(DraftVariables(new_mapping([], node), report), report).upgrade_pipeline(node)
    if not isinstance(node, Mapping):
        return node
    entries: list[MappingEntry] = []
    for entry in node:
        if entry.key == "tasks" and isinstance(entry.value, Mapping):
            tasks = (
                new_entry(task.key, _upgrade_named_task(task, parallel, report), task) for task in entry.value
            )
            entries.append(new_entry("tasks", new_mapping(tasks, entry.value), entry))
        else:
            entries.append(entry)
    return new_mapping(entries, node)


def _upgrade_named_task(task: MappingEntry, parallel: set[str], report: ProblemReporter) -> Node:
    if not isinstance(task.value, Mapping):
        return task.value
    step_entries = [new_entry("tool", task.value)]
    if task.key in parallel:
        # The variables of a task that only parallel loops use belong to their iterations.
        step_entries.append(new_entry("loop", node_of({"spec": {"mode": "parallel"}}, task)))
    return DraftTasks(DraftVariables(new_mapping(step_entries, task), report), report).upgrade_task(
        task.value
    )


def _parallel_only(workflow: Node | None) -> set[str]:
    """The workbook tasks that are used in parallel loops and nowhere else."""
    used: dict[bool, set[str]] = {True: set(), False: set()}
    for step in workflow.items if isinstance(workflow, Sequence) else ():
        if isinstance(step, Mapping):
            parallel = is_parallel(step)
            used[parallel] |= set(_workbook_references(step.get("tool")))
    return used[True] - used[False]


def _workbook_references(tool: Node | None) -> list[str]:
    names: list[str] = []
    for item in tool.items if isinstance(tool, Sequence) else [tool]:
        label, task = None, item
        if isinstance(item, Mapping) and "kind" not in item and len(item.entries) == 1:
            labelled = next(iter(item))
            label, task = labelled.key, labelled.value
        if isinstance(task, Mapping) and text_value(task.get("kind")) == "workbook":
            names.append(text_value(task.get("task")) or label or text_value(task.get("name")) or "")
    return names


def _is_always(when: Node) -> bool:
    if not isinstance(when, Scalar):
        return False
    return when.value is True or (
        isinstance(when.value, str) and bool(_TRUE_TEMPLATE.match(when.value.strip()))
    )


def _is_empty(node: Node) -> bool:
    return isinstance(node, Mapping) and not node.entries
