"""The forms of a task, all made one: a label and the mapping that holds `kind`."""

from typing import NamedTuple

from noetl.dsl.document.shape_check import describe_node, fields_of, is_empty
from noetl.dsl.document.shapes import REFUSED_KEYS, TaskShape
from noetl.dsl.document.source import Located, Mapping, MappingEntry, Node, Scalar, Sequence
from noetl.dsl.reader.reader_context import ReaderContext, scalar_text

_RESERVED = ("previous",)
"""What a jump calls the task before."""


class LabelledTask(NamedTuple):
    """A task in its one form: a label and the mapping that holds `kind`."""

    label: str
    tool: Mapping
    at: Located


def label_tasks(context: ReaderContext, node: Node) -> list[LabelledTask]:
    """The tasks of a `tool`, whichever form they have; a mapping is a pipeline of one."""
    if isinstance(node, Mapping):
        entries: list[Node] = [node]
    elif isinstance(node, Sequence):
        entries = node.items
        if not entries:
            context.report(
                "bad-value", node, "`tool` must not be empty", "leave it out for a step that only routes"
            )
    else:
        context.report("wrong-type", node, f"`tool` is a list of tasks, not {describe_node(node)}")
        return []
    seen: dict[str, Located] = {}
    labelled = []
    for index, entry in enumerate(entries):
        task = _label_task(context, entry, index)
        if task is None:
            continue
        if task.label in seen:
            hint = f"the first stands in line {seen[task.label].line}"
            context.report("duplicate-task", task.at, f"the pipeline has a task `{task.label}` already", hint)
        seen.setdefault(task.label, task.at)
        labelled.append(task)
    return labelled


def _label_task(context: ReaderContext, node: Node, index: int) -> LabelledTask | None:
    if not isinstance(node, Mapping):
        context.report("wrong-type", node, f"a task is a mapping, not {describe_node(node)}", _FORMS)
        return None
    if "kind" not in node and "name" not in node and len(node.entries) == 1:
        (entry,) = node
        if isinstance(entry.value, Mapping) or is_empty(entry.value):
            tool = entry.value if isinstance(entry.value, Mapping) else Mapping({}, entry.line, entry.column)
            label = context.read_name(
                Scalar(entry.key, entry.line, entry.column), "a task's label", reserved=_RESERVED
            )
            return LabelledTask(label or f"task_{index}", _drop_second_name(context, tool, entry.key), entry)
    if (stray := _stray_label(context, node)) is not None:
        hint = f"indent them below `{stray.key}:`, or write `name: {stray.key}`"
        context.report("unknown-key", stray, f"the keys of the task `{stray.key}` stand beside it", hint)
        task_entries = {entry.key: entry for entry in node if entry is not stray}
        return LabelledTask(stray.key, Mapping(task_entries, node.line, node.column), stray)
    name = node.entries.get("name")
    if name is None or is_empty(name.value):
        return LabelledTask(f"task_{index}", _without_name(node), node)
    label = context.read_name(name.value, "a task's name", reserved=_RESERVED)
    return LabelledTask(label or f"task_{index}", _without_name(node), name.value)


_FORMS = "write `- name: LABEL` with `kind: KIND`, or `- LABEL: { kind: KIND }`"


def _drop_second_name(context: ReaderContext, tool: Mapping, label: str) -> Mapping:
    """A labelled task without a second name; where the tool has an input `name`, that is what it is."""
    kind = context.kinds.get(scalar_text(tool.get("kind")))
    if "name" not in tool or kind is None or "name" in fields_of(kind.inputs):
        return tool
    hint = f"the label is `{label}` already"
    context.report("unknown-key", tool.entries["name"], "the task is named twice", hint)
    return _without_name(tool)


def _stray_label(context: ReaderContext, node: Mapping) -> MappingEntry | None:
    """The label of `- fetch:` whose task was not indented below it."""
    kind = context.kinds.get(scalar_text(node.get("kind")))
    first = next(iter(node), None)
    if first is None or kind is None or "name" in node or not is_empty(first.value):
        return None
    known = {*fields_of(TaskShape), *fields_of(kind.inputs), *kind.spellings, *REFUSED_KEYS["TaskShape"]}
    return None if first.key in known else first


def _without_name(node: Mapping) -> Mapping:
    entries = {entry.key: entry for entry in node if entry.key != "name"}
    return Mapping(entries, node.line, node.column)
