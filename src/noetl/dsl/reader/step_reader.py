"""Steps: admission, join, loop, router."""

from collections.abc import Mapping as AbstractMapping

from noetl.dsl.document.context import ExpressionRole, PlaybookPart
from noetl.dsl.document.playbook import Arc, Join, Loop, Router, Step
from noetl.dsl.document.shape_check import describe_node, fields_of, is_empty
from noetl.dsl.document.shapes import REFUSED_KEYS, REFUSED_NEXT, LoopSpecShape, RouterShape, StepSpecShape
from noetl.dsl.document.source import Mapping, MappingEntry, Node, Scalar, Sequence, node_value
from noetl.dsl.document.spec import inheritable_spec_fields
from noetl.dsl.reader.reader_context import ReaderContext, as_mapping, position_of, scalar_text
from noetl.dsl.reader.rule_reader import check_unused_rules, read_admission, read_integer, read_number
from noetl.dsl.reader.task_forms import LabelledTask, label_tasks
from noetl.dsl.reader.task_reader import EnclosingScope, move_output_select, read_pipeline
from noetl.expr.runtime.scope import BUILTIN_ITER_KEYS, ITERATOR_NAMESPACES


def read_step(
    context: ReaderContext,
    node: Mapping,
    executor_spec: Mapping | None,
    workbook: AbstractMapping[str, LabelledTask],
) -> tuple[Step, bool]:
    """One step, in shape but for its spec, its loop's spec and its tasks, and whether it has a name."""
    node = move_output_select(node)
    name = context.read_name(node.get("step"), "a step's name")
    at = node.entries["step"].value if "step" in node else node
    label = name or scalar_text(node.get("step"))
    spec = _check_scope_spec(context, as_mapping(node.get("spec")), "step")
    loop_node = as_mapping(node.get("loop"))
    loop_spec = _check_scope_spec(context, as_mapping(loop_node.get("spec")) if loop_node else None, "loop")
    policy = as_mapping(spec.get("policy")) if spec else None
    tool = node.get("tool")
    tasks = label_tasks(context, tool) if tool is not None else []
    enclosing = EnclosingScope(label, (executor_spec, spec, loop_spec), workbook)
    if tool is None and "next" not in node:
        context.report(
            "empty-step", at, f"the step `{label}` needs `tool` or `next`", "an end is `tool: { kind: noop }`"
        )
    if loop_node is not None and tool is None:
        context.report("loop-without-tool", loop_node, "the loop has no pipeline to run", "add `tool`")
    admit = as_mapping(policy.get("admit")) if policy else None
    args_node = _read_args(context, node)
    step = Step(
        name=label,
        position=position_of(at),
        args=context.read_values(args_node, PlaybookPart(ExpressionRole.STEP_ARGS, label)),
        admit=read_admission(context, admit, label) if admit else None,
        join=_read_join(policy.get("join") if policy else None),
        loop=_read_loop(context, loop_node, loop_spec, policy, label) if loop_node else None,
        tasks=read_pipeline(context, tasks, enclosing),
        router=_read_router(context, node.entries.get("next"), label),
        writes=context.read_prefixed_writes(node.get("set"), PlaybookPart(ExpressionRole.STEP_WRITE, label)),
        spec={} if spec is None else {entry.key: node_value(entry.value) for entry in spec},
        timeout=read_number(
            context, spec.get("timeout") if spec else None, PlaybookPart(ExpressionRole.SPEC, label)
        ),
        desc=scalar_text(node.get("desc")),
    )
    for scope in (spec, loop_spec):
        check_unused_rules(context, scope, [task.label for task in tasks])
    return step, name is not None


def _read_args(context: ReaderContext, node: Mapping) -> Mapping | None:
    """`args`, or its other spelling `input`."""
    if "args" in node and "input" in node:
        context.report("duplicate-key", node.entries["input"], "`input` and `args` say the same thing")
    return as_mapping(node.get("args")) or as_mapping(node.get("input"))


def _check_scope_spec(context: ReaderContext, spec: Mapping | None, scope: str) -> Mapping | None:
    """A step's or a loop's spec: its own keys and those that tasks inherit."""
    if spec is None:
        return None
    shape = StepSpecShape if scope == "step" else LoopSpecShape
    return context.shape_checker.check_fields(
        spec,
        fields_of(shape),
        f"the spec of a {scope}",
        templated=inheritable_spec_fields(context.kinds),
        moved=REFUSED_KEYS.get(shape.__name__, {}),
    )


def _read_join(node: Node | None) -> Join | None:
    if isinstance(node, Mapping):
        count = node.get("count")
        if isinstance(count, Scalar) and isinstance(count.value, int):
            return Join("count", position_of(node), count.value)
        return None
    if isinstance(node, Scalar):
        return Join(scalar_text(node), position_of(node))  # type: ignore[arg-type]  # the shape allows two alone
    return None


def _read_loop(
    context: ReaderContext, node: Mapping, spec: Mapping | None, step_policy: Mapping | None, step: str
) -> Loop | None:
    part = PlaybookPart(ExpressionRole.LOOP, step)
    items, iterator = node.get("in"), node.get("iterator")
    if items is not None and isinstance(items, Scalar) and not _can_be_collection(items):
        message = f"`in` must be a collection, not {describe_node(items)}"
        context.report("wrong-type", items, message, "write an expression, a list or a mapping")
    name = context.read_name(iterator, "an iterator", reserved=BUILTIN_ITER_KEYS, allowed=ITERATOR_NAMESPACES)
    if items is None or name is None:
        return None
    knobs = spec or Mapping({}, node.line, node.column)
    policy = as_mapping(knobs.get("policy"))
    failure = (as_mapping(policy.get("failure")) if policy else None) or (
        as_mapping(step_policy.get("failure")) if step_policy else None
    )
    reduce = as_mapping(knobs.get("reduce"))
    for entry in reduce or ():
        context.reducers[step, _reducer_path(entry.key)] = position_of(entry)
    max_in_flight = read_integer(context, knobs.get("max_in_flight"), part)
    window = knobs.get("window")
    return Loop(
        items=context.read_template(items, part),
        iterator=name,
        position=position_of(node),
        mode=scalar_text(knobs.get("mode")) or "sequential",  # type: ignore[arg-type]  # in shape
        max_in_flight=10 if max_in_flight is None else max_in_flight,
        window=int(scalar_text(window)) if window is not None else 1000,
        placement=scalar_text(policy.get("exec") if policy else None) or "local",  # type: ignore[arg-type]  # in shape
        failure=scalar_text(failure.get("mode") if failure else None) or "fail_fast",  # type: ignore[arg-type]  # in shape
        reduce={_reducer_path(entry.key): scalar_text(entry.value) for entry in reduce} if reduce else {},  # type: ignore[misc]  # in shape
        desc=scalar_text(node.get("desc")),
    )


def _can_be_collection(node: Scalar) -> bool:
    """Text may be an expression or a JSON list or mapping; numbers and `true` cannot."""
    return isinstance(node.value, str) and (node.value.strip()[:1] in ("[", "{"))


def _reducer_path(key: str) -> str:
    """A reducer's key: bare ones mean ctx."""
    return key if key.startswith(("ctx.", "run.")) else f"ctx.{key}"


def _read_router(context: ReaderContext, entry: MappingEntry | None, step: str) -> Router | None:
    if entry is None:
        return None
    node, arcs = entry.value, list[Arc]()
    with context.mark_unreadable(PlaybookPart(ExpressionRole.ARC, step)):
        if not isinstance(node, Mapping):
            context.report(REFUSED_NEXT.code, entry, REFUSED_NEXT.message, REFUSED_NEXT.hint)
            return Router((), position_of(entry))
        shaped = context.shape_checker.check_struct(node, RouterShape, "`next`") or node
        arcs_node = shaped.get("arcs")
        for arc in arcs_node.items if isinstance(arcs_node, Sequence) else ():
            if isinstance(arc, Mapping) and "step" in arc:
                arcs.append(_read_arc(context, arc, step, len(arcs)))
    spec = as_mapping(shaped.get("spec"))
    mode = scalar_text(spec.get("mode") if spec else None) or "exclusive"
    return Router(tuple(arcs), position_of(node), mode)  # type: ignore[arg-type]  # in shape


def _read_arc(context: ReaderContext, node: Mapping, step: str, index: int) -> Arc:
    part = PlaybookPart(ExpressionRole.ARC, step, arc=index)
    when = node.get("when")
    spec = as_mapping(node.get("spec"))
    args = context.read_values(as_mapping(node.get("args")), part._replace(role=ExpressionRole.ARC_ARGS))
    writes = context.read_prefixed_writes(
        node.get("set"), part._replace(role=ExpressionRole.ARC_WRITE), bare="args"
    )
    return Arc(
        step=scalar_text(node.get("step")),
        position=position_of(node.entries["step"].value),
        when=True if when is None or is_empty(when) else context.read_guard(when, part),
        args={**args, **{".".join(write.path): write.value for write in writes if write.scope == "args"}},
        writes=tuple(write for write in writes if write.scope != "args"),
        spec={} if spec is None else {entry.key: node_value(entry.value) for entry in spec},
        desc=scalar_text(node.get("desc")),
    )
