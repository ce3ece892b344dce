"""The whole document: from a tree to a Playbook, with every problem on the way."""

import hashlib
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from noetl.dsl.document.context import ExpressionRole, PlaybookPart
from noetl.dsl.document.keychain_kinds import CREDENTIAL_SUFFIX, EXCLUSIVE_FIELDS, KEYCHAIN_KINDS
from noetl.dsl.document.kinds import Kinds
from noetl.dsl.document.playbook import Arc, Executor, KeychainEntry, Metadata, Playbook, Position, Step
from noetl.dsl.document.shape_check import describe_node, did_you_mean, fields_of, is_empty
from noetl.dsl.document.shapes import KeychainShape, RootShape
from noetl.dsl.document.source import Located, Mapping, Node, Scalar, Sequence, node_value
from noetl.dsl.reader.reader_context import (
    NestedPlaybook,
    ReaderContext,
    as_mapping,
    position_of,
    scalar_text,
)
from noetl.dsl.reader.rule_reader import PipelineLabels, check_unused_rules, read_number
from noetl.dsl.reader.step_reader import read_step
from noetl.dsl.reader.task_forms import LabelledTask, label_tasks
from noetl.dsl.reader.task_reader import EnclosingScope, read_task
from noetl.expr.template import Constant


class ReadPlaybook(NamedTuple):
    """What reading gave: a playbook even where parts were wrong, if there was one to make."""

    context: ReaderContext
    playbook: Playbook | None


def read_playbook(root: Mapping, file: str, text: str, kinds: Kinds) -> Iterator[ReadPlaybook]:
    """Reads a canonical document, then each playbook inside it. All that is wrong is in the contexts."""
    waiting = [NestedPlaybook(root, frozenset())]
    while waiting:
        nested = waiting.pop(0)
        context = ReaderContext(file, text, kinds, nested.workload_keys)
        yield ReadPlaybook(context, _read_playbook(context, nested.root))
        waiting.extend(context.nested)


def _read_playbook(context: ReaderContext, root: Mapping) -> Playbook | None:
    context.root = root
    shaped = context.shape_checker.check_struct(root, RootShape, "a playbook")
    if shaped is None:
        return None
    executor_node = as_mapping(shaped.get("executor"))
    executor_spec = as_mapping(executor_node.get("spec")) if executor_node else None
    workbook = _read_workbook(context, shaped.get("workbook"))
    context.step_names = _step_names(shaped.get("workflow"))
    steps = _read_steps(context, shaped.get("workflow"), executor_spec, workbook)
    _check_unused_tasks(context, workbook, context.used_tasks, executor_spec)
    check_unused_rules(context, executor_spec, None)
    executor = _read_executor(context, executor_node, executor_spec, steps)
    workload = context.read_values(as_mapping(shaped.get("workload")), PlaybookPart(ExpressionRole.WORKLOAD))
    keychain = _read_keychain(context, shaped.get("keychain"))
    metadata = _read_metadata(as_mapping(shaped.get("metadata")))
    if not steps:
        return None
    document = node_value(root)
    return Playbook(
        metadata=metadata,
        workflow=tuple(steps.values()),
        steps=steps,
        entry=_entry_step(context, executor_spec, steps),
        document=document,
        hash=hashlib.sha256(msgspec.json.encode(document, order="sorted")).hexdigest(),
        keychain=keychain,
        executor=executor,
        workload=workload,
    )


def _step_names(workflow: Node | None) -> frozenset[str]:
    steps = workflow.items if isinstance(workflow, Sequence) else ()
    return frozenset(scalar_text(step.get("step")) for step in steps if isinstance(step, Mapping))


def _read_steps(
    context: ReaderContext,
    node: Node | None,
    executor_spec: Mapping | None,
    workbook: dict[str, LabelledTask],
) -> dict[str, Step]:
    steps: dict[str, Step] = {}
    arcs: list[Arc] = []
    written_names: set[str] = set()
    for item in node.items if isinstance(node, Sequence) else ():
        if not isinstance(item, Mapping):
            continue
        step, named = read_step(context, item, executor_spec, workbook)
        arcs += step.arcs
        written_names.add(step.name)
        if not named:
            continue
        if step.name in steps:
            hint = f"the first stands in line {steps[step.name].position.line}"
            context.report("duplicate-step", step.position, f"there is a step `{step.name}` already", hint)
            continue
        steps[step.name] = step
    for arc in arcs:
        # One fault is told once: a step with a wrong name is there, too.
        if arc.step not in written_names:
            _report_unknown_step(context, arc.step, arc.position, steps)
    return steps


def _report_unknown_step(
    context: ReaderContext, name: str, at: Located | Position, steps: dict[str, Step]
) -> None:
    hint = did_you_mean(name, steps) or "steps are declared under `workflow`"
    context.report("unknown-step", at, f"there is no step `{name}`", hint)


def _entry_step(context: ReaderContext, executor_spec: Mapping | None, steps: dict[str, Step]) -> str:
    named = executor_spec.get("entry_step") if executor_spec else None
    if named is not None:
        name = scalar_text(named)
        if name in steps:
            return name
        _report_unknown_step(context, name, named, steps)
    return "start" if "start" in steps else next(iter(steps))


def _read_executor(
    context: ReaderContext, node: Mapping | None, spec: Mapping | None, steps: dict[str, Step]
) -> Executor:
    if node is None:
        return Executor()
    if (profile := node.entries.get("profile")) is not None:
        context.report(
            "executor-profile", profile, "`executor.profile` has no effect", "use `executor.spec.pool`"
        )
    if spec is not None and not scalar_text(node.get("kind")):
        context.report(
            "executor-kind",
            node,
            "`executor` has a `spec` and no `kind`: the playbook runs where it is started",
            "write `kind: local`, `distributed` or `hybrid`",
        )
    if spec is None:
        return Executor(kind=scalar_text(node.get("kind")) or None)  # type: ignore[arg-type]  # in shape
    final = spec.get("final_step")
    if final is not None:
        _check_final_step(context, final, steps)
    output, no_next = spec.get("output"), spec.get("no_next_is_error")
    return Executor(
        kind=scalar_text(node.get("kind")) or None,  # type: ignore[arg-type]  # in shape
        spec={entry.key: node_value(entry.value) for entry in spec},
        output=None if output is None else context.read_template(output, PlaybookPart(ExpressionRole.OUTPUT)),
        final_step=scalar_text(final) if scalar_text(final) in steps else None,
        timeout=read_number(context, spec.get("timeout"), PlaybookPart(ExpressionRole.OUTPUT)),
        max_step_runs=_integer_or(spec.get("max_step_runs"), Executor().max_step_runs),
        max_failures_in_row=_integer_or(spec.get("max_failures_in_row"), Executor().max_failures_in_row),
        max_depth=_integer_or(spec.get("max_depth"), Executor().max_depth),
        no_next_is_error=isinstance(no_next, Scalar) and no_next.value is True,
    )


def _integer_or(node: Node | None, default: int) -> int:
    return default if node is None else int(scalar_text(node))


def _check_final_step(context: ReaderContext, node: Node, steps: dict[str, Step]) -> None:
    name = scalar_text(node)
    step = steps.get(name)
    if step is None:
        _report_unknown_step(context, name, node, steps)
        return
    if step.arcs:
        context.report(
            "final-step-arcs", step.arcs[0].position, f"the final step `{name}` has no arcs of its own"
        )
    for other in steps.values():
        for arc in other.arcs:
            if arc.step == name:
                context.report(
                    "final-step-arcs",
                    arc.position,
                    f"no arc leads to the final step `{name}`",
                    "it runs by itself at the end",
                )


def _read_keychain(context: ReaderContext, node: Node | None) -> dict[str, KeychainEntry]:
    entries: dict[str, KeychainEntry] = {}
    for item in node.items if isinstance(node, Sequence) else ():
        if not isinstance(item, Mapping):
            continue
        name = context.read_name(item.get("name"), "a keychain entry")
        item = _check_keychain_fields(context, item)  # noqa: PLW2901 - only what fits goes on
        if name is None:
            continue
        if name in entries:
            context.report(
                "duplicate-key", item.entries["name"], f"the keychain has an entry `{name}` already"
            )
            continue
        entries[name] = _keychain_entry(context, item, name)
    return entries


def _keychain_entry(context: ReaderContext, item: Mapping, name: str) -> KeychainEntry:
    part = PlaybookPart(ExpressionRole.KEYCHAIN, key=name)
    fields, templates = {}, {}
    for entry in item:
        if entry.key in fields_of(KeychainShape):
            continue
        template = context.read_template(entry.value, part)
        if isinstance(template, Constant):
            fields[entry.key] = node_value(entry.value)
        else:
            templates[entry.key] = template
    return KeychainEntry(name, scalar_text(item.get("kind")), position_of(item), fields, templates)


def _check_keychain_fields(context: ReaderContext, item: Mapping) -> Mapping:
    """The entry with the fields that its kind has; a tool's own credentials are free."""
    kind_node = item.get("kind")
    kind = scalar_text(kind_node)
    value_entries = [entry for entry in item if entry.key in EXCLUSIVE_FIELDS.get(kind, ())]
    if len(value_entries) > 1:
        keys_text = " and ".join(f"`{entry.key}`" for entry in value_entries)
        context.report(
            "conflicting-keys", value_entries[1], f"{keys_text} both say what it is", "keep one of them"
        )
    if (declared := KEYCHAIN_KINDS.get(kind)) is not None:
        common = {key: field._replace(required=False) for key, field in fields_of(KeychainShape).items()}
        return context.shape_checker.check_fields(
            item, common, f"a keychain entry of kind `{kind}`", templated=fields_of(declared)
        )
    if kind_node is not None and not kind.endswith(CREDENTIAL_SUFFIX):
        hint = (
            did_you_mean(kind, KEYCHAIN_KINDS)
            or f"one of {', '.join(KEYCHAIN_KINDS)}, or `…{CREDENTIAL_SUFFIX}`"
        )
        context.report("bad-value", kind_node, f"there is no keychain kind `{kind}`", hint)
    return item


def _read_metadata(node: Mapping | None) -> Metadata:
    if node is None:
        return Metadata("", "")
    tags, labels = node.get("tags"), as_mapping(node.get("labels"))
    return Metadata(
        name=scalar_text(node.get("name")),
        path=scalar_text(node.get("path")),
        version=scalar_text(node.get("version")) or None,
        description=scalar_text(node.get("description")),
        tags=tuple(scalar_text(tag) for tag in tags.items) if isinstance(tags, Sequence) else (),
        labels={entry.key: scalar_text(entry.value) for entry in labels} if labels else {},
    )


def _read_workbook(context: ReaderContext, node: Node | None) -> dict[str, LabelledTask]:
    """Named tasks: a list, or a mapping under `tasks`."""
    if node is None or is_empty(node):
        return {}
    listed = node if isinstance(node, Sequence) else None
    if isinstance(node, Mapping):
        for entry in node:
            if entry.key != "tasks":
                hint = "named tasks stand under `workbook.tasks`"
                context.report("unknown-key", entry, f"the workbook has no key `{entry.key}`", hint)
        tasks = node.get("tasks")
        if isinstance(tasks, Mapping):
            return _read_named_tasks(context, tasks)
        listed = tasks if isinstance(tasks, Sequence) else None
        if tasks is None or is_empty(tasks):
            return {}
    if listed is None:
        context.report("wrong-type", node, f"a workbook is a mapping with `tasks`, not {describe_node(node)}")
        return {}
    return {task.label: task for task in label_tasks(context, listed)}


def _read_named_tasks(context: ReaderContext, tasks: Mapping) -> dict[str, LabelledTask]:
    named = {}
    for entry in tasks:
        name = context.read_name(Scalar(entry.key, entry.line, entry.column), "a workbook task")
        if not isinstance(entry.value, Mapping):
            context.report(
                "wrong-type", entry.value, f"a workbook task is a mapping, not {describe_node(entry.value)}"
            )
        elif name is not None:
            named[name] = LabelledTask(name, entry.value, entry)
    return named


def _check_unused_tasks(
    context: ReaderContext, workbook: dict[str, LabelledTask], used: set[str], executor_spec: Mapping | None
) -> None:
    """Definitions that no step uses are checked where they stand; the others with their users."""
    for name, task in workbook.items():
        if scalar_text(task.tool.get("kind")) == "workbook":
            context.report(
                "bad-value", task.at, "a workbook task cannot refer to another", "give it a tool's kind"
            )
        elif name not in used:
            enclosing = EnclosingScope("", (executor_spec,), {})
            read_task(
                context, task, PlaybookPart(ExpressionRole.INPUT), enclosing, PipelineLabels(None, name, name)
            )
