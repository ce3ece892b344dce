"""What is going on, counted from events alone: cheap enough for every event of a large loop."""

from collections.abc import Callable, Sequence
from typing import Any

from noetl.cli.format import duration_text, error_text
from noetl.cli.progress.step_progress import (
    ExecutionProgress,
    LineKind,
    ProgressLine,
    StepProgress,
    iteration_suffix,
    loop_text,
    next_milestone,
    wait_text,
)
from noetl.cli.report.event_line import redriven_text, retried_text
from noetl.cli.report.follow_up import FollowUp
from noetl.events import bodies as of
from noetl.events.event import Event
from noetl.events.identifiers import run_id, seq_of_id
from noetl.kernel.state.execution_state import ExecutionState
from noetl.kernel.state.run_fold import EndByHand


class ProgressModel:
    """Counters, the runs that are worked on or wait, and the lines since they were last taken."""

    def __init__(self, follow_up: FollowUp, *, verbose: bool = False) -> None:
        self.lines: list[ProgressLine] = []
        # By identity, in order of arrival: a run leaves its group in O(1), however many wait there.
        self.queued: dict[int, StepProgress] = {}
        self.working: dict[int, StepProgress] = {}
        self.waiting: dict[int, StepProgress] = {}
        self.done = self.failed = 0
        self.last_ts = 0
        self.root = ""
        self._follow_up = follow_up
        self._verbose = verbose
        self._executions: dict[str, ExecutionProgress] = {}
        self._names: dict[str, int] = {}
        self._signals: set[tuple[str, str]] = set()

    def observe(self, execution_id: str, events: Sequence[Event], state: ExecutionState) -> None:
        """Takes events in. An execution whose first events were not seen is taken over as its state is."""
        execution = self._executions.get(execution_id)
        if execution is None:
            execution = self._executions[execution_id] = self._begin_execution(execution_id, state)
            self._adopt_runs(execution, events[0].seq if events else state.version + 1)
        execution.state = state
        # One lookup by type, not a `match` over the classes: a loop of 100,000 iterations brings 400,000
        # events, and most of them move a counter or nothing.
        handlers = _HANDLERS
        for event in events:
            handler = handlers.get(type(event.body))
            if handler is not None:
                handler(self, execution, event.body, event)
        if events:
            self.last_ts = events[-1].ts

    def take_lines(self) -> list[ProgressLine]:
        """What is new and still worth saying."""
        lines, self.lines = self.lines, []
        return [line for line in lines if not line.void]

    def _begin_execution(self, execution_id: str, state: ExecutionState) -> ExecutionProgress:
        if not self.root:
            self.root = execution_id
        if execution_id == self.root:
            return ExecutionProgress("", state)
        path = state.plan.playbook.metadata.path
        number = self._names[path] = self._names.get(path, 0) + 1
        return ExecutionProgress(path if number == 1 else f"{path}#{number}", state)

    def _adopt_runs(self, execution: ExecutionProgress, before: int) -> None:
        for name, run in execution.state.runs.items():
            if run.phase == "ended" or seq_of_id(name) >= before:
                continue
            step_run = execution.runs[name] = StepProgress(run.step.name, execution.child, run.worked)
            if run.loop is not None:
                step_run.total, step_run.failed = run.loop.total, run.loop.failed
                step_run.done = run.loop.succeeded + run.loop.failed
                step_run.milestone = next_milestone(step_run)
            step_run.waits_for = "waits" if run.phase == "suspended" else ""
            step_run.move(self.waiting if step_run.waits_for else self.queued)

    def add_line(
        self, kind: LineKind, ts: int, step: str, text: str, execution: ExecutionProgress
    ) -> ProgressLine:
        line = ProgressLine(kind, ts, step, text, execution.child)
        self.lines.append(line)
        return line

    def _on_step_scheduled(self, execution: ExecutionProgress, body: of.StepScheduled, event: Event) -> None:
        step_run = StepProgress(body.step, execution.child)
        execution.runs[run_id(event.seq)] = step_run
        step_run.move(self.queued)
        step_run.start_line = self.add_line("started", event.ts, body.step, "", execution)

    def _on_token_claimed(self, execution: ExecutionProgress, body: of.TokenClaimed, event: Event) -> None:
        step_run = execution.runs.get(body.run)
        if step_run is not None:
            step_run.since = event.ts if step_run.since is None else step_run.since
            step_run.move(self.working)

    def _on_lease_expired(self, execution: ExecutionProgress, body: of.LeaseExpired, event: Event) -> None:
        step_run = execution.runs.get(body.run)
        if step_run is not None:
            step_run.stop(event.ts)
            step_run.move(self.queued)

    def _on_task_started(self, execution: ExecutionProgress, body: of.TaskStarted, event: Event) -> None:
        step_run = execution.runs.get(body.run)
        if step_run is None:
            return
        step_run.task = body.task
        step_run.attempt = body.attempt
        step_run.retry_at = None
        if self._verbose:
            text = f"task {body.task}, attempt {body.attempt}{iteration_suffix(step_run, body.iteration)}"
            self.add_line("detail", event.ts, step_run.step, text, execution)

    def _on_task_processed(self, execution: ExecutionProgress, body: of.TaskProcessed, event: Event) -> None:
        step_run = execution.runs.get(body.run)
        if step_run is None:
            return
        if body.do == "retry":
            step_run.retries += 1
            step_run.retry_at = body.retry_at
            if step_run.total < 0 or self._verbose:
                why = error_text(body.outcome.error) if body.outcome.error else "not done yet"
                wait = max((body.retry_at or event.ts) - event.ts, 0)
                next_try = f"again in {duration_text(wait)}" if wait else "again at once"
                text = f"task {body.task}, attempt {body.attempt}: {why}; {next_try}"
                self.add_line("retry", event.ts, step_run.step, text, execution)
        elif self._verbose:
            how = "ok" if body.outcome.status == "ok" else error_text(body.outcome.error)
            to = f" to {body.to}" if body.to else ""
            text = f"task {body.task}{iteration_suffix(step_run, body.iteration)}: {how}, {body.do}{to}"
            self.add_line("detail", event.ts, step_run.step, text, execution)

    def _on_loop_started(self, execution: ExecutionProgress, body: of.LoopStarted, event: Event) -> None:
        step_run = execution.runs.get(body.run)
        if step_run is None:
            return
        step_run.total = body.total
        step_run.milestone = next_milestone(step_run)
        most = f", {body.max_in_flight} at a time" if body.max_in_flight > 1 else ""
        self.add_line("loop", event.ts, step_run.step, f"{body.total:,} iterations{most}", execution)

    def _on_iteration_completed(
        self, execution: ExecutionProgress, body: of.LoopIterationCompleted, event: Event
    ) -> None:
        step_run = execution.runs.get(body.run)
        if step_run is None:
            return
        step_run.done += 1
        if body.status == "error":
            step_run.failed += 1
        if step_run.done >= step_run.milestone and step_run.done < step_run.total:
            step_run.milestone = next_milestone(step_run)
            self.add_line("loop", event.ts, step_run.step, loop_text(step_run), execution)

    def _on_run_suspended(self, execution: ExecutionProgress, body: of.RunSuspended, event: Event) -> None:
        step_run = execution.runs.get(body.run)
        if step_run is None:
            return
        if body.signal:
            self._add_signal_line(execution, step_run.step, body.signal, event.ts)
        if body.reason == "pause":
            step_run.stop(event.ts)
        if step_run.total >= 0:
            return  # only the iteration waits, the others of its loop go on
        step_run.until = body.until
        step_run.waits_for = wait_text(body)
        step_run.move(self.waiting)
        if body.reason in ("wait", "pause"):
            for_how_long = f" for {duration_text(body.until - event.ts)}" if body.until else ""
            self.add_line("wait", event.ts, step_run.step, f"{step_run.waits_for}{for_how_long}", execution)

    def _on_run_resumed(self, execution: ExecutionProgress, body: of.RunResumed, _: Event) -> None:
        step_run = execution.runs.get(body.run)
        if step_run is None:
            return
        step_run.waits_for, step_run.until = "", None
        if step_run.group is self.waiting:
            step_run.move(self.queued)

    def _on_token_parked(self, execution: ExecutionProgress, body: of.TokenParked, event: Event) -> None:
        token = execution.state.tokens.get(body.token)
        if token is None or body.mode != "wait":
            return
        plan = execution.state.step_of(token)
        for watch in plan.watches:
            if (watch.space, watch.key) == ("ctx", "signals") and watch.below:
                self._add_signal_line(execution, plan.name, watch.below, event.ts)

    def _add_signal_line(self, execution: ExecutionProgress, step: str, signal: str, ts: int) -> None:
        """How to send it, once for each execution and name."""
        execution_id = execution.state.execution_id
        if (execution_id, signal) not in self._signals:
            self._signals.add((execution_id, signal))
            command = self._follow_up.executions_command("signal", execution_id, signal)
            self.add_line("wait", ts, step, f"waits for the signal; send it with: {command}", execution)

    def _end_run(
        self, execution: ExecutionProgress, body: of.StepDone | of.LoopDone | of.StepFailed | EndByHand
    ) -> StepProgress | None:
        step_run = execution.runs.pop(body.run, None)
        if step_run is None:
            return None
        step_run.move(None)
        if step_run.start_line is not None:
            step_run.start_line.void = True  # if it was not taken yet, one line says it all
        if self._verbose:
            execution.ended[body.run] = step_run.step
        return step_run

    def _on_step_done(
        self, execution: ExecutionProgress, body: of.StepDone | of.LoopDone, event: Event
    ) -> None:
        step_run = self._end_run(execution, body)
        if step_run is None:
            return
        self.done += 1
        text = duration_text(step_run.time(event.ts))
        if isinstance(body, of.LoopDone):
            text += f", {body.total:,} iterations" + (f", {body.failed:,} failed" if body.failed else "")
        if step_run.retries:
            text += f", {step_run.retries:,} retried"
        self.add_line("done", event.ts, step_run.step, text, execution)

    def _on_ended_by_hand(self, execution: ExecutionProgress, body: EndByHand, event: Event) -> None:
        step_run = self._end_run(execution, body)
        if step_run is None:
            return
        self.done += 1
        how = "skipped" if isinstance(body, of.StepSkipped) else "completed by hand"
        by = f" by {body.by}" if body.by else ""
        self.add_line("wait", event.ts, step_run.step, how + by, execution)

    def _on_step_failed(self, execution: ExecutionProgress, body: of.StepFailed, event: Event) -> None:
        step_run = self._end_run(execution, body)
        if step_run is None:
            return
        self.failed += 1
        # An expression of its inputs may fail before there is an attempt.
        attempt = f", attempt {body.attempt}" if body.attempt else ""
        where = f"task {body.task}{attempt}: " if body.task else ""
        self.add_line("failed", event.ts, step_run.step, where + error_text(body.error), execution)

    def _on_next_evaluated(self, execution: ExecutionProgress, body: of.NextEvaluated, event: Event) -> None:
        step = execution.ended.pop(body.run, "")
        plan = execution.state.plan.by_name.get(step)
        if plan is None:
            return
        arcs = plan.step.arcs
        text = f"{body.event} goes to {', '.join(arcs[number].step for number in body.selected)}"
        if not body.selected:
            text = f"{body.event} goes nowhere" + (f": {error_text(body.error)}" if body.error else "")
        self.add_line("detail", event.ts, step, text, execution)

    def _on_cancel_requested(
        self, execution: ExecutionProgress, body: of.CancelRequested, event: Event
    ) -> None:
        by = f" by {body.by}" if body.by else ""
        why = f": {body.reason}" if body.reason else ""
        self.add_line("wait", event.ts, "", f"cancelled{by}{why}", execution)

    def _on_execution_paused(self, execution: ExecutionProgress, _: of.ExecutionPaused, event: Event) -> None:
        command = self._follow_up.executions_command("resume", execution.state.execution_id)
        self.add_line("wait", event.ts, "", f"paused; go on with: {command}", execution)

    def _on_execution_resumed(
        self, execution: ExecutionProgress, _: of.ExecutionResumed, event: Event
    ) -> None:
        self.add_line("wait", event.ts, "", "goes on", execution)

    def _on_execution_retried(
        self, execution: ExecutionProgress, body: of.ExecutionRetried, event: Event
    ) -> None:
        self.add_line("wait", event.ts, "", retried_text(body), execution)

    def _on_iterations_redriven(
        self, execution: ExecutionProgress, body: of.IterationsRedriven, event: Event
    ) -> None:
        self.add_line("wait", event.ts, "", redriven_text(body), execution)

    def _on_playbook_processed(
        self, execution: ExecutionProgress, body: of.PlaybookProcessed, event: Event
    ) -> None:
        if execution.child:  # how the root ended is what the report says
            text = body.status + (f": {error_text(body.error)}" if body.error else "")
            self.add_line("wait", event.ts, "", text, execution)


_HANDLERS: dict[type, Callable[[ProgressModel, ExecutionProgress, Any, Event], None]] = {
    of.StepScheduled: ProgressModel._on_step_scheduled,
    of.TokenClaimed: ProgressModel._on_token_claimed,
    of.LeaseExpired: ProgressModel._on_lease_expired,
    of.TaskStarted: ProgressModel._on_task_started,
    of.TaskProcessed: ProgressModel._on_task_processed,
    of.LoopStarted: ProgressModel._on_loop_started,
    of.LoopIterationCompleted: ProgressModel._on_iteration_completed,
    of.RunSuspended: ProgressModel._on_run_suspended,
    of.RunResumed: ProgressModel._on_run_resumed,
    of.TokenParked: ProgressModel._on_token_parked,
    of.StepDone: ProgressModel._on_step_done,
    of.LoopDone: ProgressModel._on_step_done,
    of.StepFailed: ProgressModel._on_step_failed,
    of.StepCompletedByHand: ProgressModel._on_ended_by_hand,
    of.StepSkipped: ProgressModel._on_ended_by_hand,
    of.NextEvaluated: ProgressModel._on_next_evaluated,
    of.CancelRequested: ProgressModel._on_cancel_requested,
    of.ExecutionPaused: ProgressModel._on_execution_paused,
    of.ExecutionResumed: ProgressModel._on_execution_resumed,
    of.ExecutionRetried: ProgressModel._on_execution_retried,
    of.IterationsRedriven: ProgressModel._on_iterations_redriven,
    of.PlaybookProcessed: ProgressModel._on_playbook_processed,
}
"""Events that are not here change nothing that is shown."""
