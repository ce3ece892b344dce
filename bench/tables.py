"""Results as tables, plain or in Markdown."""

import statistics
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from bench.noetl_side import BARE_PLANE, OURS, SERVED
from bench.protocol import Report
from bench.results import Results
from bench.summary import Spread, round_ratios, shots_of_rounds, spread_of_rounds, tail_of_rounds
from bench.sync_calls import flushes
from bench.workload_table import BARE, RUN, WORKLOADS, Workload

HELLO_GOAL = 20.0
"""How many times the bare interpreter `noetl run` of hello world may take."""
SHARE_GOAL = 0.6
"""Of the rate of events of `noetl run`: what a server with one worker should reach."""


class Table(NamedTuple):
    title: str
    head: Sequence[str]
    lines: Sequence[Sequence[str]]


Render: TypeAlias = Callable[[Table], Iterator[str]]


def render_plain(table: Table) -> Iterator[str]:
    """Columns as wide as they need to be, the first two to the left."""
    yield table.title
    yield ""
    lines = [table.head, *table.lines]
    widths = [max(len(line[column]) for line in lines) for column in range(len(table.head))]
    for line in lines:
        cells = [
            cell.ljust(width) if column < 2 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        yield "  ".join(cells).rstrip()
    yield ""


def render_markdown(table: Table) -> Iterator[str]:
    yield f"**{table.title}**"
    yield ""
    marks = ["---" if column < 2 else "---:" for column in range(len(table.head))]
    for line in (table.head, marks, *table.lines):
        yield f"| {' | '.join(line)} |"
    yield ""


def all_tables(results: Results) -> Iterator[Table]:
    if results.parts:
        yield parts_table(results)
    if results.reports:
        yield time_table(results)
        if OURS in results.sides:
            yield ratio_table(results)
        if SERVED in results.sides:
            yield served_table(results)
        yield memory_table(results)


def parts_table(results: Results) -> Table:
    lines = [[part.name, part.unit, f"{part.value:,.3f}", part.goal] for part in results.parts]
    return Table("Parts of ours, the best of three", ["part", "unit", "figure", "goal"], lines)


def time_table(results: Results) -> Table:
    """Times of every figure; the fsyncs of one lap stand once, beside the figure that is compared."""
    counted = bool(results.sync_calls)
    head = ["", "milliseconds: median [quartiles]"]
    for side in results.sides:
        head += [side, "fsyncs"] if counted else [side]
    lines = []
    for workload in _measured(results):
        for figure, label in workload.figures.items():
            title = ", ".join(part for part in (workload.title, label) if part)
            lines.append([workload.name, title, *_time_cells(results, workload, figure)])
            tails = [*_tail_cells(results, workload, figure)]
            if any(tails):
                lines.append([workload.name, f"{title}, p95", *tails])
    plan = results.plan
    runs = f"{plan.rounds} rounds of {plan.shots} shots after {plan.warm_ups} warm-up"
    small = f", sizes divided by {plan.shrink}" if plan.shrink > 1 else ""
    return Table(f"Times, {runs}{small}; * steps do not wait for the disk", head, lines)


def _time_cells(results: Results, workload: Workload, figure: str) -> Iterator[str]:
    for side in results.sides:
        rounds = results.rounds(workload.name, side)
        spread = spread_of_rounds(rounds, figure)
        yield "" if spread is None else _milliseconds(spread) + ("" if _waits(rounds) else " *")
        if results.sync_calls:
            counts = results.sync_calls.get(workload.name, {}).get(side)
            yield "" if counts is None or figure != RUN else f"{flushes(counts):,.4g}"


def _tail_cells(results: Results, workload: Workload, figure: str) -> Iterator[str]:
    for side in results.sides:
        spread = tail_of_rounds(results.rounds(workload.name, side), figure)
        yield "" if spread is None else _milliseconds(spread)
        if results.sync_calls:
            yield ""


def ratio_table(results: Results) -> Table:
    """How many times our time every other side takes, by rounds of this run; what the goal is."""
    others = [side for side in results.sides if side != OURS]
    lines = []
    for workload in _measured(results):
        if BARE in workload.figures:
            lines.append(_hello_line(results, workload, len(others)))
        else:
            lines += _ratio_lines(results, workload, OURS, others, workload.goal)
    head = ["", "times ours: median of rounds [least-most]", *others, "fastest durable", "goal"]
    return Table("Ratios", head, lines)


def served_table(results: Results) -> Table:
    """The same for a server with a worker; of the loop that only we run, its rate against `noetl run`'s."""
    others = [side for side in results.sides if side not in (OURS, SERVED)]
    lines: list[Sequence[str]] = []
    for workload in _measured(results):
        if workload.ours_only:
            lines += _share_lines(results, workload, len(others))
        else:
            goal = workload.database_goal if results.database else workload.served_goal
            lines += _ratio_lines(results, workload, SERVED, others, goal)
    # On a database the goal is for the faster peer, whatever it promises.
    fastest = "fastest" if results.database else "fastest durable"
    head = ["", f"times those of {SERVED}", *others, fastest, "goal"]
    suffix = ", all on one PostgreSQL" if results.database else ""
    return Table(f"Ratios, as a server with one worker{suffix}", head, lines)


def _ratio_lines(
    results: Results, workload: Workload, base: str, others: Sequence[str], goal: float
) -> Iterator[list[str]]:
    for figure, label in workload.figures.items():
        cells = {side: _ratio(results, workload, base, side, figure) for side in others}
        if any(cells.values()):
            title = ", ".join(part for part in (workload.title, label) if part)
            texts = [_ratio_text(cells[side]) for side in others]
            fastest, verdict = _goal_cells(results, cells, goal)
            if base == SERVED and verdict.endswith("missed"):
                verdict += _floor_text(results, workload, fastest.split()[0], figure)
            yield [workload.name, title, *texts, fastest, verdict]


def _floor_text(results: Results, workload: Workload, peer: str, figure: str) -> str:
    """What the bare plane and the engine alone would reach, one after the other, if both were measured.

    A server and its worker take turns in a chain of steps, and have to do both. Ours, in one process, has no
    messages, and waits for the disk once or twice a run.
    """
    plane = shots_of_rounds(results.rounds(workload.name, BARE_PLANE), figure)
    engine = shots_of_rounds(results.rounds(workload.name, OURS), figure)
    theirs = shots_of_rounds(results.rounds(workload.name, peer), figure)
    if workload.waits or not (plane and engine and theirs):
        return ""
    floor = statistics.median(plane) + statistics.median(engine)
    return f", messages and decisions alone {statistics.median(theirs) / floor:.1f}x"


def _ratio(results: Results, workload: Workload, base: str, side: str, figure: str) -> Spread | None:
    return round_ratios(results.rounds(workload.name, base), results.rounds(workload.name, side), figure)


def _goal_cells(results: Results, cells: dict[str, Spread | None], goal: float) -> tuple[str, str]:
    rivals = {
        side: spread.median
        for side, spread in cells.items()
        if spread and (side in results.durable or results.database) and side not in (SERVED, BARE_PLANE)
    }
    if not rivals:
        return "", ""
    fastest = min(rivals, key=lambda side: rivals[side])
    ratio = rivals[fastest]
    return f"{fastest} {ratio:.1f}x", _verdict(f"{goal:g}x", ratio >= goal) if goal else ""


def _share_lines(results: Results, workload: Workload, others: int) -> Iterator[list[str]]:
    """Both record the same events: the ratio of their rates is that of their times."""
    ratio = _ratio(results, workload, SERVED, OURS, RUN)
    if ratio is not None:
        title = f"{workload.title}: events a second, of those of noetl run: {ratio.median:.0%}"
        goal = _verdict(f"at least {SHARE_GOAL:.0%}", ratio.median >= SHARE_GOAL)
        yield [workload.name, title, *[""] * (others + 1), goal]


def _hello_line(results: Results, workload: Workload, others: int) -> list[str]:
    rounds = results.rounds(workload.name, OURS)
    ratio = round_ratios(rounds, rounds, RUN, BARE)
    goal = _verdict(f"at most {HELLO_GOAL:g}x", ratio.median <= HELLO_GOAL) if ratio else ""
    title = f"noetl run to python -c pass: {_ratio_text(ratio)}"
    return [workload.name, title, *[""] * (others + 1), goal]


def memory_table(results: Results) -> Table:
    lines = []
    for workload in _measured(results):
        peaks = [
            max((report.peak for report in results.reports_of(workload.name, side)), default=0)
            for side in results.sides
        ]
        if any(peaks):
            cells = [f"{peak / 1e6:,.0f}" if peak else "" for peak in peaks]
            lines.append([workload.name, workload.title, *cells])
    return Table("Peak memory of all processes of a side, MB", ["", "", *results.sides], lines)


def notes(results: Results) -> Iterator[str]:
    """The machine, what each side promises about the disk, what was scaled, and what failed."""
    yield from (f"{name}: {text}" for name, text in results.machine.items())
    if results.database:
        yield f"PostgreSQL: {results.database}"
    for side, versions in results.versions.items():
        if versions:
            yield f"{side}: {', '.join(f'{name} {version}' for name, version in versions.items())}"
    for side in results.sides:
        promises: dict[str, list[str]] = {}
        for workload in _measured(results):
            for report in results.reports_of(workload.name, side)[-1:]:
                promises.setdefault(report.durability, []).append(workload.name)
                if report.note:
                    yield f"{side} {workload.name}: {report.note}"
        yield from (f"{side} {', '.join(names)}: {promise}" for promise, names in promises.items() if promise)
    yield "new document: only we have one; peers load their code when they start, before anything is timed"
    yield from (f"{cell}: {reason}" for cell, reason in sorted(results.reasons.items()))


def _measured(results: Results) -> list[Workload]:
    return [workload for name, workload in WORKLOADS.items() if name in results.reports]


def _waits(rounds: Sequence[Report | None]) -> bool:
    return all(report.waits for report in rounds if report is not None)


def _milliseconds(spread: Spread) -> str:
    median, lower, upper = (_three_digits(value * 1e3) for value in spread[:3])
    return f"{median} [{lower}-{upper}]"


def _three_digits(value: float) -> str:
    digits = 0 if value >= 100 else 1 if value >= 10 else 2
    return f"{value:,.{digits}f}"


def _ratio_text(spread: Spread | None) -> str:
    if spread is None:
        return ""
    return f"{spread.median:.1f}x [{spread.least:.1f}-{spread.most:.1f}]"


def _verdict(goal: str, met: bool) -> str:  # noqa: FBT001 - it is the verdict
    return f"{goal}: {'met' if met else 'missed'}"
