"""What workers report, checked before it is recorded."""

from typing import get_args

from noetl.events.bodies import EventBody, RunResumed, RunSuspended
from noetl.kernel.errors import NotOwner, Refused
from noetl.kernel.net.commands import Report
from noetl.kernel.state.execution_state import ExecutionState
from noetl.kernel.state.run_fold import RUN_FOLDS, RunEnd

RUN_ENDS: frozenset[type] = frozenset(get_args(RunEnd))
REPORTED_INSIDE = frozenset(RUN_FOLDS) - {RunResumed}
"""What a worker reports of a run that goes on. That it is resumed is for the server to say."""
REPORTABLE = REPORTED_INSIDE | RUN_ENDS


def decide_report(state: ExecutionState, command: Report) -> list[EventBody]:
    """The report's events, or none if they are recorded already. Only the last may end the run.

    A run that is paused too late is resumed at once.
    """
    run = state.runs.get(command.run)
    if run is None or run.phase != "claimed" or run.fence != command.fence:
        raise NotOwner(f"{command.run} is not owned under fence {command.fence}")
    if command.report_no + len(command.bodies) <= run.reported:
        return []
    if command.report_no != run.reported:
        raise Refused(f"report {command.report_no} of {run.id} came before report {run.reported}")
    last = command.bodies[-1]
    for body in command.bodies:
        kind = type(body)
        if kind not in REPORTED_INSIDE and not (body is last and kind in RUN_ENDS):
            raise Refused(f"a worker does not report {kind.__name__} here")
        if body.run != run.id:  # type: ignore[union-attr]  # all of these have it
            raise Refused(f"{kind.__name__} is not about {run.id}")
    bodies: list[EventBody] = list(command.bodies)
    match bodies[-1]:
        case RunSuspended(reason="pause") if not state.paused:
            # The execution went on before this came, and nobody would wake the run.
            bodies.append(RunResumed(run=run.id, reason="resume"))
        case _:
            pass
    return bodies
