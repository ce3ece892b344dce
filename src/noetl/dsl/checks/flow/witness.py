"""A shortest way on which a name stays unset."""

from collections import deque
from collections.abc import Iterator, Sequence

from noetl.dsl.checks.flow.name_reads import NameRead
from noetl.dsl.checks.flow.pipeline_flow import PipelineFlow
from noetl.dsl.checks.flow.playbook_flow import PlaybookFlow
from noetl.dsl.document.context import ExpressionRole

_SHOWN = 6


def steps_without(flow: PlaybookFlow, read: NameRead) -> list[str]:
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


def tasks_without(flow: PlaybookFlow, read: NameRead) -> list[str]:
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


def quote_route(names: Sequence[str]) -> str:
    """The way in words; the middle of a long one is left out."""
    quoted = [f"`{name}`" for name in names]
    if len(quoted) > _SHOWN:
        quoted = [*quoted[:2], "…", *quoted[-3:]]
    return " → ".join(quoted)
