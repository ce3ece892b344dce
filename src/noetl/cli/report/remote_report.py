"""An execution of a server as people shall read it: what `noetl executions show` says of one here."""

from collections.abc import Sequence
from typing import Any

from noetl.cli.console import Paint, table_text, visible
from noetl.cli.format import cut_lines, duration_text, local_time, yaml_lines
from noetl.cli.report.execution_report import MOST_LINES, headline
from noetl.cli.report.explanation import (
    cancel_text,
    discarded_lines,
    run_lines,
    section_lines,
    wait_lines,
    waiting_run_lines,
)
from noetl.cli.report.follow_up import FollowUp, command_lines
from noetl.kernel.explain.explanation_parts import Explanation, FirstFailure
from noetl.model.timestamp import parse_iso
from noetl.ports.http_api import ExecutionDetail
from noetl.ports.store import ENDED_STATUSES


def remote_report(
    detail: ExecutionDetail, explanation: Explanation, follow_up: FollowUp, paint: Paint
) -> list[str]:
    """The lines of it."""
    lines = [
        _first_line(detail, paint),
        *_failure_lines(detail, explanation.failure),
        *_facts(detail, explanation),
    ]
    steps = [(visible(name), step["status"], str(step["runs"])) for name, step in detail.steps.items()]
    if steps:
        lines += ["", table_text(("STEP", "STATUS", "RUNS"), steps).rstrip()]
    lines += section_lines("what happened", run_lines(explanation))
    lines += section_lines("discarded", discarded_lines(explanation))
    lines += section_lines("waiting", [*wait_lines(explanation), *waiting_run_lines(detail.waiting)])
    for title, value in (("ctx", detail.ctx), ("result", detail.result)):
        if value not in (None, {}):
            lines += [
                "",
                f"{title}:",
                *(f"  {line}" for line in cut_lines(list(yaml_lines(value)), MOST_LINES)),
            ]
    return lines + command_lines(_next_commands(detail, explanation, follow_up))


def _first_line(detail: ExecutionDetail, paint: Paint) -> str:
    name = f"{visible(detail.playbook)} {detail.execution_id}"
    return headline(detail.status, duration_text(detail.duration_ms * 1_000), name, paint)


def _failure_lines(detail: ExecutionDetail, failure: FirstFailure | None) -> list[str]:
    error: dict[str, Any] | None = failure.error if failure is not None else detail.error
    if error is None:
        return []
    lines = [f"  {visible(str(error.get('kind')))}: {visible(str(error.get('message')))}"]
    if failure is not None:
        task = f", task `{failure.task}`" if failure.task else ""
        iteration = f", iteration {failure.iteration}" if failure.iteration is not None else ""
        lines.append(visible(f"  in step `{failure.step}` (line {failure.line}){task}{iteration}"))
        if failure.input is not None:
            lines.append("  input:")
            lines += [f"    {line}" for line in cut_lines(list(yaml_lines(failure.input)), MOST_LINES // 2)]
    return lines


def _facts(detail: ExecutionDetail, explanation: Explanation) -> list[str]:
    facts = {
        "started": local_time(parse_iso(detail.started_at)),
        "ended": local_time(parse_iso(detail.ended_at)) if detail.ended_at else "",
        "cancel": cancel_text(explanation),
        "events": str(detail.events),
        "version": detail.version or "",
        "labels": " ".join(f"{key}={value}" for key, value in detail.labels.items()),
        "priority": str(detail.priority or ""),
        "fork of": detail.forked_from or "",
        "parent": detail.parent or "",
        "by": detail.requested_by or "",
    }
    return [f"  {name:<8}  {visible(value)}" for name, value in facts.items() if value]


def _next_commands(
    detail: ExecutionDetail, explanation: Explanation, follow_up: FollowUp
) -> Sequence[tuple[str, str]]:
    name = detail.execution_id
    if detail.status == "failed" and explanation.failure is not None:
        return [(follow_up.executions_command("retry", name), "tries what failed once more")]
    if detail.status in ENDED_STATUSES:
        return []
    signals = dict.fromkeys(wait.signal for run in explanation.runs for wait in run.waits if wait.signal)
    commands = [
        (follow_up.executions_command("signal", name, signal), "gives the signal that it waits for")
        for signal in signals
    ]
    if detail.status == "paused":
        commands.append((follow_up.executions_command("resume", name), "goes on; it is paused"))
    else:
        commands.append((follow_up.executions_command("watch", name), "waits for its end"))
    return [*commands, (follow_up.executions_command("cancel", name), "ends it")]
