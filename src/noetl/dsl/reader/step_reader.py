"""Steps: admission, join, loop, router."""

from collections.abc import Mapping as AbstractMapping

from noetl.dsl.document.playbook import Arc, Join, Loop, Router, Step
from noetl.dsl.document.shape_check import fields_of, is_empty, kind_of
from noetl.dsl.document.shapes import (
    DRAFT_NEXT,
    MOVED,
    LoopSpecShape,
    RouterShape,
    StepSpecShape,
)
from noetl.dsl.document.source import Entry, Mapping, Node, Scalar, Sequence, plain
from noetl.dsl.reader.reader_context import Context, Role, Where, mapping_of, place_of, text_of
from noetl.dsl.reader.rule_reader import check_unused_rules, number, read_admission, whole_number
from noetl.dsl.reader.task_forms import Labelled, label_tasks
from noetl.dsl.reader.task_reader import Surroundings, inheritable_fields, read_pipeline, with_selection
from noetl.expr import BUILTIN_ITER


def read_step(
    context: Context,
    node: Mapping,
    executor_spec: Mapping | None,
    workbook: AbstractMapping[str, Labelled],
) -> tuple[Step, bool]:
    """One step, in shape but for its spec, its loop's spec and its tasks, and whether it has a name."""
    node = with_selection(node)
    name = context.name(node.get("step"), "a step's name")
    at = node.entries["step"].value if "step" in node else node
    label = name or text_of(node.get("step"))
    spec = _scope_spec(context, mapping_of(node.get("spec")), "step")
    loop_node = mapping_of(node.get("loop"))
    loop_spec = _scope_spec(context, mapping_of(loop_node.get("spec")) if loop_node else None, "loop")
    policy = mapping_of(spec.get("policy")) if spec else None
    tool = node.get("tool")
    tasks = label_tasks(context, tool) if tool is not None else []
    around = Surroundings(label, (executor_spec, spec, loop_spec), workbook)
    if tool is None and "next" not in node:
        context.report(
            "empty-step", at, f"the step `{label}` needs `tool` or `next`", "an end is `tool: { kind: noop }`"
        )
    if loop_node is not None and tool is None:
        context.report("loop-without-tool", loop_node, "the loop has no pipeline to run", "add `tool`")
    admit = mapping_of(policy.get("admit")) if policy else None
    args_node = _either(context, node)
    step = Step(
        name=label,
        place=place_of(at),
        args=context.values(args_node, Where(Role.STEP_ARGS, label)),
        admit=read_admission(context, admit, label) if admit else None,
        join=_join(policy.get("join") if policy else None),
        loop=_loop(context, loop_node, loop_spec, policy, label) if loop_node else None,
        tasks=read_pipeline(context, tasks, around),
        router=_router(context, node.entries.get("next"), label),
        writes=context.prefixed_writes(node.get("set"), Where(Role.STEP_WRITE, label)),
        spec={} if spec is None else {entry.key: plain(entry.value) for entry in spec},
        timeout=number(context, spec.get("timeout") if spec else None, Where(Role.SPEC, label)),
        desc=text_of(node.get("desc")),
    )
    for scope in (spec, loop_spec):
        check_unused_rules(context, scope, [task.label for task in tasks])
    return step, name is not None


def _either(context: Context, node: Mapping) -> Mapping | None:
    """`args`, or its other spelling `input`."""
    if "args" in node and "input" in node:
        context.report("duplicate-key", node.entries["input"], "`input` and `args` say the same thing")
    return mapping_of(node.get("args")) or mapping_of(node.get("input"))


def _scope_spec(context: Context, spec: Mapping | None, scope: str) -> Mapping | None:
    """A step's or a loop's spec: its own keys and those that tasks inherit."""
    if spec is None:
        return None
    own = StepSpecShape if scope == "step" else LoopSpecShape
    return context.shaper.fields(
        spec,
        fields_of(own),
        f"the spec of a {scope}",
        templated=inheritable_fields(context),
        moved=MOVED.get(own.__name__, {}),
    )


def _join(node: Node | None) -> Join | None:
    if isinstance(node, Mapping):
        count = node.get("count")
        if isinstance(count, Scalar) and isinstance(count.value, int):
            return Join("count", place_of(node), count.value)
        return None
    if isinstance(node, Scalar):
        return Join(text_of(node), place_of(node))  # type: ignore[arg-type]  # the shape allows two alone
    return None


def _loop(
    context: Context, node: Mapping, spec: Mapping | None, step_policy: Mapping | None, step: str
) -> Loop | None:
    where = Where(Role.LOOP, step)
    items, iterator = node.get("in"), node.get("iterator")
    if items is not None and isinstance(items, Scalar) and not _can_be_collection(items):
        message = f"`in` must be a collection, not {kind_of(items)}"
        context.report("wrong-type", items, message, "write an expression, a list or a mapping")
    name = context.name(iterator, "an iterator", reserved=BUILTIN_ITER)
    if items is None or name is None:
        return None
    knobs = spec or Mapping({}, node.line, node.column)
    policy = mapping_of(knobs.get("policy"))
    failure = (mapping_of(policy.get("failure")) if policy else None) or (
        mapping_of(step_policy.get("failure")) if step_policy else None
    )
    reduce = mapping_of(knobs.get("reduce"))
    for entry in reduce or ():
        context.reducers[step, _scoped(entry.key)] = place_of(entry)
    max_in_flight = whole_number(context, knobs.get("max_in_flight"), where)
    window = knobs.get("window")
    return Loop(
        items=context.data(items, where),
        iterator=name,
        place=place_of(node),
        mode=text_of(knobs.get("mode")) or "sequential",  # type: ignore[arg-type]  # in shape
        max_in_flight=10 if max_in_flight is None else max_in_flight,
        window=int(text_of(window)) if window is not None else 1000,
        placement=text_of(policy.get("exec") if policy else None) or "local",  # type: ignore[arg-type]
        failure=text_of(failure.get("mode") if failure else None) or "fail_fast",  # type: ignore[arg-type]
        reduce={_scoped(entry.key): text_of(entry.value) for entry in reduce} if reduce else {},  # type: ignore[misc]
        desc=text_of(node.get("desc")),
    )


def _can_be_collection(node: Scalar) -> bool:
    """Text may be an expression or a JSON list or mapping; numbers and `true` cannot."""
    return isinstance(node.value, str) and (node.value.strip()[:1] in ("[", "{"))


def _scoped(key: str) -> str:
    """A reducer's key: bare ones mean ctx."""
    return key if key.startswith(("ctx.", "run.")) else f"ctx.{key}"


def _router(context: Context, entry: Entry | None, step: str) -> Router | None:
    if entry is None:
        return None
    node, arcs = entry.value, list[Arc]()
    with context.noting_faults(Where(Role.ARC, step)):
        if not isinstance(node, Mapping):
            context.report(DRAFT_NEXT.code, entry, DRAFT_NEXT.message, DRAFT_NEXT.hint)
            return Router((), place_of(entry))
        shaped = context.shaper.struct(node, RouterShape, "`next`") or node
        arcs_node = shaped.get("arcs")
        for arc in arcs_node.items if isinstance(arcs_node, Sequence) else ():
            if isinstance(arc, Mapping) and "step" in arc:
                arcs.append(_arc(context, arc, step, len(arcs)))
    spec = mapping_of(shaped.get("spec"))
    mode = text_of(spec.get("mode") if spec else None) or "exclusive"
    return Router(tuple(arcs), place_of(node), mode)  # type: ignore[arg-type]  # in shape


def _arc(context: Context, node: Mapping, step: str, position: int) -> Arc:
    where = Where(Role.ARC, step, arc=position)
    when = node.get("when")
    spec = mapping_of(node.get("spec"))
    args = context.values(mapping_of(node.get("args")), where._replace(role=Role.ARC_ARGS))
    writes = context.prefixed_writes(node.get("set"), where._replace(role=Role.ARC_WRITE), bare="args")
    return Arc(
        step=text_of(node.get("step")),
        place=place_of(node.entries["step"].value),
        when=True if when is None or is_empty(when) else context.guard(when, where),
        args={**args, **{".".join(write.path): write.value for write in writes if write.scope == "args"}},
        writes=tuple(write for write in writes if write.scope != "args"),
        spec={} if spec is None else {entry.key: plain(entry.value) for entry in spec},
        desc=text_of(node.get("desc")),
    )
