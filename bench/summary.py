"""Medians and spreads of what was measured, and ratios between sides."""

import statistics
from collections.abc import Sequence
from typing import NamedTuple

from bench.protocol import Report

LAPS_FOR_P95 = 20


class Spread(NamedTuple):
    """The median of values, their quartiles, the least and the most."""

    median: float
    lower: float
    upper: float
    least: float
    most: float
    size: int


def spread_of(values: Sequence[float]) -> Spread:
    if not values:
        raise ValueError("there is nothing to summarize")
    ordered = sorted(values)
    lower, median, upper = (
        statistics.quantiles(ordered, n=4, method="inclusive") if len(ordered) > 1 else ordered * 3
    )
    return Spread(median, lower, upper, ordered[0], ordered[-1], len(ordered))


def shot_values(report: Report, figure: str) -> list[float]:
    """Seconds, one for each shot: the median of its laps."""
    return [statistics.median(laps) for laps in report.seconds.get(figure, []) if laps]


def shot_tails(report: Report, figure: str) -> list[float]:
    """The 95th percentile of the laps of each shot; nothing for shots of few laps."""
    shots = report.seconds.get(figure, [])
    return [
        statistics.quantiles(laps, n=20, method="inclusive")[18]
        for laps in shots
        if len(laps) >= LAPS_FOR_P95
    ]


def spread_of_rounds(rounds: Sequence[Report | None], figure: str) -> Spread | None:
    """Over the shots of all rounds."""
    values = shots_of_rounds(rounds, figure)
    return spread_of(values) if values else None


def shots_of_rounds(rounds: Sequence[Report | None], figure: str) -> list[float]:
    return [value for report in rounds if report is not None for value in shot_values(report, figure)]


def tail_of_rounds(rounds: Sequence[Report | None], figure: str) -> Spread | None:
    values = [value for report in rounds if report is not None for value in shot_tails(report, figure)]
    return spread_of(values) if values else None


def round_ratios(
    ours: Sequence[Report | None], theirs: Sequence[Report | None], figure: str, our_figure: str = ""
) -> Spread | None:
    """How many times our time the other side takes: a ratio of medians for each round that measured both."""
    ratios = []
    for our_report, their_report in zip(ours, theirs, strict=False):
        if our_report is None or their_report is None:
            continue
        our_values = shot_values(our_report, our_figure or figure)
        their_values = shot_values(their_report, figure)
        if our_values and their_values:
            ratios.append(statistics.median(their_values) / statistics.median(our_values))
    return spread_of(ratios) if ratios else None
