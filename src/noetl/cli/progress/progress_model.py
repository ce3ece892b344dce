"""What is going on, counted from events alone: cheap enough for every event of a large loop."""

from collections.abc import Callable, Sequence
from typing import Any

from noetl.cli.progress.line import LineKind, ProgressLine
from noetl.cli.progress.step_progress import (
    ExecutionProgress,
    StepProgress,
    iteration_suffix,
    loop_text,
    next_milestone,
    wait_text,
)
from noetl.cli.report.follow_up import FollowUp
from noetl.cli.report.format import duration_text, error_text
from noetl.events import bodies as of
from noetl.events.event import Event
from noetl.events.identifiers import run_id, seq_of_id
from noetl.kernel.state.execution_state import ExecutionState


class ProgressModel:
    """Counters, the runs that are worked on or wait, and the news since they were last taken."""

    def __init__(self, again: FollowUp, *, verbose: bool = False) -> None:
        self.lines: list[ProgressLine] = []
        self.queued: dict[int, StepProgress] = {}
        self.working: dict[int, StepProgress] = {}
        self.waiting: dict[int, StepProgress] = {}
        self.done = self.failed = 0
        self.last_ts = 0
        self.root = ""
        self._again = again
        self._verbose = verbose
        self._executions: dict[str, ExecutionProgress] = {}
        self._names: dict[str, int] = {}
        self._signals: set[tuple[str, str]] = set()

    def observe(self, execution_id: str, events: Sequence[Event], state: ExecutionState) -> None:
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
            self.last_ts = events[-1].ts

    def take_lines(self) -> list[ProgressLine]:
        """What is new and still worth saying."""
        news, self.lines = self.lines, []
        return [one for one in news if not one.void]

    def _met(self, execution_id: str, state: ExecutionState) -> ExecutionProgress:
        if not self.root:
            self.root = execution_id
        if execution_id == self.root:
            return ExecutionProgress("", state)
        path = state.plan.playbook.metadata.path
        number = self._names[path] = self._names.get(path, 0) + 1
        return ExecutionProgress(path if number == 1 else f"{path}#{number}", state)

    def _take_over(self, execution: ExecutionProgress, before: int) -> None:
        for name, run in execution.state.runs.items():
            if run.phase == "ended" or seq_of_id(name) >= before:
                continue
            running = execution.runs[name] = StepProgress(run.step.name, run.began_at, execution.child)
            if run.loop is not None:
                running.total, running.failed = run.loop.total, run.loop.failed
                running.done = run.loop.succeeded + run.loop.failed
                running.milestone = next_milestone(running)
            running.waits_for = "waits" if run.phase == "suspended" else ""
            running.move(self.waiting if running.waits_for else self.queued)

    def add_line(
        self, kind: LineKind, ts: int, step: str, text: str, execution: ExecutionProgress
    ) -> ProgressLine:
        news = ProgressLine(kind, ts, step, text, execution.child)
        self.lines.append(news)
        return news

    def _scheduled(self, execution: ExecutionProgress, body: of.StepScheduled, event: Event) -> None:
        running = StepProgress(body.step, event.ts, execution.child)
        execution.runs[run_id(event.seq)] = running
        running.move(self.queued)
        running.start_line = self.add_line("started", event.ts, body.step, "", execution)

    def _claimed(self, execution: ExecutionProgress, body: of.TokenClaimed, _: Event) -> None:
        running = execution.runs.get(body.run)
        if running is not None:
            running.move(self.working)

    def _released(self, execution: ExecutionProgress, body: of.LeaseExpired, _: Event) -> None:
        running = execution.runs.get(body.run)
        if running is not None:
            running.move(self.queued)

    def _task_started(self, execution: ExecutionProgress, body: of.TaskStarted, event: Event) -> None:
        running = execution.runs.get(body.run)
        if running is None:
            return
        running.task = body.task
        running.attempt = body.attempt
        running.retry_at = None
        if self._verbose:
            text = f"task {body.task}, attempt {body.attempt}{iteration_suffix(running, body.iteration)}"
            self.add_line("detail", event.ts, running.step, text, execution)

    def _task_processed(self, execution: ExecutionProgress, body: of.TaskProcessed, event: Event) -> None:
        running = execution.runs.get(body.run)
        if running is None:
            return
        if body.do == "retry":
            running.retries += 1
            running.retry_at = body.retry_at
            if running.total < 0 or self._verbose:
                why = error_text(body.outcome.error) if body.outcome.error else "not done yet"
                wait = max((body.retry_at or event.ts) - event.ts, 0)
                again = f"again in {duration_text(wait)}" if wait else "again at once"
                text = f"task {body.task}, attempt {body.attempt}: {why}; {again}"
                self.add_line("retry", event.ts, running.step, text, execution)
        elif self._verbose:
            how = "ok" if body.outcome.status == "ok" else error_text(body.outcome.error)
            to = f" to {body.to}" if body.to else ""
            text = f"task {body.task}{iteration_suffix(running, body.iteration)}: {how}, {body.do}{to}"
            self.add_line("detail", event.ts, running.step, text, execution)

    def _loop_started(self, execution: ExecutionProgress, body: of.LoopStarted, event: Event) -> None:
        running = execution.runs.get(body.run)
        if running is None:
            return
        running.total = body.total
        running.milestone = next_milestone(running)
        most = f", {body.max_in_flight} at a time" if body.max_in_flight > 1 else ""
        self.add_line("loop", event.ts, running.step, f"{body.total:,} iterations{most}", execution)

    def _iterated(self, execution: ExecutionProgress, body: of.LoopIterationCompleted, event: Event) -> None:
        running = execution.runs.get(body.run)
        if running is None:
            return
        running.done += 1
        if body.status == "error":
            running.failed += 1
        if running.done >= running.milestone and running.done < running.total:
            running.milestone = next_milestone(running)
            self.add_line("loop", event.ts, running.step, loop_text(running), execution)

    def _suspended(self, execution: ExecutionProgress, body: of.RunSuspended, event: Event) -> None:
        running = execution.runs.get(body.run)
        if running is None:
            return
        if body.signal:
            self._signal(execution, running.step, body.signal, event.ts)
        if running.total >= 0:
            return  # only the iteration waits
        running.until = body.until
        running.waits_for = wait_text(body)
        running.move(self.waiting)
        if body.reason in ("wait", "pause"):
            for_how_long = f" for {duration_text(body.until - event.ts)}" if body.until else ""
            self.add_line("wait", event.ts, running.step, f"{running.waits_for}{for_how_long}", execution)

    def _resumed(self, execution: ExecutionProgress, body: of.RunResumed, _: Event) -> None:
        running = execution.runs.get(body.run)
        if running is None:
            return
        running.waits_for, running.until = "", None
        if running.group is self.waiting:
            running.move(self.queued)

    def _parked(self, execution: ExecutionProgress, body: of.TokenParked, event: Event) -> None:
        token = execution.state.tokens.get(body.token)
        if token is None or body.mode != "wait":
            return
        plan = execution.state.step_of(token)
        for watch in plan.watches:
            if (watch.space, watch.key) == ("ctx", "signals") and watch.below:
                self._signal(execution, plan.name, watch.below, event.ts)

    def _signal(self, execution: ExecutionProgress, step: str, signal: str, ts: int) -> None:
        """How to send it, once for each execution and name."""
        execution_id = execution.state.execution_id
        if (execution_id, signal) not in self._signals:
            self._signals.add((execution_id, signal))
            command = self._again.executions_command("signal", execution_id, signal)
            self.add_line("wait", ts, step, f"waits for the signal; send it with: {command}", execution)

    def _ended(
        self, execution: ExecutionProgress, body: of.StepDone | of.LoopDone | of.StepFailed
    ) -> StepProgress | None:
        running = execution.runs.pop(body.run, None)
        if running is None:
            return None
        running.move(None)
        if running.start_line is not None:
            running.start_line.void = True  # if it was not taken yet, one line says it all
        if self._verbose:
            execution.ended[body.run] = running.step
        return running

    def _step_done(self, execution: ExecutionProgress, body: of.StepDone | of.LoopDone, event: Event) -> None:
        running = self._ended(execution, body)
        if running is None:
            return
        self.done += 1
        text = duration_text(event.ts - running.began_at)
        if isinstance(body, of.LoopDone):
            text += f", {body.total:,} iterations" + (f", {body.failed:,} failed" if body.failed else "")
        if running.retries:
            text += f", {running.retries:,} retried"
        self.add_line("done", event.ts, running.step, text, execution)

    def _step_failed(self, execution: ExecutionProgress, body: of.StepFailed, event: Event) -> None:
        running = self._ended(execution, body)
        if running is None:
            return
        self.failed += 1
        where = f"task {body.task}, attempt {body.attempt}: " if body.task else ""
        self.add_line("failed", event.ts, running.step, where + error_text(body.error), execution)

    def _routed(self, execution: ExecutionProgress, body: of.NextEvaluated, event: Event) -> None:
        step = execution.ended.pop(body.run, "")
        plan = execution.state.plan.by_name.get(step)
        if plan is None:
            return
        arcs = plan.step.arcs
        text = f"{body.event} goes to {', '.join(arcs[one].step for one in body.selected)}"
        if not body.selected:
            text = f"{body.event} goes nowhere" + (f": {error_text(body.error)}" if body.error else "")
        self.add_line("detail", event.ts, step, text, execution)

    def _told(self, execution: ExecutionProgress, body: Any, event: Event) -> None:
        """What happens to the execution as a whole."""
        text = ""
        match body:
            case of.CancelRequested():
                text = f"cancelled{f' by {body.by}' if body.by else ''}"
                text += f": {body.reason}" if body.reason else ""
            case of.ExecutionPaused():
                command = self._again.executions_command("resume", execution.state.execution_id)
                text = f"paused; go on with: {command}"
            case of.ExecutionResumed():
                text = "goes on"
            case of.PlaybookProcessed() if execution.child:
                text = body.status + (f": {error_text(body.error)}" if body.error else "")
        if text:
            self.add_line("wait", event.ts, "", text, execution)


_HANDLERS: dict[type, Callable[[ProgressModel, ExecutionProgress, Any, Event], None]] = {
    of.StepScheduled: ProgressModel._scheduled,
    of.TokenClaimed: ProgressModel._claimed,
    of.LeaseExpired: ProgressModel._released,
    of.TaskStarted: ProgressModel._task_started,
    of.TaskProcessed: ProgressModel._task_processed,
    of.LoopStarted: ProgressModel._loop_started,
    of.LoopIterationCompleted: ProgressModel._iterated,
    of.RunSuspended: ProgressModel._suspended,
    of.RunResumed: ProgressModel._resumed,
    of.TokenParked: ProgressModel._parked,
    of.StepDone: ProgressModel._step_done,
    of.LoopDone: ProgressModel._step_done,
    of.StepFailed: ProgressModel._step_failed,
    of.NextEvaluated: ProgressModel._routed,
    of.CancelRequested: ProgressModel._told,
    of.ExecutionPaused: ProgressModel._told,
    of.ExecutionResumed: ProgressModel._told,
    of.PlaybookProcessed: ProgressModel._told,
}
"""Events that are not here change nothing that is shown."""
