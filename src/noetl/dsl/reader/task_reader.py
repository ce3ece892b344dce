"""Pipelines: tool inputs, merged specs, workbook references."""

from collections.abc import Mapping as AbstractMapping
from typing import NamedTuple

from noetl.dsl.document.context import ExpressionRole, PlaybookPart, TaskNodes
from noetl.dsl.document.kinds import READABLE, Kind
from noetl.dsl.document.playbook import Policy, Task
from noetl.dsl.document.selection import Selection
from noetl.dsl.document.shape_check import (
    ANYTHING,
    closest_words,
    describe_node,
    did_you_mean,
    fields_of,
    is_closed,
    is_empty,
)
from noetl.dsl.document.shapes import REFUSED_KEYS, TaskShape
from noetl.dsl.document.source import (
    Mapping,
    MappingEntry,
    Node,
    Scalar,
    Sequence,
    mapping_node,
    node_of,
    node_value,
)
from noetl.dsl.document.spec import inheritable_spec, merge_specs, takes_request_timeout
from noetl.dsl.reader.input_reader import check_inputs, read_inputs, read_labels
from noetl.dsl.reader.reader_context import (
    ReaderContext,
    as_mapping,
    position_of,
    scalar_text,
)
from noetl.dsl.reader.rule_reader import PipelineLabels, read_policy
from noetl.dsl.reader.task_forms import LabelledTask
from noetl.expr.language.guard import is_template
from noetl.expr.template import Template


class EnclosingScope(NamedTuple):
    """What a task inherits: the step's name, the specs around it, and the workbook."""

    step: str
    outer: tuple[Mapping | None, ...]
    workbook: AbstractMapping[str, LabelledTask]


def read_pipeline(
    context: ReaderContext, labelled: list[LabelledTask], enclosing: EnclosingScope
) -> tuple[Task, ...]:
    labels = [task.label for task in labelled]
    tasks: list[Task] = []
    for index, task in enumerate(labelled):
        previous = labels[index - 1] if index else None
        pipeline = PipelineLabels(labels, task.label, previous)
        parsed = read_task(
            context, task, PlaybookPart(ExpressionRole.INPUT, enclosing.step, len(tasks)), enclosing, pipeline
        )
        if parsed is not None:
            tasks.append(parsed)
    return tuple(tasks)


def read_task(
    context: ReaderContext,
    task: LabelledTask,
    part: PlaybookPart,
    enclosing: EnclosingScope,
    pipeline: PipelineLabels,
) -> Task | None:
    """One task, its workbook reference resolved and its spec merged; None if it has no kind."""
    tool, definition_spec = _resolve_workbook_task(context, task, enclosing.workbook)
    kind_node = tool.get("kind")
    if kind_node is None or is_empty(kind_node):
        _report_missing_kind(context, task.label, tool)
        return None
    kind = find_kind(context, kind_node)
    tool = _respell(context, tool, kind)
    shaped = _check_task(context, tool, kind, task.label)
    spec = _merge_spec(context, shaped, kind, enclosing.outer, definition_spec)
    context.task_nodes[part.step, part.task] = TaskNodes(shaped, spec)
    policy_node = _policy_node(spec)
    _check_selections(context, spec)
    inputs = {**read_inputs(context, shaped, kind, part), **read_labels(context, tool, kind, pipeline)}
    check_inputs(context, tool, shaped, kind, spec, at=task.at)
    args = as_mapping(shaped.get("args"))
    return Task(
        label=task.label,
        kind=scalar_text(kind_node),
        position=position_of(task.at),
        inputs=inputs,
        args=None
        if args is None
        else context.read_values(args, part._replace(role=ExpressionRole.TASK_ARGS)),
        policy=None if policy_node is None else _read_task_policy(context, policy_node, part, pipeline),
        spec=_read_spec_values(context, spec, part._replace(role=ExpressionRole.SPEC)),
        writes=context.read_prefixed_writes(shaped.get("set"), part._replace(role=ExpressionRole.TASK_WRITE)),
        desc=scalar_text(shaped.get("desc")),
        references=kind.takes_references if kind is not None else frozenset(),
        reads=kind.reads if kind is not None else READABLE,
    )


def _check_selections(context: ReaderContext, spec: Mapping | None) -> None:
    result = as_mapping(spec.get("result")) if spec else None
    for knob in result or ():
        if (
            isinstance(knob.value, Scalar)
            and isinstance(knob.value.value, str)
            and is_template(knob.value.value)
        ):
            message = f"`{knob.key}` must be known before the task runs: an expression cannot stand there"
            context.report("bad-value", knob.value, message, "write the value itself")
    select = result.get("select") if result else None
    names: set[str] = set()
    for entry in select.items if isinstance(select, Sequence) else ():
        path, name = (entry.get("path"), entry.get("as")) if isinstance(entry, Mapping) else (entry, None)
        if not isinstance(path, Scalar) or not isinstance(path.value, str):
            continue
        try:
            selection = Selection(path.value, scalar_text(name))
        except ValueError as error:
            context.report("bad-value", path, str(error), "for example `$.data.total`")
            continue
        if selection.name in names:
            message = f"`select` gives two things the name `{selection.name}`"
            context.report("bad-value", path, message, "give one of them another name with `as`")
        names.add(selection.name)


def _policy_node(spec: Mapping | None) -> Node | None:
    """The merged policy; what a scope around says of unmatched outcomes makes no policy by itself."""
    policy = spec.get("policy") if spec else None
    return None if isinstance(policy, Mapping) and set(policy.entries) <= {"on_unmatched"} else policy


def _read_task_policy(
    context: ReaderContext, node: Node, part: PlaybookPart, pipeline: PipelineLabels
) -> Policy | None:
    part = part._replace(role=ExpressionRole.POLICY)
    with context.mark_unreadable(part):
        return read_policy(context, node, part, pipeline)


def _report_missing_kind(context: ReaderContext, label: str, tool: Mapping) -> None:
    """Says why there is no kind: it is misspelt, an older construct stands there, or nothing does."""
    for entry in tool:
        if (moved := REFUSED_KEYS["TaskShape"].get(entry.key)) is not None:
            context.report(moved.code, entry, moved.message, moved.hint)
            return
        if entry.key != "kind" and closest_words(entry.key, ("kind",)):
            context.report(
                "unknown-key", entry, f"the task `{label}` has no key `{entry.key}`", "did you mean `kind`?"
            )
            return
    at = tool.entries.get("kind", tool)
    context.report(
        "missing-key", at, f"the task `{label}` needs the key `kind`", "add `kind:`, the tool it calls"
    )


def find_kind(context: ReaderContext, node: Node) -> Kind | None:
    """The registered kind, or None: unknown (reported) or allowed without being known."""
    name = scalar_text(node)
    kind = context.kinds.get(name)
    if kind is None and name and name not in context.kinds.allowed:
        hint = (
            did_you_mean(name, context.kinds.names)
            or "`--tools` knows those of a file, `--allow-kind` accepts one that is not installed here"
        )
        context.report("unknown-kind", node, f"there is no tool kind `{name}`", hint)
    return kind


def _resolve_workbook_task(
    context: ReaderContext, task: LabelledTask, workbook: AbstractMapping[str, LabelledTask]
) -> tuple[Mapping, Mapping | None]:
    """The task with its workbook definition underneath, and the definition's own spec."""
    kind = task.tool.get("kind")
    if scalar_text(kind) != "workbook" or kind is None:
        return task.tool, None
    named = task.tool.get("task")
    name = scalar_text(named) or task.label
    named_task = workbook.get(name)
    if named_task is None:
        hint = did_you_mean(name, workbook) or "declare it under `workbook.tasks`"
        context.report("unknown-task", named or kind, f"the workbook has no task `{name}`", hint)
        return task.tool, None
    context.used_tasks.add(name)
    tool_kind = context.kinds.get(scalar_text(named_task.tool.get("kind")))
    definition = _respell(context, named_task.tool, tool_kind)
    reference = _respell(context, task.tool, tool_kind)
    entries = {entry.key: entry for entry in definition if entry.key != "spec"}
    entries |= {entry.key: entry for entry in reference if entry.key not in ("kind", "task")}
    below, above = as_mapping(definition.get("args")), as_mapping(reference.get("args"))
    if below is not None and above is not None:
        merged_args = Mapping({**below.entries, **above.entries}, above.line, above.column)
        entries["args"] = MappingEntry("args", merged_args, above.line, above.column)
    spec = as_mapping(definition.get("spec"))
    if spec is not None:
        spec = _drop_policy_without_rules(
            context, spec if tool_kind is None else _check_spec(context, spec, tool_kind)
        )
    return Mapping(entries, task.tool.line, task.tool.column), spec


def _check_task(context: ReaderContext, tool: Mapping, kind: Kind | None, label: str) -> Mapping:
    """The task's keys by their canonical names; what does not fit is reported and left out."""
    inputs = fields_of(kind.inputs) if kind else {}
    task_fields = {key: field for key, field in fields_of(TaskShape).items() if key not in inputs}
    shaped = context.shape_checker.check_fields(
        tool,
        task_fields,
        f"a task of kind `{kind.name}`" if kind else f"the task `{label}`",
        templated=inputs,
        closed=kind is not None and is_closed(kind.inputs),
        moved={key: moved for key, moved in REFUSED_KEYS["TaskShape"].items() if key not in inputs},
    )
    if kind is not None and (spec := as_mapping(shaped.get("spec"))) is not None:
        entry = tool.entries["spec"]
        shaped.entries["spec"] = MappingEntry(
            "spec", _check_spec(context, spec, kind), entry.line, entry.column
        )
    return shaped


def _check_spec(context: ReaderContext, spec: Mapping, kind: Kind) -> Mapping:
    return context.shape_checker.check_fields(
        spec,
        {"policy": ANYTHING._replace(extra={"empty": "policy-shape"})},
        f"the spec of a `{kind.name}` task",
        templated=fields_of(kind.spec),
        closed=is_closed(kind.spec),
    )


def _respell(context: ReaderContext, tool: Mapping, kind: Kind | None) -> Mapping:
    """Other spellings of inputs, and of the keys that every task has, under their one name."""
    entries: dict[str, MappingEntry] = {}
    for entry in tool:
        key = "args" if entry.key == "input" else entry.key
        if kind is not None and (spelling := kind.spellings.get(key)) is not None:
            key = spelling if isinstance(spelling, str) else spelling(node_value(entry.value))
        if key in entries:
            context.report(
                "duplicate-key", entry, f"`{entry.key}` and `{entries[key].key}` say the same thing"
            )
            continue
        entries[key] = entry if key == entry.key else MappingEntry(key, entry.value, entry.line, entry.column)
    return move_output_select(Mapping(entries, tool.line, tool.column))


def move_output_select(node: Mapping) -> Mapping:
    """A task or step with its `output_select` where it belongs, under `spec.result.select`."""
    selected, spec = node.entries.get("output_select"), node.get("spec")
    if selected is None or not isinstance(selected.value, Sequence):
        return node
    if spec is not None and not is_empty(spec) and not isinstance(spec, Mapping):
        return node
    selection = mapping_node(selected, {"result": mapping_node(selected, {"select": selected.value})})
    merged = merge_specs(selection, as_mapping(spec)) or selection
    entries = {entry.key: entry for entry in node if entry is not selected}
    entries["spec"] = MappingEntry("spec", merged, selected.line, selected.column)
    return Mapping(entries, node.line, node.column)


def _merge_spec(
    context: ReaderContext,
    shaped: Mapping,
    kind: Kind | None,
    outer: tuple[Mapping | None, ...],
    definition_spec: Mapping | None,
) -> Mapping | None:
    """001 §6.4: kind defaults → executor → step → loop → workbook definition → task."""
    known = frozenset(fields_of(kind.spec)) if kind else None
    defaults = node_of(dict(kind.defaults), shaped) if kind and kind.defaults else None
    own_spec = as_mapping(shaped.get("spec"))
    limits = takes_request_timeout(kind)
    executor, *inner = (inheritable_spec(spec, known, request_timeout=limits) for spec in outer)
    if kind is not None and executor is not None:
        executor = context.shape_checker.check_fields(
            executor, {}, "`executor.spec`", templated=fields_of(kind.spec), closed=False
        )
    return merge_specs(
        as_mapping(defaults),
        executor,
        *inner,
        definition_spec,
        _drop_policy_without_rules(context, own_spec) if own_spec else None,
    )


def _drop_policy_without_rules(context: ReaderContext, spec: Mapping) -> Mapping:
    """A task's own spec; a policy that is no object containing `rules` (000 §13) is left out."""
    policy = spec.get("policy")
    if policy is None or (isinstance(policy, Mapping) and "rules" in policy):
        return spec
    described = "a mapping without `rules`" if isinstance(policy, Mapping) else describe_node(policy)
    message = f"a policy is an object containing `rules`, not {described}"
    keys = policy.entries if isinstance(policy, Mapping) else ()
    near = next((key for key in keys if closest_words(key, ("rules",))), None)
    hint = f"`{near}`: did you mean `rules`?" if near else "write `policy: { rules: […] }`"
    context.report("policy-shape", policy, message, hint)
    return Mapping({entry.key: entry for entry in spec if entry.key != "policy"}, spec.line, spec.column)


def _read_spec_values(
    context: ReaderContext, spec: Mapping | None, part: PlaybookPart
) -> dict[str, Template]:
    if spec is None:
        return {}
    return {entry.key: context.read_template(entry.value, part) for entry in spec if entry.key != "policy"}
