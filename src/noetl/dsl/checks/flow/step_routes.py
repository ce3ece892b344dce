"""Which arcs a step may take when it ends."""

from typing import NamedTuple

from noetl.dsl.document.guard_verdicts import FAILED, holds_on, reads_failure, terminal_events
from noetl.dsl.document.playbook import Step


class Choice(NamedTuple):
    """An arc by its position. `certain`: if the router comes to it, it is taken."""

    arc: int
    certain: bool


class Routes(NamedTuple):
    """The arcs that may be taken after a success and after a failure.

    An arc that does not ask how the step ended is taken to follow a success: whoever writes one step
    after the other means that. A failure that no arc asks for leads nowhere.
    """

    succeeded: tuple[Choice, ...]
    failed: tuple[Choice, ...]


def routes_of(step: Step) -> Routes:
    succeeded: list[Choice] = []
    failed: list[Choice] = []
    ends = terminal_events(step)
    open_ = set(ends)
    for position, arc in enumerate(step.arcs):
        verdicts = {event: holds_on(arc.when, event) for event in open_}
        on_success = verdicts.get(step.done_event, False)
        on_failure = verdicts.get(FAILED, False)
        if on_success is not False:
            succeeded.append(Choice(position, on_success is True))
        if on_failure is not False and (on_success is False or reads_failure(arc.when)):
            failed.append(Choice(position, on_failure is True))
        if step.exclusive:
            open_ -= {event for event, verdict in verdicts.items() if verdict is True}
    return Routes(tuple(succeeded), tuple(failed))
