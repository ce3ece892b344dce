"""What is going on, counted from events alone: cheap enough for every event of a large loop."""

from collections.abc import Callable, Sequence
from typing import Any

from noetl.cli.progress.line import Kind, News
from noetl.cli.progress.step_progress import (
    Execution,
    Running,
    loop_text,
    next_mark,
    of_iteration,
    waiting_for,
)
from noetl.cli.report.follow_up import Again
from noetl.cli.report.format import duration, said
from noetl.events import bodies as of
from noetl.events.event import Event
from noetl.events.identifiers import run_id, seq_of
from noetl.kernel.state.execution_state import ExecutionState


class Board:
    """Counters, the runs that are worked on or wait, and the news since they were last taken."""

    def __init__(self, again: Again, *, verbose: bool = False) -> None:
        self.news: list[News] = []
        self.queued: dict[int, Running] = {}
        self.working: dict[int, Running] = {}
        self.waiting: dict[int, Running] = {}
        self.done = self.failed = 0
        self.last = 0
        self.root = ""
        self._again = again
        self._verbose = verbose
        self._executions: dict[str, Execution] = {}
        self._names: dict[str, int] = {}
        self._signals: set[tuple[str, str]] = set()

    def see(self, execution_id: str, events: Sequence[Event], state: ExecutionState) -> None:
        """Takes events in. An execution whose first events were not seen is taken over as its state is."""
        execution = self._executions.get(execution_id)
        if execution is None:
            execution = self._executions[execution_id] = self._met(execution_id, state)
            self._take_over(execution, events[0].seq if events else state.version + 1)
        execution.state = state
        known = _HANDLERS
        for event in events:
            handler = known.get(type(event.body))
            if handler is not None:
                handler(self, execution, event.body, event)
        if events:
            self.last = events[-1].ts

    def take(self) -> list[News]:
        """What is new and still worth saying."""
        news, self.news = self.news, []
        return [one for one in news if not one.void]

    def _met(self, execution_id: str, state: ExecutionState) -> Execution:
        if not self.root:
            self.root = execution_id
        if execution_id == self.root:
            return Execution("", state)
        path = state.plan.playbook.metadata.path
        number = self._names[path] = self._names.get(path, 0) + 1
        return Execution(path if number == 1 else f"{path}#{number}", state)

    def _take_over(self, execution: Execution, before: int) -> None:
        for name, run in execution.state.runs.items():
            if run.phase == "ended" or seq_of(name) >= before:
                continue
            running = execution.runs[name] = Running(run.step.name, run.began_at, execution.child)
            if run.loop is not None:
                running.total, running.failed = run.loop.total, run.loop.failed
                running.done = run.loop.succeeded + run.loop.failed
                running.mark = next_mark(running)
            running.waits = "waits" if run.phase == "suspended" else ""
            running.move(self.waiting if running.waits else self.queued)

    def tell(self, kind: Kind, ts: int, step: str, text: str, execution: Execution) -> News:
        news = News(kind, ts, step, text, execution.child)
        self.news.append(news)
        return news

    def _scheduled(self, execution: Execution, body: of.StepScheduled, event: Event) -> None:
        running = Running(body.step, event.ts, execution.child)
        execution.runs[run_id(event.seq)] = running
        running.move(self.queued)
        running.started = self.tell("started", event.ts, body.step, "", execution)

    def _claimed(self, execution: Execution, body: of.TokenClaimed, _: Event) -> None:
        running = execution.runs.get(body.run)
        if running is not None:
            running.move(self.working)

    def _released(self, execution: Execution, body: of.LeaseExpired, _: Event) -> None:
        running = execution.runs.get(body.run)
        if running is not None:
            running.move(self.queued)

    def _task_started(self, execution: Execution, body: of.TaskStarted, event: Event) -> None:
        running = execution.runs.get(body.run)
        if running is None:
            return
        running.task = body.task
        running.attempt = body.attempt
        running.retry_at = None
        if self._verbose:
            text = f"task {body.task}, attempt {body.attempt}{of_iteration(running, body.iteration)}"
            self.tell("detail", event.ts, running.step, text, execution)

    def _task_processed(self, execution: Execution, body: of.TaskProcessed, event: Event) -> None:
        running = execution.runs.get(body.run)
        if running is None:
            return
        if body.do == "retry":
            running.retries += 1
            running.retry_at = body.retry_at
            if running.total < 0 or self._verbose:
                why = said(body.outcome.error) if body.outcome.error else "not done yet"
                wait = max((body.retry_at or event.ts) - event.ts, 0)
                again = f"again in {duration(wait)}" if wait else "again at once"
                text = f"task {body.task}, attempt {body.attempt}: {why}; {again}"
                self.tell("retry", event.ts, running.step, text, execution)
        elif self._verbose:
            how = "ok" if body.outcome.status == "ok" else said(body.outcome.error)
            to = f" to {body.to}" if body.to else ""
            text = f"task {body.task}{of_iteration(running, body.iteration)}: {how}, {body.do}{to}"
            self.tell("detail", event.ts, running.step, text, execution)

    def _loop_started(self, execution: Execution, body: of.LoopStarted, event: Event) -> None:
        running = execution.runs.get(body.run)
        if running is None:
            return
        running.total = body.total
        running.mark = next_mark(running)
        most = f", {body.max_in_flight} at a time" if body.max_in_flight > 1 else ""
        self.tell("loop", event.ts, running.step, f"{body.total:,} iterations{most}", execution)

    def _iterated(self, execution: Execution, body: of.LoopIterationCompleted, event: Event) -> None:
        running = execution.runs.get(body.run)
        if running is None:
            return
        running.done += 1
        if body.status == "error":
            running.failed += 1
        if running.done >= running.mark and running.done < running.total:
            running.mark = next_mark(running)
            self.tell("loop", event.ts, running.step, loop_text(running), execution)

    def _suspended(self, execution: Execution, body: of.RunSuspended, event: Event) -> None:
        running = execution.runs.get(body.run)
        if running is None:
            return
        if body.signal:
            self._signal(execution, running.step, body.signal, event.ts)
        if running.total >= 0:
            return  # only the iteration waits
        running.until = body.until
        running.waits = waiting_for(body)
        running.move(self.waiting)
        if body.reason in ("wait", "pause"):
            for_how_long = f" for {duration(body.until - event.ts)}" if body.until else ""
            self.tell("wait", event.ts, running.step, f"{running.waits}{for_how_long}", execution)

    def _resumed(self, execution: Execution, body: of.RunResumed, _: Event) -> None:
        running = execution.runs.get(body.run)
        if running is None:
            return
        running.waits, running.until = "", None
        if running.among is self.waiting:
            running.move(self.queued)

    def _parked(self, execution: Execution, body: of.TokenParked, event: Event) -> None:
        token = execution.state.tokens.get(body.token)
        if token is None or body.mode != "wait":
            return
        plan = execution.state.step_of(token)
        for watch in plan.watches:
            if (watch.space, watch.key) == ("ctx", "signals") and watch.below:
                self._signal(execution, plan.name, watch.below, event.ts)

    def _signal(self, execution: Execution, step: str, signal: str, ts: int) -> None:
        """How to send it, once for each execution and name."""
        execution_id = execution.state.execution_id
        if (execution_id, signal) not in self._signals:
            self._signals.add((execution_id, signal))
            command = self._again.executions("signal", execution_id, signal)
            self.tell("wait", ts, step, f"waits for the signal; send it with: {command}", execution)

    def _ended(self, execution: Execution, body: of.StepDone | of.LoopDone | of.StepFailed) -> Running | None:
        running = execution.runs.pop(body.run, None)
        if running is None:
            return None
        running.move(None)
        if running.started is not None:
            running.started.void = True  # if it was not taken yet, one line says it all
        if self._verbose:
            execution.ended[body.run] = running.step
        return running

    def _step_done(self, execution: Execution, body: of.StepDone | of.LoopDone, event: Event) -> None:
        running = self._ended(execution, body)
        if running is None:
            return
        self.done += 1
        text = duration(event.ts - running.began)
        if isinstance(body, of.LoopDone):
            text += f", {body.total:,} iterations" + (f", {body.failed:,} failed" if body.failed else "")
        if running.retries:
            text += f", {running.retries:,} retried"
        self.tell("done", event.ts, running.step, text, execution)

    def _step_failed(self, execution: Execution, body: of.StepFailed, event: Event) -> None:
        running = self._ended(execution, body)
        if running is None:
            return
        self.failed += 1
        where = f"task {body.task}, attempt {body.attempt}: " if body.task else ""
        self.tell("failed", event.ts, running.step, where + said(body.error), execution)

    def _routed(self, execution: Execution, body: of.NextEvaluated, event: Event) -> None:
        step = execution.ended.pop(body.run, "")
        plan = execution.state.plan.by_name.get(step)
        if plan is None:
            return
        arcs = plan.step.arcs
        text = f"{body.event} goes to {', '.join(arcs[one].step for one in body.selected)}"
        if not body.selected:
            text = f"{body.event} goes nowhere" + (f": {said(body.error)}" if body.error else "")
        self.tell("detail", event.ts, step, text, execution)

    def _told(self, execution: Execution, body: Any, event: Event) -> None:
        """What happens to the execution as a whole."""
        text = ""
        match body:
            case of.CancelRequested():
                text = f"cancelled{f' by {body.by}' if body.by else ''}"
                text += f": {body.reason}" if body.reason else ""
            case of.ExecutionPaused():
                text = f"paused; go on with: {self._again.executions('resume', execution.state.execution_id)}"
            case of.ExecutionResumed():
                text = "goes on"
            case of.PlaybookProcessed() if execution.child:
                text = body.status + (f": {said(body.error)}" if body.error else "")
        if text:
            self.tell("wait", event.ts, "", text, execution)


_HANDLERS: dict[type, Callable[[Board, Execution, Any, Event], None]] = {
    of.StepScheduled: Board._scheduled,
    of.TokenClaimed: Board._claimed,
    of.LeaseExpired: Board._released,
    of.TaskStarted: Board._task_started,
    of.TaskProcessed: Board._task_processed,
    of.LoopStarted: Board._loop_started,
    of.LoopIterationCompleted: Board._iterated,
    of.RunSuspended: Board._suspended,
    of.RunResumed: Board._resumed,
    of.TokenParked: Board._parked,
    of.StepDone: Board._step_done,
    of.LoopDone: Board._step_done,
    of.StepFailed: Board._step_failed,
    of.NextEvaluated: Board._routed,
    of.CancelRequested: Board._told,
    of.ExecutionPaused: Board._told,
    of.ExecutionResumed: Board._told,
    of.PlaybookProcessed: Board._told,
}
"""Events that are not here change nothing that is shown."""
