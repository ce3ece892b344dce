"""How an execution is or ended, in a few paragraphs for people."""

import os
from collections.abc import Iterable, Sequence

from msgspec import Struct

from noetl.cli.console import Paint, plain_paint, visible
from noetl.cli.format import cut_lines, duration_text, pluralize, yaml_lines
from noetl.cli.report.follow_up import FollowUp, command_lines
from noetl.engine.catalog.playbook_record import INLINE
from noetl.engine.summary import Execution
from noetl.ports.http_api import ExecutionDetail, FailureReport

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


class ExecutionReport(Struct, frozen=True):
    """An execution as people shall read it, whoever says how it is: an engine here, a store, or a server."""

    execution: Execution | ExecutionDetail
    follow_up: FollowUp
    failures: Sequence[FailureReport] = ()
    """Its own first, then those of the children that failed it, down to the lowest."""
    paint: Paint = plain_paint
    status: str = ""
    """Said in place of that of the execution."""

    def result(self, *, most: int | None = None) -> str:
        """The result as YAML, of no more than `most` lines; empty if there is none."""
        if self.execution.result is None:
            return ""
        lines = list(yaml_lines(self.execution.result))
        if most is not None and len(lines) > most:
            command = self.follow_up.executions_command("result", self.execution.execution_id)
            lines = [*cut_lines(lines, most), f"all of it: {command}"]
        return "".join(f"{line}\n" for line in lines)

    def warnings(self) -> list[str]:
        """What was discarded: that is never silent."""
        counts: dict[tuple[str, str], int] = {}
        for token in self.execution.discarded:
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
        if self.execution.status == "failed":
            if self.failures:
                parts += self._failure_lines(self.failures[0])
            parts += [*self._child_lines(), *self._waiting_lines()]
            parts += self._next_commands()
        return "\n".join(parts)

    def _headline(self) -> str:
        """How it is, or ended."""
        execution, took = self.execution, duration_text(self.execution.duration_ms * 1_000)
        name = f"{visible(execution.playbook)} {execution.execution_id}"
        match self.status or execution.status:
            case "completed":
                return f"completed in {took}: {name}"
            case "failed" | "cancelled" as status:
                return self.paint("error", f"{status} after {took}") + f": {name}"
            case status:
                return f"{status}, {took} so far: {name}"

    def _failure_lines(self, failure: FailureReport) -> list[str]:
        if failure.kind is None:
            return []
        where = [
            f"step `{failure.step}`" if failure.step else "",
            f"iteration {failure.iteration}" if failure.iteration is not None else "",
            f"task `{failure.task}`" if failure.task else "",
            f"attempt {failure.attempt}" if failure.attempt else "",
        ]
        position = ", ".join(part for part in where if part)
        lines = [f"  {position}: {failure.kind}" if position else f"  {failure.kind}"]
        lines += [f"    {visible(line)}" for line in failure.message.rstrip().split("\n")]
        return [*lines, *self._excerpt(failure), *_input_lines(failure), *_output_lines(failure)]

    def _child_lines(self) -> list[str]:
        """Which children failed it, and of the lowest, where it began, everything known."""
        below = self.failures[1:]
        if not below:
            return []
        names = [f"  child {visible(child.playbook)} {child.execution_id}: {child.status}" for child in below]
        return ["", *names, *(f"  {line}" if line else "" for line in self._failure_lines(below[-1]))]

    def _waiting_lines(self) -> list[str]:
        """What a retry goes on with, beside what failed."""
        lines = [
            f"  step `{visible(waiting['step'])}` waits for a retry: {visible(waiting['reason'])}"
            for waiting in self.execution.waiting
        ]
        return ["", *cut_lines(lines, _MOST_WAITING, width=1_000)] if lines else []

    def _excerpt(self, failure: FailureReport) -> list[str]:
        location = failure.location
        if location is None:
            return []
        from noetl.cli.problem_text import excerpt_line  # only a failure needs what reads documents

        file = location.file if location.in_playbook else location.file.removeprefix(os.getcwd() + os.sep)
        name = f"{visible(file)}:{location.line}:{location.column}"
        excerpt = excerpt_line(location.text, location.line, location.column, self.paint)
        return ["", *(f"  {line}" for line in (self.paint("position", name), *excerpt))]

    def _next_commands(self) -> list[str]:
        execution_id = self.execution.execution_id
        commands = [(self.follow_up.executions_command("show", execution_id), "what happened")]
        if self.failures[1:]:
            lowest = self.failures[-1].execution_id
            commands.append((self.follow_up.executions_command("show", lowest), "what happened in the child"))
        if any(failure.logged for failure in self.failures):
            commands.append((self.follow_up.executions_command("logs", execution_id), "what tasks printed"))
        return command_lines([*self._retry_commands(), *commands])

    def _retry_commands(self) -> list[tuple[str, str]]:
        if not self.failures or not self.failures[0].retriable:
            return []
        retry = self.follow_up.executions_command("retry", self.execution.execution_id)
        cause = self.failures[-1].cause
        if cause not in _REPAIRABLE:
            return [(retry, "goes on from what failed")]
        # A child that stands in its parent's playbook is repaired there.
        broken = next(failure for failure in reversed(self.failures) if failure.document != INLINE)
        file = _repaired_file(broken)
        repair = self.follow_up.executions_command("retry", broken.execution_id, "--playbook", file)
        if broken is self.failures[0]:
            commands = [(repair, "goes on from what failed, with the playbook repaired")]
            if cause == "python":  # the code may be right, and what it met was not: a missing file, a service
                commands.append((retry, "goes on with the same one, once the cause is gone"))
            return commands
        return [(repair, "goes on in the child, with its playbook repaired"), (retry, "then goes on here")]


def _repaired_file(failure: FailureReport) -> str:
    """Where its playbook was read, as somebody here would name it."""
    file, name = failure.file, failure.document
    return name if file and os.path.abspath(name) == file else file or "FILE"


def _input_lines(failure: FailureReport) -> list[str]:
    """What the failed attempt got."""
    if failure.input is None:
        return []
    return ["", "  input:", *_indented(cut_lines(list(yaml_lines(failure.input)), _MOST_INPUT))]


def _output_lines(failure: FailureReport) -> list[str]:
    """What the failed attempt printed, and the traceback it left."""
    lines = []
    if failure.printed:
        left_out = len(failure.printed) - _MOST_PRINTED
        lines = ["", "  printed:"] + ["    …"] * (left_out > 0)
        lines += _indented(visible(line) for line in failure.printed[-_MOST_PRINTED:])
    if failure.traceback:
        lines += ["", "  traceback:", *_indented(visible(line) for line in failure.traceback.split("\n"))]
    return lines


def _indented(lines: Iterable[str]) -> list[str]:
    return [f"    {line}" for line in lines]
