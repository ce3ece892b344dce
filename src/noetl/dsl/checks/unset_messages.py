"""What is said of a name that is unset, with a shortest way on which it stays so, and what to do about it."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import assert_never

from noetl.dsl.checks.flow.name_reads import NameRead, NameScope, is_in_pipeline
from noetl.dsl.checks.flow.name_sources import NameSources, task_arg_paths
from noetl.dsl.checks.flow.pipeline_flow import PipelineFlow
from noetl.dsl.checks.flow.playbook_flow import PlaybookFlow
from noetl.dsl.document.context import ExpressionRole
from noetl.dsl.document.playbook import Playbook
from noetl.dsl.document.shape_check import did_you_mean
from noetl.expr.runtime.scope import BUILTIN_ITER_KEYS, NAMESPACES
from noetl.expr.use import Path

_COMPARED = 200
"""Most names that are compared: each comparison is quadratic in their length."""

_MOST_QUOTED = 6


def never_set_message(read: NameRead, playbook: Playbook, sources: NameSources) -> tuple[str, str]:
    """Message and hint for a name that nothing sets."""
    message = f"nothing sets `{_name_text(read, sources)}`"
    step, prefix = read.occurrence.part.step, "" if read.scope is NameScope.BARE else f"{read.scope.value}."
    local = sources.everywhere if read.tolerant else sources.of_step(step)
    match read.scope:
        case NameScope.CTX:
            known, fix = _dotted_paths(sources.ctx), "`set_ctx` sets it; or give it with the request"
        case NameScope.ARGS if step == playbook.entry:
            known, fix = _dotted_paths(local.args), "the execution begins here without `args`; use `workload`"
        case NameScope.ARGS:
            known, fix = _dotted_paths(local.args), f"add it to the `args` of the arcs to `{step}`"
        case NameScope.ITER:
            known, fix = (
                [*_dotted_paths(local.iter), *BUILTIN_ITER_KEYS],
                "`set_iter` in an earlier task sets it",
            )
        case NameScope.RUN:
            known, fix = _dotted_paths(local.run), "`set_run` in an earlier task sets it"
        case NameScope.BARE | NameScope.STEPS:
            known, fix = _bare_names(read, playbook, sources), _bare_fix(read, playbook, sources)
        case _:
            assert_never(read.scope)
    name = read.path[0] if read.scope is NameScope.BARE else _dotted_path(read)
    return message, _nearest_name_hint(prefix, name, known) or fix


def maybe_unset_message(read: NameRead, flow: PlaybookFlow, sources: NameSources) -> tuple[str, str]:
    """Message and hint for a name that some way leaves unset."""
    name = _name_text(read, sources)
    default = f"write `{name} | default(…)`"
    if _is_local(read, flow, sources):
        route = _tasks_without(flow, read)
        begins = f"when the pipeline begins with `{route[0]}`" if route else "when the step begins"
        fix = "set it in every task before, or "
    else:
        route = _steps_without(flow, read)
        begins = f"when the execution begins with `{route[0]}`"
        fix = _fix_on_route(read, flow, sources)
    when = f"when coming from {_quote_route(route)}" if len(route) > 1 else begins
    return f"`{name}` may be unset {when}", fix + default


def _fix_on_route(read: NameRead, flow: PlaybookFlow, sources: NameSources) -> str:
    head = read.path[0]
    if read.scope is NameScope.ARGS:
        return "give it on every arc there, or "
    if read.scope is NameScope.STEPS or (head in flow.number and (head,) not in sources.ctx):
        return f"`{head}` has not run on that way; "
    return "set it on every way there, or "


def _is_local(read: NameRead, flow: PlaybookFlow, sources: NameSources) -> bool:
    """Whether only the step itself can set the name."""
    if read.scope in (NameScope.ITER, NameScope.RUN):
        return True
    local = sources.of_step(read.occurrence.part.step)
    outside = read.path in sources.ctx or read.path in local.args or read.path[0] in flow.number
    return read.scope is NameScope.BARE and not outside


def _name_text(read: NameRead, sources: NameSources) -> str:
    """The part of the path that something should set."""
    if read.scope is NameScope.STEPS:
        return ".".join(("steps", *read.path[: 2 if read.path[1:2] == ("result",) else 1]))
    if read.scope is NameScope.BARE:
        return _dotted_path(read) if (read.path[0],) in sources.ctx else read.path[0]
    return f"{read.scope.value}.{_dotted_path(read)}"


def _dotted_path(read: NameRead) -> str:
    return ".".join(read.path)


def _dotted_paths(paths: Iterable[Path]) -> list[str]:
    return [".".join(path) for path in paths]


def _bare_names(read: NameRead, playbook: Playbook, sources: NameSources) -> list[str]:
    part = read.occurrence.part
    local = sources.everywhere if read.tolerant else sources.of_step(part.step)
    names = [*sources.workload, *(path[0] for path in (*sources.ctx, *local.args))]
    if read.tolerant or is_in_pipeline(read.occurrence):
        names += [*local.labels, *(path[0] for path in local.iter)]
    if is_in_pipeline(read.occurrence):
        names += [path[0] for path in task_arg_paths(playbook.steps[part.step].tasks[part.task])]
    return [*names, *playbook.steps, *NAMESPACES]


def _bare_fix(read: NameRead, playbook: Playbook, sources: NameSources) -> str:
    head, step = read.path[0], read.occurrence.part.step
    if head in sources.everywhere.labels:
        return f"`{head}` is a task: its result is seen in its own pipeline, after it ran"
    if step in ("", playbook.entry):
        return "declare it under `workload`"
    return f"declare it under `workload`, or pass it in the `args` of the arcs to `{step}`"


def _nearest_name_hint(prefix: str, name: str, known: Iterable[str]) -> str:
    """A hint with the name that was probably meant. Only names of about that length are compared."""
    candidates = [word for word in dict.fromkeys(known) if word != name and abs(len(word) - len(name)) <= 3]
    hint = did_you_mean(name, candidates[:_COMPARED])
    return hint.replace("`", f"`{prefix}", 1) if hint else ""


def _steps_without(flow: PlaybookFlow, read: NameRead) -> list[str]:
    """The steps from the entry to the one that reads the name, none of which sets it."""
    bit, lasting = flow.bits.bit_of(read), flow.bits.lasting_bit_of(read)
    last = flow.number[read.occurrence.part.step]
    came_from = {flow.entry: flow.entry}
    waiting = deque([flow.entry] if last != flow.entry else [])
    while waiting:
        node = waiting.popleft()
        for target, arc_flow in flow.outgoing_arcs[node]:
            if (arc_flow.sets | flow.join_sets[target] | flow.steps[target].begins) & lasting:
                continue
            if target == last and not arc_flow.args & bit:
                return [flow.steps[step].step.name for step in (*_path_to(came_from, node), last)]
            if target not in came_from:
                came_from[target] = node
                waiting.append(target)
    return [flow.steps[last].step.name]


def _tasks_without(flow: PlaybookFlow, read: NameRead) -> list[str]:
    """The tasks from the first to the one that reads the name, none of which sets it."""
    part = read.occurrence.part
    step_flow = flow.steps[flow.number[part.step]]
    labels = [task.label for task in step_flow.step.tasks]
    bit = flow.bits.bit_of(read)
    last = part.task if part.task >= 0 else len(labels)
    if part.role in (ExpressionRole.ARC_ARGS, ExpressionRole.ARC_WRITE):
        after_failure = all(choice.arc != part.arc for choice in step_flow.routes.succeeded)
        last = len(labels) + after_failure
    return [labels[node] for node in _shortest_path(step_flow.pipeline, bit, last) if node < len(labels)]


def _shortest_path(pipeline: PipelineFlow, bit: int, last: int) -> list[int]:
    came_from = {0: 0}
    waiting = deque([0])
    while waiting:
        node = waiting.popleft()
        if node == last:
            return list(_path_to(came_from, node))
        for target, sets in pipeline.edges[node] if node < len(pipeline.edges) else ():
            if target not in came_from and not sets & bit:
                came_from[target] = node
                waiting.append(target)
    return [last]


def _path_to(came_from: dict[int, int], node: int) -> Iterator[int]:
    """From the start to the node."""
    path = [node]
    while came_from[node] != node:
        node = came_from[node]
        path.append(node)
    return reversed(path)


def _quote_route(names: Sequence[str]) -> str:
    """The way in words; the middle of a long one is left out."""
    quoted = [f"`{name}`" for name in names]
    if len(quoted) > _MOST_QUOTED:
        quoted = [*quoted[:2], "…", *quoted[-3:]]
    return " → ".join(quoted)
