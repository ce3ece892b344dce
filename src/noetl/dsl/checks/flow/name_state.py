"""What is set where a name is read."""

from collections.abc import Sequence

from noetl.dsl.checks.flow.name_reads import NameRead
from noetl.dsl.checks.flow.name_sources import task_arg_paths
from noetl.dsl.checks.flow.playbook_flow import PlaybookFlow, StepFlow
from noetl.dsl.document.context import ExpressionRole
from noetl.dsl.document.playbook import Position, Write


def is_set(flow: PlaybookFlow, read: NameRead) -> bool:
    """Whether every way to the place sets the name."""
    wanted = flow.bits.bit_of(read)
    return _state(flow, read) & wanted == wanted


def _state(flow: PlaybookFlow, read: NameRead) -> int:
    where = read.occurrence.where
    position = flow.number[where.step]
    here = flow.steps[position]
    begun = flow.state[position]
    if where.task >= 0:
        return begun | _in_pipeline(here, read)
    match where.role:
        case ExpressionRole.STEP_WRITE:
            return begun | here.pipeline.done | _set_before(here, here.step.writes, read)
        case ExpressionRole.ARC_ARGS | ExpressionRole.ARC_WRITE:
            taken = here.arcs[where.arc]
            if taken is None:
                return flow.bits.all
            return begun | taken | _set_before(here, here.step.arcs[where.arc].writes, read)
        case _:
            return begun


def _in_pipeline(here: StepFlow, read: NameRead) -> int:
    where = read.occurrence.where
    task = here.step.tasks[where.task]
    state = here.pipeline.before[where.task]
    if where.role is not ExpressionRole.TASK_ARGS:
        for path in task_arg_paths(task):
            state |= here.writer.bits.arg(path)
    match where.role:
        case ExpressionRole.TASK_WRITE:
            return state | here.writer.bits.label(task.label) | _set_before(here, task.writes, read)
        case ExpressionRole.POLICY | ExpressionRole.POLICY_WRITE:
            if here.pipeline.matched is None:
                return state
            matched = here.pipeline.matched[where.task].get(where.rule)
            if matched is None:
                return here.writer.bits.all
            return state | matched | _set_before(here, task.thens[where.rule].writes, read)
        case _:
            return state


def _set_before(here: StepFlow, writes: Sequence[Write], read: NameRead) -> int:
    """What the writes set that are made before the one whose value is read; all, if it is none of them.

    Only those that could set the name: a list of writes may be long, and each of them read names.
    """
    holder = read.occurrence.where.write
    return here.writer.write_bits(
        write
        for write in writes
        if write.path[0] == read.path[0] and (holder is None or _order(write.position) < _order(holder))
    )


def _order(place: Position) -> tuple[int, int]:
    return place.line, place.column
