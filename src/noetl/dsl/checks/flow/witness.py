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
    wanted, lasting = flow.bits.bit_of(read), flow.bits.lasting_bit_of(read)
    last = flow.number[read.occurrence.where.step]
    came_from = {flow.entry: flow.entry}
    waiting = deque([flow.entry] if last != flow.entry else [])
    while waiting:
        node = waiting.popleft()
        for target, link in flow.leaving[node]:
            if (link.sets | flow.gathered[target] | flow.steps[target].begins) & lasting:
                continue
            if target == last and not link.args & wanted:
                return [flow.steps[step].step.name for step in (*_trail(came_from, node), last)]
            if target not in came_from:
                came_from[target] = node
                waiting.append(target)
    return [flow.steps[last].step.name]


def tasks_without(flow: PlaybookFlow, read: NameRead) -> list[str]:
    """The tasks from the first to the one that reads the name, none of which sets it."""
    where = read.occurrence.where
    here = flow.steps[flow.number[where.step]]
    labels = [task.label for task in here.step.tasks]
    wanted = flow.bits.bit_of(read)
    last = where.task if where.task >= 0 else len(labels)
    if where.role in (ExpressionRole.ARC_ARGS, ExpressionRole.ARC_WRITE):
        after_failure = all(choice.arc != where.arc for choice in here.routes.succeeded)
        last = len(labels) + after_failure
    return [labels[node] for node in _walk(here.pipeline, wanted, last) if node < len(labels)]


def _walk(pipeline: PipelineFlow, wanted: int, last: int) -> list[int]:
    came_from = {0: 0}
    waiting = deque([0])
    while waiting:
        node = waiting.popleft()
        if node == last:
            return list(_trail(came_from, node))
        for target, sets in pipeline.edges[node] if node < len(pipeline.edges) else ():
            if target not in came_from and not sets & wanted:
                came_from[target] = node
                waiting.append(target)
    return [last]


def _trail(came_from: dict[int, int], node: int) -> Iterator[int]:
    """From the start to the node."""
    trail = [node]
    while came_from[node] != node:
        node = came_from[node]
        trail.append(node)
    return reversed(trail)


def quote_route(names: Sequence[str]) -> str:
    """The way in words; the middle of a long one is left out."""
    quoted = [f"`{name}`" for name in names]
    if len(quoted) > _SHOWN:
        quoted = [*quoted[:2], "…", *quoted[-3:]]
    return " → ".join(quoted)
