"""Which arcs a step may take when it ends."""

from typing import NamedTuple

from noetl.dsl.document.guard_verdicts import FAILED, holds_on, terminal_events
from noetl.dsl.document.playbook import Step


class ArcChoice(NamedTuple):
    """An arc by its position. `certain`: if the router comes to it, it is taken."""

    arc: int
    certain: bool


class StepRoutes(NamedTuple):
    """The arcs that may be taken after a success and after a failure.

    An arc that does not ask how the step ended is taken to follow a success: whoever writes one step
    after the other means that. A failure that no arc asks for leads nowhere.
    """

    succeeded: tuple[ArcChoice, ...]
    failed: tuple[ArcChoice, ...]


def step_routes(step: Step) -> StepRoutes:
    succeeded: list[ArcChoice] = []
    failed: list[ArcChoice] = []
    ends = terminal_events(step)
    open_events = set(ends)
    for index, arc in enumerate(step.arcs):
        verdicts = {event: holds_on(arc.when, event) for event in open_events}
        on_success = verdicts.get(step.done_event, False)
        on_failure = verdicts.get(FAILED, False)
        if on_success is not False:
            succeeded.append(ArcChoice(index, on_success is True))
        if on_failure is not False and (on_success is False or arc.handles_failure):
            failed.append(ArcChoice(index, on_failure is True))
        if step.is_exclusive:
            open_events -= {event for event, verdict in verdicts.items() if verdict is True}
    return StepRoutes(tuple(succeeded), tuple(failed))
