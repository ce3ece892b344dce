"""Why a step ran or did not, in words."""

from collections.abc import Iterator

from noetl.cli.console import visible
from noetl.cli.format import first_line, pluralize
from noetl.cli.report.explanation import (
    condition_text,
    discarded_lines,
    run_lines,
    section_lines,
    step_text,
    wait_lines,
)
from noetl.kernel.explain.explanation_parts import ChainLink, Explanation, IncomingArc, StepExplanation

_VERDICTS = {
    "ran": "ran",
    "failed": "failed",
    "running": "is running",
    "waiting": "waits",
    "denied": "was not admitted",
    "not_reached": "was not reached",
}


def step_explanation_lines(explanation: StepExplanation) -> Iterator[str]:
    """What became of the step, then how that came about."""
    times = f" {pluralize(explanation.run_count, 'time')}" if explanation.run_count > 1 else ""
    verdict = _VERDICTS[explanation.verdict]
    where = step_text(explanation.step, explanation.line)
    yield f"{where} {verdict}{times}, as of event {explanation.version}: {first_line(explanation.reason)}"
    yield from section_lines("The way to it", map(_link_text, explanation.chain))
    yield from section_lines("Where the way ended", map(_arc_text, explanation.stopped_at))
    yield from section_lines("Arcs to it", map(_arc_text, explanation.arcs))
    part = Explanation(
        execution_id=explanation.execution_id,
        status=explanation.status,
        version=explanation.version,
        runs=explanation.runs,
        parked=explanation.parked,
        joins=explanation.joins,
        discarded=explanation.discarded,
    )
    yield from section_lines("Waits", wait_lines(part))
    yield from section_lines("Discarded", discarded_lines(part))
    yield from section_lines("Runs", run_lines(part))


def _link_text(link: ChainLink) -> str:
    text = f"{visible(link.step)} ({link.run}, event {link.seq})"
    if link.condition is None:
        return text
    return f"{text} → {condition_text(link.condition)}"


def _arc_text(arc: IncomingArc) -> str:
    through = "".join(f" → {visible(step)}" for step in arc.through)
    head = f"{visible(arc.source)} → {visible(arc.target)}{through}"
    if arc.verdict == "not_reached" or arc.condition is None:
        return f"{head}: {first_line(arc.text)} (line {arc.line}), no run of {visible(arc.source)} has ended"
    verdict = {"taken": "taken", "not_taken": "not taken", "failed": "failed", "not_asked": "not asked"}
    times = f", taken {arc.taken} of {arc.asked} times" if arc.asked > 1 else ""
    return f"{head} {verdict[arc.verdict]}{times}: {condition_text(arc.condition)}"
