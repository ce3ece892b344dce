"""Hundreds of simulations, and what the simulator promises about itself."""

import os
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass

import pytest

from noetl.testing.simulator.__main__ import main
from noetl.testing.simulator.scenario import scenario_of
from noetl.testing.simulator.shrinker import shrink
from noetl.testing.simulator.simulation import SimulationVerdict, Simulator
from noetl.testing.simulator.simulation_report import describe_scenario, failure_report
from tests.new_seeds import new_seeds
from tests.simulator.mutations import MUTATIONS, planted

SEEDS = 1_000
REMEMBERED = (634, 565, 632, 668, 703_573, 711_976)
"""Behind the fixed ones: what only looked like a difference (a pause that came too late; iterations resumed in another
order; a join that turned a token away), and what shows planted bugs that few others show."""
AT_ONCE = 20
"""Few: on a machine that is busy with other things, the time of a test is over soon."""
ARRIVAL = next(mutation for mutation in MUTATIONS if mutation.name == "reducers in order of arrival")


@pytest.mark.parametrize("first", range(0, SEEDS, AT_ONCE))
def test_whatever_goes_wrong_nothing_is_lost_and_nothing_happens_twice(first: int) -> None:
    _check_seeds(range(first, first + AT_ONCE))


def test_nor_does_it_with_those_that_once_mattered() -> None:
    _check_seeds(REMEMBERED)


@pytest.mark.parametrize("part", range(10))
def test_nor_does_it_with_seeds_that_nobody_has_tried(part: int) -> None:
    _check_seeds(new_seeds(10 * AT_ONCE)[part * AT_ONCE :][:AT_ONCE])


def _check_seeds(seeds: Iterable[int]) -> None:
    simulator = Simulator()
    for seed in seeds:
        verdict = simulator.check(scenario_of(seed))
        if verdict.problem:
            pytest.fail(failure_report(verdict, shrink(simulator, verdict)), pytrace=False)


@dataclass
class ShrunkFailure:
    verdict: SimulationVerdict
    shrunk: SimulationVerdict


def _first_failure() -> ShrunkFailure:
    """The first seed from here on that shows a bug in a playbook of several steps, and what is left of it."""
    simulator = Simulator()
    for seed in range(56, 400):
        verdict = simulator.check(scenario_of(seed))
        if verdict.problem:
            return ShrunkFailure(verdict, shrink(simulator, verdict, 120))
    raise AssertionError("no seed shows it")


def test_a_failure_is_repeatable_and_shrinks_to_a_small_playbook() -> None:
    with planted(ARRIVAL):
        first, second = _first_failure(), _first_failure()
    assert first == second
    assert first.shrunk.problem
    steps = first.shrunk.scenario.document.steps
    assert len(steps) == 1 < len(first.verdict.scenario.document.steps)
    assert steps[0].loop
    report = failure_report(first.verdict, first.shrunk)
    assert f"--seed {first.verdict.scenario.seed}" in report
    assert first.shrunk.scenario.document.text in report
    assert str(first.shrunk.trace[-1][2]) in report


TELL = """
import sys
from noetl.testing.simulator.scenario import scenario_of
from noetl.testing.simulator.simulated_world import SimulatedPlaybooks, SimulatedWorld
for seed in map(int, sys.argv[1:]):
    world = SimulatedWorld(scenario_of(seed), SimulatedPlaybooks())
    world.run()
    print(world.turns, world.clock.now, world.tools.effects, *world.trace, sep="\\n")
"""


def test_a_seed_is_the_same_simulation_in_every_process() -> None:
    """Also where sets have another order: Python shuffles it with a number of its own."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", TELL, "3", "17", "28", "45", "146"],
            env={**os.environ, "PYTHONHASHSEED": number},
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in ("1", "2")
    ]
    first, second = (process.communicate()[0] for process in processes)
    assert [process.returncode for process in processes] == [0, 0]
    assert "PlaybookProcessed" in first
    assert first.splitlines() == second.splitlines()


def test_one_seed_is_told_in_full(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seed", "3"]) == 0
    out = capsys.readouterr().out
    assert describe_scenario(scenario_of(3)) in out
    assert out.endswith("1 seeds, 0 failed\n")


def test_of_many_seeds_those_that_fail_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    (mutation,) = (
        candidate for candidate in MUTATIONS if candidate.name == "the end of an append is not marked"
    )
    with planted(mutation):
        assert main(["--seeds", "3:4"]) == 1
    out = capsys.readouterr().out
    assert "seed 3: StoreDamaged" in out
    assert "an append that has no end" in out
    assert out.endswith("1 seeds, 1 failed\n")
