"""How an execution is or ended: one JSON document for programs, a few paragraphs for people."""

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from noetl.cli.console import Paint, plain_paint, visible
from noetl.cli.format import cut_lines, duration_text, pluralize, yaml_lines
from noetl.cli.report.failed_attempts import FailedAttempt, FailedAttempts, FailedChild
from noetl.cli.report.follow_up import FollowUp, command_lines
from noetl.engine.catalog.playbook_record import INLINE, PlaybookSource
from noetl.engine.summary import elapsed_micros, first_failure
from noetl.engine.task_log import LogLine
from noetl.events.bodies import TaskStarted
from noetl.kernel.state.execution_state import ExecutionState, waiting_steps
from noetl.model.outcome import ErrorInfo
from noetl.model.secret import printable_value

if TYPE_CHECKING:
    from noetl.cli.report.failure_location import FailureLocator

MOST_LINES = 40
"""Of a result, on a terminal."""
_MOST_INPUT = 20
_MOST_PRINTED = 10
_MOST_DISCARDED = 10
_MOST_WAITING = 10

_REPAIRABLE = frozenset({"expression", "python", "input", "jump_limit"})
"""Kinds of errors that come from what the playbook says: its expressions, its code."""

_DISCARDED = {
    "denied": "its admission denied it",
    "parked": "it was not admitted before the end",
    "remainder": "too few tokens came to its join",
    "cancelled": "the execution was cancelled",
    "retried": "a retry took the place of what had brought it",
}


def headline(status: str, took: str, name: str, paint: Paint) -> str:
    """How an execution is, or ended."""
    match status:
        case "completed":
            return f"completed in {took}: {name}"
        case "failed" | "cancelled":
            return paint("error", f"{status} after {took}") + f": {name}"
        case _:
            return f"{status}, {took} so far: {name}"


class ExecutionReport(Struct, frozen=True):
    """An execution as people shall read it. `source` is what its playbook was read from."""

    state: ExecutionState
    follow_up: FollowUp
    source: PlaybookSource | None = None
    failed_attempts: FailedAttempts | None = None
    last_ts: int = 0
    paint: Paint = plain_paint
    status: str = ""
    """Said in place of that of the state."""
    children: tuple[FailedChild, ...] = ()
    """From the child that failed it down to the lowest."""
    log: Sequence[LogLine] = ()
    """What its tasks printed."""

    def result(self, *, most: int | None = None) -> str:
        """The result as YAML, of no more than `most` lines; empty if there is none."""
        if self.state.result is None:
            return ""
        lines = list(yaml_lines(printable_value(self.state.result)))
        if most is not None and len(lines) > most:
            command = self.follow_up.executions_command("result", self.state.execution_id)
            lines = [*cut_lines(lines, most), f"all of it: {command}"]
        return "".join(f"{line}\n" for line in lines)

    def warnings(self) -> list[str]:
        """What was discarded: that is never silent."""
        counts: dict[tuple[str, str], int] = {}
        for token in self.state.discarded:
            key = token["step"], token["reason"]
            counts[key] = counts.get(key, 0) + 1
        warning = self.paint("warning", "warning")
        lines = []
        for (step, reason), number in counts.items():
            tokens = f"{pluralize(number, 'token')} for step `{step}`"
            lines.append(f"{warning}: {tokens} discarded: {_DISCARDED.get(reason, reason)}")
        return cut_lines(lines, _MOST_DISCARDED, width=1_000)

    def ending(self) -> str:
        """What is said at the end: how it ended, what was discarded, and for a failure everything known."""
        parts = [*self.warnings(), self._headline()]
        if self.state.status == "failed":
            parts += [*self._failure_lines(), *self._child_lines(), *self._waiting_lines()]
            parts += self._next_commands()
        return "\n".join(parts)

    def _headline(self) -> str:
        state, took = self.state, duration_text(elapsed_micros(self.state, self.last_ts))
        name = f"{visible(state.plan.playbook.metadata.path)} {state.execution_id}"
        return headline(self.status or state.status, took, name, self.paint)

    def _failure_lines(self) -> list[str]:
        error = first_failure(self.state)
        if error is None:
            return []
        where = [
            f"{name} {error.details[name]}" if name == "attempt" else f"{name} `{error.details[name]}`"
            for name in ("step", "task", "attempt")
            if error.details.get(name)
        ]
        if error.kind == "iteration_failed":
            where.insert(1, f"iteration {error.details.get('index')}")
        lines = [f"  {', '.join(where)}: {error.kind}" if where else f"  {error.kind}"]
        lines += [f"    {visible(line)}" for line in error.message.rstrip().split("\n")]
        # Only a failure needs what reads documents, and that is slow to import.
        from noetl.cli.report.failure_location import FailureLocator

        locator = FailureLocator(error, self.source, self._failed_attempt(error))
        return [*lines, *self._excerpt(locator), *_input_lines(locator), *self._output_lines(locator)]

    def _reports(self) -> list["ExecutionReport"]:
        """Of this execution, and of the children that failed it."""
        below = [
            ExecutionReport(
                child.state,
                self.follow_up,
                child.source,
                self.failed_attempts,
                paint=self.paint,
                log=child.log,
            )
            for child in self.children
        ]
        return [self, *below]

    def _child_lines(self) -> list[str]:
        """Which children failed it, and of the lowest, where it began, everything known."""
        below = self._reports()[1:]
        if not below:
            return []
        names = [
            f"  child {visible(report.state.plan.playbook.metadata.path)} {report.state.execution_id}: "
            f"{report.state.status}"
            for report in below
        ]
        return ["", *names, *(f"  {line}" if line else "" for line in below[-1]._failure_lines())]

    def _waiting_lines(self) -> list[str]:
        """What a retry goes on with, beside what failed."""
        lines = [
            f"  step `{visible(waiting['step'])}` waits for a retry: {visible(waiting['reason'])}"
            for waiting in waiting_steps(self.state)
        ]
        return ["", *cut_lines(lines, _MOST_WAITING, width=1_000)] if lines else []

    def _excerpt(self, locator: "FailureLocator") -> list[str]:
        location = locator.location()
        if location is None:
            return []
        from noetl.cli.problem_text import excerpt_line  # as above

        name = f"{visible(location.file)}:{location.number}:{location.column}"
        excerpt = excerpt_line(location.text, location.number, location.column, self.paint)
        return ["", *(f"  {line}" for line in (self.paint("position", name), *excerpt))]

    def _failed_attempt(self, error: ErrorInfo) -> FailedAttempt | None:
        return self.failed_attempts.attempt_with(self.state, error) if self.failed_attempts else None

    def _output_lines(self, locator: "FailureLocator") -> list[str]:
        """What the failed attempt printed, and the traceback it left."""
        printed = _attempt_lines(self.log, locator.attempt.started) if locator.attempt is not None else []
        # A tool's traceback stands in its log, too.
        printed = _without_ending(printed, locator.traceback.splitlines())
        lines = []
        if printed:
            left_out = len(printed) - _MOST_PRINTED
            lines = ["", "  printed:"] + ["    …"] * (left_out > 0)
            lines += _indented(visible(line) for line in printed[-_MOST_PRINTED:])
        return [*lines, *_traceback_lines(locator)]

    def _next_commands(self) -> list[str]:
        execution_id = self.state.execution_id
        commands = [(self.follow_up.executions_command("show", execution_id), "what happened")]
        if self.children:
            lowest = self.children[-1].state.execution_id
            commands.append((self.follow_up.executions_command("show", lowest), "what happened in the child"))
        if any(report.log for report in self._reports()):
            commands.append((self.follow_up.executions_command("logs", execution_id), "what tasks printed"))
        return command_lines([*self._retry_commands(), *commands])

    def _retry_commands(self) -> list[tuple[str, str]]:
        if not self.state.retriable:
            return []
        reports = self._reports()
        retry = self.follow_up.executions_command("retry", self.state.execution_id)
        kind = reports[-1]._failure_kind()
        if kind not in _REPAIRABLE:
            return [(retry, "goes on from what failed")]
        # A child that stands in its parent's playbook is repaired there.
        broken = next(report for report in reversed(reports) if not report._is_inline)
        file = broken._repaired_file()
        repair = self.follow_up.executions_command("retry", broken.state.execution_id, "--playbook", file)
        if broken is self:
            commands = [(repair, "goes on from what failed, with the playbook repaired")]
            if kind == "python":  # the code may be right, and what it met was not: a missing file, a service
                commands.append((retry, "goes on with the same one, once the cause is gone"))
            return commands
        return [(repair, "goes on in the child, with its playbook repaired"), (retry, "then goes on here")]

    @property
    def _is_inline(self) -> bool:
        return self.source is not None and self.source.name == INLINE

    def _failure_kind(self) -> str:
        """Of a loop, that of its iteration; empty if nothing failed, or what did may pass by itself."""
        error = first_failure(self.state)
        if error is None or error.retryable:
            return ""
        cause = error.details.get("cause")
        if error.kind == "iteration_failed" and isinstance(cause, dict):
            return str(cause.get("kind", error.kind))
        return error.kind

    def _repaired_file(self) -> str:
        """Where its playbook was read, as somebody here would name it."""
        file, name = (self.source.file, self.source.name) if self.source is not None else ("", "")
        return name if file and os.path.abspath(name) == file else file or "FILE"


def _input_lines(locator: "FailureLocator") -> list[str]:
    """What the failed attempt got."""
    attempt = locator.attempt
    if attempt is None or attempt.started.input is None:
        return []
    return ["", "  input:", *_indented(cut_lines(list(yaml_lines(attempt.started.input)), _MOST_INPUT))]


def _traceback_lines(locator: "FailureLocator") -> list[str]:
    if not locator.traceback.strip():
        return []
    lines = locator.traceback_text().split("\n")
    return ["", "  traceback:", *_indented(visible(line) for line in lines)]


def _indented(lines: Iterable[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def _attempt_lines(log: Iterable[LogLine], attempt: TaskStarted) -> list[str]:
    """What this attempt printed."""
    printed_by = (attempt.run, attempt.task, attempt.iteration, attempt.attempt)
    return [
        line.text for line in log if (line.run, line.task, line.iteration or 0, line.attempt) == printed_by
    ]


def _without_ending(lines: list[str], ending: Sequence[str]) -> list[str]:
    """The lines without those at their end."""
    return lines[: -len(ending)] if ending and lines[-len(ending) :] == list(ending) else lines
