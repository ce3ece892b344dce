"""What is set where a name is read."""

from collections.abc import Sequence

from noetl.dsl.checks.flow.name_reads import NameRead
from noetl.dsl.checks.flow.name_sources import task_arg_paths
from noetl.dsl.checks.flow.playbook_flow import PlaybookFlow, StepFlow
from noetl.dsl.document.context import ExpressionRole
from noetl.dsl.document.playbook import Position, Write


def is_set(flow: PlaybookFlow, read: NameRead) -> bool:
    """Whether every way to the place sets the name."""
    bit = flow.bits.bit_of(read)
    return _bits_at(flow, read) & bit == bit


def _bits_at(flow: PlaybookFlow, read: NameRead) -> int:
    part = read.occurrence.part
    index = flow.number[part.step]
    step_flow = flow.steps[index]
    begun = flow.state[index]
    if part.task >= 0:
        return begun | _bits_in_pipeline(step_flow, read)
    match part.role:
        case ExpressionRole.STEP_WRITE:
            return (
                begun
                | step_flow.pipeline.done
                | step_flow.encoder.bits.step(part.step, succeeded=True)
                | _bits_of_earlier_writes(step_flow, step_flow.step.writes, read)
            )
        case ExpressionRole.ARC_ARGS | ExpressionRole.ARC_WRITE:
            taken = step_flow.arcs[part.arc]
            if taken is None:
                return flow.bits.all
            return (
                begun | taken | _bits_of_earlier_writes(step_flow, step_flow.step.arcs[part.arc].writes, read)
            )
        case _:
            return begun


def _bits_in_pipeline(step_flow: StepFlow, read: NameRead) -> int:
    part = read.occurrence.part
    task = step_flow.step.tasks[part.task]
    state = step_flow.pipeline.before[part.task]
    if part.role is not ExpressionRole.TASK_ARGS:
        for path in task_arg_paths(task):
            state |= step_flow.encoder.bits.arg(path)
    match part.role:
        case ExpressionRole.TASK_WRITE:
            return (
                state
                | step_flow.encoder.bits.label(task.label)
                | _bits_of_earlier_writes(step_flow, task.writes, read)
            )
        case ExpressionRole.POLICY | ExpressionRole.POLICY_WRITE:
            if step_flow.pipeline.matched is None:
                return state
            matched = step_flow.pipeline.matched[part.task].get(part.rule)
            if matched is None:
                return step_flow.encoder.bits.all
            return state | matched | _bits_of_earlier_writes(step_flow, task.thens[part.rule].writes, read)
        case _:
            return state


def _bits_of_earlier_writes(step_flow: StepFlow, writes: Sequence[Write], read: NameRead) -> int:
    """What the writes set that are made before the one whose value is read; all, if it is none of them."""
    write_position = read.occurrence.part.write
    # Fast path: a write whose first key differs cannot set the name, so leaving it out changes nothing.
    # Each of many writes may read names, and encoding all before it for each would be quadratic.
    return step_flow.encoder.write_bits(
        write
        for write in writes
        if write.path[0] == read.path[0]
        and (write_position is None or _order(write.position) < _order(write_position))
    )


def _order(position: Position) -> tuple[int, int]:
    return position.line, position.column
