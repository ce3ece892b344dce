"""What is set where a name is read."""

from collections.abc import Sequence

from noetl.dsl.checks.flow.name_reads import Read
from noetl.dsl.checks.flow.name_sources import own_args
from noetl.dsl.checks.flow.playbook_flow import Flow, StepFlow
from noetl.dsl.document.playbook import Place, Write
from noetl.dsl.reader.reader_context import Role


def is_set(flow: Flow, read: Read) -> bool:
    """Whether every way to the place sets the name."""
    wanted = flow.bits.of(read)
    return _state(flow, read) & wanted == wanted


def _state(flow: Flow, read: Read) -> int:
    where = read.site.where
    position = flow.number[where.step]
    here = flow.steps[position]
    begun = flow.state[position]
    if where.task >= 0:
        return begun | _in_pipeline(here, read)
    match where.role:
        case Role.STEP_WRITE:
            return begun | here.pipeline.done | _set_before(here, here.step.writes, read)
        case Role.ARC_ARGS | Role.ARC_WRITE:
            taken = here.arcs[where.arc]
            if taken is None:
                return flow.bits.all
            return begun | taken | _set_before(here, here.step.arcs[where.arc].writes, read)
        case _:
            return begun


def _in_pipeline(here: StepFlow, read: Read) -> int:
    where = read.site.where
    task = here.step.tasks[where.task]
    state = here.pipeline.before[where.task]
    if where.role is not Role.TASK_ARGS:
        for path in own_args(task):
            state |= here.writer.bits.arg(path)
    match where.role:
        case Role.TASK_WRITE:
            return state | here.writer.bits.label(task.label) | _set_before(here, task.writes, read)
        case Role.POLICY | Role.POLICY_WRITE:
            if here.pipeline.matched is None:
                return state
            matched = here.pipeline.matched[where.task].get(where.rule)
            if matched is None:
                return here.writer.bits.all
            return state | matched | _set_before(here, task.thens[where.rule].writes, read)
        case _:
            return state


def _set_before(here: StepFlow, writes: Sequence[Write], read: Read) -> int:
    """What the writes set that are made before the one whose value is read; all, if it is none of them.

    Only those that could set the name: a list of writes may be long, and each of them read names.
    """
    holder = read.site.where.write
    return here.writer.writes(
        write
        for write in writes
        if write.path[0] == read.path[0] and (holder is None or _order(write.place) < _order(holder))
    )


def _order(place: Place) -> tuple[int, int]:
    return place.line, place.column
