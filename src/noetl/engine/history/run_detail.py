"""One run of an execution: its iterations, a page at a time, and their attempts."""

from msgspec.structs import replace

from noetl.engine.history.read import RecordedHistory
from noetl.engine.history.run_bars import RunTimeline
from noetl.events.bodies import (
    ExecutionRetried,
    IterationsRedriven,
    LoopIterationCompleted,
    LoopIterationStarted,
    TaskProcessed,
    TaskStarted,
)
from noetl.events.event import Event
from noetl.kernel.event_position import position_of_rule, task_labelled
from noetl.kernel.expression_reads import truncate_value
from noetl.kernel.plan import StepPlan
from noetl.model.secret import printable_value
from noetl.ports.execution_views import AttemptBar, IterationBar, RunBar, RunDetail


def run_detail(history: RecordedHistory, run: str, at: int, offset: int, limit: int) -> RunDetail:
    """The run with the iterations from `offset` on. Raises KeyError if it has not begun by event `at`."""
    timeline = RunTimeline(history, at)
    clock = timeline.clocks[run]
    bar = clock.bar(timeline.state.last_ts)
    notes = _RunNotebook(clock.run.step)
    for event in history.events[clock.seq : at]:
        if getattr(event.body, "run", "") == run or run in getattr(event.body, "runs", ()):
            notes.note(event)
    iterations = [_whole_run(bar)] if bar.loop is None else list(notes.iterations.values())
    following = offset + limit
    chosen = iterations[offset:following]
    indices = {iteration.index for iteration in chosen}
    return RunDetail(
        execution_id=history.record.execution_id,
        at=at,
        bar=bar,
        iterations=chosen,
        attempts=[attempt for attempt in notes.attempts.values() if attempt.iteration in indices],
        next_cursor=str(following) if following < len(iterations) else None,
    )


def _whole_run(bar: RunBar) -> IterationBar:
    begin = bar.claimed or bar.begin
    if bar.end is None:
        return IterationBar(index=0, begin=begin, end=None, status="running")
    is_failed = bar.status in ("failed", "cancelled")
    return IterationBar(index=0, begin=begin, end=bar.end, status="failed" if is_failed else "completed")


class _RunNotebook:
    """What is noted of a run, by iteration and by attempt, in the order in which they began."""

    def __init__(self, plan: StepPlan) -> None:
        self._plan = plan
        self.iterations: dict[int, IterationBar] = {}
        self.attempts: dict[tuple[int, str, int, int], AttemptBar] = {}

    def note(self, event: Event) -> None:
        match event.body:
            case LoopIterationStarted(index=index):
                self.iterations[index] = IterationBar(index=index, begin=event.ts, end=None, status="running")
            case LoopIterationCompleted(index=index, status=status):
                ended = "completed" if status == "success" else "failed"
                self.iterations[index] = replace(self.iterations[index], end=event.ts, status=ended)
            case ExecutionRetried() | IterationsRedriven():
                for index, iteration in self.iterations.items():
                    if iteration.status == "failed":
                        self.iterations[index] = replace(iteration, end=None, status="running")
            case TaskStarted() as body:
                self._note_start(event, body)
            case TaskProcessed() as body:
                self._note_end(event, body)

    def _note_start(self, event: Event, body: TaskStarted) -> None:
        task = task_labelled(self._plan.step, body.task)
        key = body.iteration, body.task, body.visit, body.attempt
        if (known := self.attempts.get(key)) is not None and known.end is None:
            self.attempts[key] = replace(known, redelivered=body.redelivery)
            return
        self.attempts[key] = AttemptBar(
            task=body.task,
            kind=task.kind if task is not None else "",
            iteration=body.iteration,
            visit=body.visit,
            attempt=body.attempt,
            seq=event.seq,
            begin=event.ts,
            ended_seq=None,
            end=None,
            status="running",
            redelivered=body.redelivery,
            directive="",
            line=None,
            input=printable_value(truncate_value(body.input)),
            result=None,
            error=None,
        )

    def _note_end(self, event: Event, body: TaskProcessed) -> None:
        key = body.iteration, body.task, body.visit, body.attempt
        known = self.attempts.get(key)
        if known is None:
            self._note_start(event, TaskStarted(**{name: getattr(body, name) for name in _START_FIELDS}))
            known = self.attempts[key]
        task = task_labelled(self._plan.step, body.task)
        position = position_of_rule(task, body.rule) if task is not None else None
        error = body.outcome.error
        self.attempts[key] = replace(
            known,
            ended_seq=event.seq,
            end=event.ts,
            status="failed" if body.outcome.status == "error" else "completed",
            directive=body.do,
            line=position.line if position is not None else None,
            result=printable_value(truncate_value(body.outcome.result)),
            error=printable_value(truncate_value(error.as_value())) if error is not None else None,
        )


_START_FIELDS = ("run", "task", "iteration", "visit", "attempt")
