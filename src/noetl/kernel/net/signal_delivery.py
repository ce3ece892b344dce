"""Signals: who gets one, and what becomes of one that nobody can use."""

from typing import NamedTuple

from noetl.events.bodies import EventBody, Patch, RunResumed, SignalDropped, SignalReceived
from noetl.kernel.errors import Refused
from noetl.kernel.net.commands import Signal
from noetl.kernel.net.operations import require_active, require_room_in_ctx
from noetl.kernel.pipeline.waits import attempt_id
from noetl.kernel.state.execution_state import ExecutionState
from noetl.kernel.state.run_state import Frame, RunState
from noetl.model.reference import escape
from noetl.model.wait_question import WaitQuestion


class OpenWait(NamedTuple):
    """A task that waits for a signal."""

    run: RunState
    frame: Frame

    @property
    def id(self) -> str:
        """The task run, as an answer names it."""
        return attempt_id(self.run, self.frame)


def open_waits(state: ExecutionState, signal: str) -> list[OpenWait]:
    """Those that wait for a signal, who came first first."""
    waits = []
    for listener in state.listeners.get(signal, ()):
        run_id, _, iteration = listener.partition("/")
        run = state.runs[run_id]
        waits.append(OpenWait(run, run.frames[int(iteration)]))
    return waits


def decide_signal(state: ExecutionState, command: Signal) -> list[EventBody]:
    """Refused if somebody waits for it whom it does not fit. What nobody waits for yet is kept."""
    require_active(state)
    wait = _chosen_wait(state, command)
    payload = escape(command.payload)
    require_room_in_ctx(state, Patch(scope="ctx", path=("signals", command.signal), value=payload))
    return [
        SignalReceived(
            signal=command.signal, payload=payload, by=command.by, wait=wait, by_admin=command.by_admin
        )
    ]


def decide_delivery(state: ExecutionState, signal: str) -> RunResumed | SignalDropped:
    """The oldest signal of a name to the one it is for, else to the first that it fits."""
    queued, waits = state.signals[signal][0], open_waits(state, signal)
    # One that names its wait was looked at when it came, whole; it may be a reference by now.
    chosen = [wait for wait in waits if wait.id == queued.wait]
    problems: list[str] = []
    for wait in chosen or waits:
        problem = "" if chosen else _problem_of(wait, queued.payload, queued.by, is_admin=queued.by_admin)
        if not problem:
            iteration = wait.frame.index
            return RunResumed(run=wait.run.id, reason="signal", iteration=iteration, payload=queued.payload)
        problems.append(problem)
    return SignalDropped(signal=signal, reason=problems[0], wait=waits[0].id)


def _chosen_wait(state: ExecutionState, command: Signal) -> str:
    """The task run that gets a signal; empty for the first that waits for it, then. Raises Refused."""
    waits = open_waits(state, command.signal)
    if command.wait:
        waits = [wait for wait in waits if wait.id == command.wait]
        if not waits:
            raise Refused(f"no task run `{command.wait}` waits for the signal `{command.signal}`")
    problems: list[str] = []
    for wait in waits:
        problem = _problem_of(wait, command.payload, command.by, is_admin=command.by_admin)
        if not problem:
            return wait.id if command.wait or _question_of(wait) is not None else ""
        problems.append(problem)
    if problems:
        raise Refused(f"the answer does not fit: {problems[0]}")
    return ""


def _question_of(wait: OpenWait) -> WaitQuestion | None:
    return wait.frame.suspension.question if wait.frame.suspension is not None else None


def _problem_of(wait: OpenWait, answer: object, by: str, *, is_admin: bool) -> str:
    question = _question_of(wait)
    if question is None:
        return ""
    return question.refusal_of(by, is_admin=is_admin) or question.misfit_of(answer)
