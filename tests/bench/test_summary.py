import pytest

from bench.protocol import Report
from bench.summary import round_ratios, shot_tails, shot_values, spread_of, spread_of_rounds
from bench.workload_table import BARE, RUN
from tests.bench.bench_reports import report_of


def test_a_spread_is_median_quartiles_and_extremes() -> None:
    spread = spread_of([5.0, 1.0, 4.0, 2.0, 3.0])
    assert spread == (3.0, 2.0, 4.0, 1.0, 5.0, 5)
    assert spread_of([7.0]) == (7.0, 7.0, 7.0, 7.0, 7.0, 1)


def test_there_is_no_spread_of_nothing() -> None:
    with pytest.raises(ValueError, match="nothing"):
        spread_of([])


def test_a_shot_counts_as_the_median_of_its_laps() -> None:
    report = Report("w4", {RUN: [[1.0, 9.0, 2.0], [5.0]]})
    assert shot_values(report, RUN) == [2.0, 5.0]


def test_only_shots_of_many_laps_have_a_tail() -> None:
    laps = [float(number) for number in range(101)]
    report = Report("w4", {RUN: [laps, [1.0, 2.0]]})
    assert shot_tails(report, RUN) == [95.0]


def test_the_spread_is_over_the_shots_of_all_rounds() -> None:
    rounds = [report_of("w1", 1.0, 2.0), None, report_of("w1", 3.0)]
    spread = spread_of_rounds(rounds, RUN)
    assert spread is not None
    assert (spread.median, spread.least, spread.most, spread.size) == (0.002, 0.001, 0.003, 3)
    assert spread_of_rounds([None], RUN) is None


def test_a_ratio_is_taken_within_a_round_and_its_median_over_rounds() -> None:
    """The machine was ten times slower in the second round: the ratio of all medians would be another one."""
    ours = [report_of("w1", 1.0, 1.0), report_of("w1", 10.0, 10.0), report_of("w1", 1.0, 1.0)]
    theirs = [report_of("w1", 2.0, 4.0), report_of("w1", 50.0, 50.0), report_of("w1", 4.0, 4.0)]
    ratios = round_ratios(ours, theirs, RUN)
    assert ratios is not None
    assert (ratios.median, ratios.least, ratios.most) == (4.0, 3.0, 5.0)


def test_rounds_without_both_sides_have_no_ratio() -> None:
    ours = [None, report_of("w1", 1.0)]
    theirs = [report_of("w1", 9.0), report_of("w1", 2.0)]
    ratios = round_ratios(ours, theirs, RUN)
    assert ratios is not None
    assert (ratios.median, ratios.size) == (2.0, 1)
    assert round_ratios(ours, theirs[:1], RUN) is None


def test_figures_of_one_side_have_a_ratio_too() -> None:
    report = Report("w6", {RUN: [[0.3]], BARE: [[0.02]]})
    ratios = round_ratios([report], [report], RUN, BARE)
    assert ratios is not None
    assert ratios.median == pytest.approx(15.0)
