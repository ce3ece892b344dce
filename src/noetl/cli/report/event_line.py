"""An event as one line for people, and the step that it belongs to. Likewise, whose line of a log it is."""

from typing import TypeAlias, assert_never

from noetl.cli.console import Paint, visible
from noetl.cli.format import first_line, local_time, pluralize
from noetl.engine.task_log import LogLine
from noetl.events import bodies as of
from noetl.events.bodies import EventBody
from noetl.events.event import Event
from noetl.events.event_kind import kind_of_body
from noetl.events.identifiers import run_id, token_id
from noetl.model.outcome import ErrorInfo

_RunEvent: TypeAlias = (
    of.StepScheduled
    | of.TokenClaimed
    | of.LeaseExpired
    | of.TaskStarted
    | of.TaskProcessed
    | of.LoopStarted
    | of.LoopIterationStarted
    | of.LoopIterationCompleted
    | of.RunSuspended
    | of.RunResumed
    | of.StepDone
    | of.StepFailed
    | of.LoopDone
    | of.StepCompletedByHand
    | of.StepSkipped
)
"""What happens to one run."""


class EventSteps:
    """The steps of runs and tokens. It must be shown all events of an execution, in order."""

    def __init__(self) -> None:
        self._steps: dict[str, str] = {}

    def step_of(self, event: Event) -> str:
        """The name of the event's step; empty if it concerns none."""
        body = event.body
        match body:
            case of.StepScheduled():
                self._steps[run_id(event.seq)] = body.step
                return body.step
            case of.TokenEnqueued():
                self._steps[token_id(event.seq)] = body.step
                return body.step
            case of.TokenParked() | of.TokenAdmitted() | of.TokenDiscarded():
                return self._steps.get(body.token, "")
            case _:
                return self._steps.get(getattr(body, "run", ""), "")


def event_line(event: Event, step: str, paint: Paint) -> str:
    """Number, time, name, step and what there is to say."""
    kind = kind_of_body(event.body)
    failed = kind.status_of(event.body) == "error"
    name = f"{kind.name:<26}"
    words = [step and visible(step), event_detail(event.body)]
    text = "  ".join(word for word in words if word)
    head = f"{paint('faint', f'{event.seq:>6}  {local_time(event.ts)}')}  "
    return (head + (paint("error", name) if failed else name) + "  " + text).rstrip()


def event_detail(body: EventBody) -> str:
    """What an event says beside its name and step, in a few words."""
    match body:
        case of.PlaybookExecutionRequested():
            return visible(body.path)
        case of.PlaybookRequestEvaluated():
            return _error_text(body.error) or "accepted"
        case of.WorkflowStarted() | of.TokenAdmitted():
            return ""
        case of.WorkflowFinished():
            return body.status
        case of.PlaybookProcessed():
            return f"{body.status} {_error_text(body.error)}".rstrip()
        case of.TokenEnqueued():
            return f"from {body.run}, arc {body.arc}" if body.run else ""
        case of.TokenParked():
            return body.mode if body.deadline is None else f"{body.mode} until {local_time(body.deadline)}"
        case of.TokenDiscarded():
            return body.reason
        case of.NextEvaluated():
            chosen = ", ".join(map(str, body.selected)) or "none"
            arcs = f"arcs {chosen} of {len(body.verdicts)}"
            return f"after {body.event}: {arcs} {_error_text(body.error)}".rstrip()
        case of.CtxPatched():
            paths = ", ".join(".".join((patch.scope, *patch.path)) for patch in body.patches)
            return visible(paths + _by_text(body.by))
        case of.SignalReceived():
            return visible(body.signal + _by_text(body.by))
        case of.SignalDropped():
            return visible(f"{body.signal}: {body.reason}")
        case of.CancelRequested():
            return (_error_text(body.error) or visible(body.reason)) + _by_text(body.by)
        case of.ExecutionPaused() | of.ExecutionResumed():
            return _by_text(body.by).strip()
        case of.ExecutionRetried() | of.IterationsRedriven():
            document = f", with {visible(body.file or 'another playbook')}" if body.hash else ""
            return (reopened_text(body) + document + _by_text(body.by)).strip()
        case of.ExecutionForked():
            return f"from {body.source} at {body.at}{_by_text(body.by)}"
        case _:
            return _run_detail(body)


def retried_text(body: of.ExecutionRetried) -> str:
    """What runs again, and what is taken back for it."""
    again, taken_back = (", ".join(map(visible, steps)) for steps in (body.steps, body.superseded))
    text = f"runs again: {again}" if again else "goes on where it stood"
    return text + (f"; what ran after the failure no longer counts: {taken_back}" if taken_back else "")


def reopened_text(body: of.ExecutionRetried | of.IterationsRedriven) -> str:
    """What runs again."""
    return retried_text(body) if isinstance(body, of.ExecutionRetried) else redriven_text(body)


def redriven_text(body: of.IterationsRedriven) -> str:
    """What runs again, and what behind it does then."""
    count = f"{body.iterations:,} failed iteration{'' if body.iterations == 1 else 's'}"
    behind = ", ".join(map(visible, body.steps))
    return f"runs again: {count}" + (f"; then, behind them: {behind}" if behind else "")


def _run_detail(body: _RunEvent) -> str:
    match body:
        case of.StepScheduled():
            return "final" if body.final else ""
        case of.TokenClaimed():
            return f"{_part_text(body)} by {visible(body.worker)}"
        case of.LeaseExpired():
            return _part_text(body)
        case of.TaskStarted():
            again = f", again after {pluralize(body.redelivery, 'lost attempt')}" if body.redelivery else ""
            return f"{_task_text(body)}{again}"
        case of.TaskProcessed():
            outcome = body.outcome
            verdict = "ok" if outcome.status == "ok" else _error_text(outcome.error)
            return f"{_task_text(body)}: {verdict}{_directive_text(body)}"
        case of.LoopStarted():
            return f"{body.total} items, {body.max_in_flight} at once"
        case of.LoopIterationStarted():
            return f"iteration {body.index}"
        case of.LoopIterationCompleted():
            return f"iteration {body.index}: {_error_text(body.error) or body.status}"
        case of.RunSuspended():
            until = f" until {local_time(body.until)}" if body.until is not None else ""
            return f"{body.reason} {visible(body.signal or body.child)}".rstrip() + until
        case of.RunResumed():
            return body.reason
        case of.StepDone():
            return ""
        case of.StepFailed():
            return (f"task {visible(body.task)}: " if body.task else "") + _error_text(body.error)
        case of.LoopDone():
            return f"{body.succeeded} succeeded, {body.failed} failed"
        case of.StepCompletedByHand() | of.StepSkipped():
            return _by_text(body.by).strip()
        case _:
            assert_never(body)


def log_origin(line: LogLine) -> str:
    """Who wrote it: `step/task`, the iteration of a loop, and which attempt if it is not the first."""
    origin = "/".join(part for part in (line.step, line.task) if part)
    if line.iteration is not None:
        origin += f"[{line.iteration}]"
    return f"{origin}#{line.attempt}" if line.attempt > 1 else origin


def _part_text(body: of.TokenClaimed | of.LeaseExpired) -> str:
    """What is claimed, or no more: a run, or a shard of it."""
    return f"{body.run} from iteration {body.shard}" if body.shard >= 0 else body.run


def _task_text(body: of.TaskStarted | of.TaskProcessed) -> str:
    words = visible(body.task)
    if body.iteration:
        words += f", iteration {body.iteration}"
    return words + (f", attempt {body.attempt}" if body.attempt > 1 else "")


def _directive_text(body: of.TaskProcessed) -> str:
    match body.do:
        case "continue":
            return ""
        case "retry":
            return " → retry" if body.retry_at is None else f" → retry at {local_time(body.retry_at)}"
        case "jump":
            return f" → {visible(body.to)}"
        case other:
            return f" → {other}"


def _error_text(error: ErrorInfo | None) -> str:
    return f"{error.kind}: {first_line(error.message)}" if error is not None else ""


def _by_text(who: str) -> str:
    return f" by {who}" if who else ""
