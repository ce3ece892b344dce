"""What is set where a name is read."""

from collections.abc import Sequence

from noetl.dsl.checks.flow.pipeline import Way
from noetl.dsl.checks.flow.reads import Read
from noetl.dsl.checks.flow.sources import own_args
from noetl.dsl.checks.flow.steps import Flow, StepFlow, arc_sets
from noetl.dsl.playbook import Fail, Retry, Then, Write
from noetl.dsl.reader.context import Role, Site
from noetl.expr import Data, Expression, expressions_in


def is_set(flow: Flow, read: Read) -> bool:
    """Whether every way to the place sets the name."""
    wanted = flow.bits.of(read)
    return _state(flow, read) & wanted == wanted


def _state(flow: Flow, read: Read) -> int:
    site = read.site
    where = site.where
    position = flow.number[where.step]
    here = flow.steps[position]
    begun = flow.state[position]
    if where.task >= 0:
        return begun | _in_pipeline(here, site)
    match where.role:
        case Role.STEP_WRITE:
            earlier = here.writer.writes(_before(here.step.writes, site))
            return begun | here.pipeline.done | earlier
        case Role.ARC_ARGS | Role.ARC_WRITE:
            arc = here.step.arcs[where.arc]
            taken = arc_sets(here, where.arc)
            writes = arc.writes if where.role is Role.ARC_ARGS else _before(arc.writes, site)
            return flow.bits.all if taken is None else begun | taken | here.writer.writes(writes)
        case _:
            return begun


def _in_pipeline(here: StepFlow, site: Site) -> int:
    task = here.step.tasks[site.where.task]
    state = here.pipeline.before[site.where.task]
    if site.where.role is not Role.TASK_ARGS:
        for path in own_args(task):
            state |= here.writer.bits.arg(path)
    match site.where.role:
        case Role.TASK_WRITE:
            earlier = here.writer.writes(_before(task.writes, site))
            return state | here.writer.bits.label(task.label) | earlier
        case Role.POLICY | Role.POLICY_WRITE:
            if here.pipeline.ways is None:
                return state
            way = _way_of(here.pipeline.ways[site.where.task], site)
            if way is None or way.then is None:
                return here.writer.bits.all
            return state | way.sets | here.writer.writes(_before(way.then.writes, site))
        case _:
            return state


def _way_of(ways: Sequence[Way], site: Site) -> Way | None:
    """The way whose rule holds the expression; None if that rule never matches."""
    found = None
    for way in sorted((way for way in ways if way.then and _holds(way.then, site.expression)), key=_place):
        if found is None or _place(way) <= (site.scalar.line, site.scalar.column):
            found = way
    return found


def _place(way: Way) -> tuple[int, int]:
    return (way.then.place.line, way.then.place.column) if way.then else (0, 0)


def _holds(then: Then, expression: Expression) -> bool:
    values = [write.value for write in then.writes]
    if then.set_prev is not None:
        values.append(then.set_prev)
    match then.do:
        case Retry():
            return expression in (then.do.attempts, then.do.delay) or _is_in(expression, values)
        case Fail(message=message) if message is not None:
            values.append(message)
    return _is_in(expression, values)


def _is_in(expression: Expression, values: Sequence[Data]) -> bool:
    return any(expression == found for value in values for found in expressions_in(value))


def _before(writes: Sequence[Write], site: Site) -> Sequence[Write]:
    """The writes of one list that are made before the one that holds the site; all, if none does."""
    at = (site.scalar.line, site.scalar.column)
    earlier = sorted(
        (write for write in writes if (write.place.line, write.place.column) <= at),
        key=lambda write: (write.place.line, write.place.column),
    )
    for position in range(len(earlier) - 1, -1, -1):
        if _is_in(site.expression, [earlier[position].value]):
            return earlier[:position]
    return writes
