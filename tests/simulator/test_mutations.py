"""The simulator finds the bugs that are planted."""

from itertools import chain

import pytest

from noetl.testing.simulator.scenario import SEEDS_PER_PLAYBOOK, scenario_of
from noetl.testing.simulator.simulation import Simulator
from tests.simulator.mutations import MUTATIONS, Mutation, planted

SEEDS = [playbook * SEEDS_PER_PLAYBOOK + playbook % SEEDS_PER_PLAYBOOK for playbook in range(200)]
"""Each with another playbook."""
KNOWN_SEEDS = {
    "the fence is not checked": 48,
    "a pause that comes too late stays": 384,
    "resume leaves paused runs asleep": 58,
    "cancel forgets suspended runs": 314,
    "the remainder of a join is kept": 21,
    "a failed branch holds no join back": 287,
    "a retry leaves what came of the failure": 389,
    "what failed is settled by a limit": 671,
    "a join does not see tokens on their way in": 303,
    "a join of any takes every token": 21,
    "a discarded token is still watched": 42,
    "a run that ended still listens": 314,
    "the last branch to end gives the result": 160,
    "contributions are written as they come": 58,
    "a lost attempt counts as none": 95,
    "results stand in order of arrival": 138,
    "a retry forgets failed iterations": 634,
    "a redelivery is a new attempt": 47,
    "a poll keeps its key": 26,
    "a retried child is the child before": 63,
    "a snapshot forgets the order of queues": 720,
}
"""Seeds that showed a bug before, tried first: most of a search is the seeds that show nothing."""


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name.replace(" ", "-"))
def test_a_planted_bug_is_found(mutation: Mutation) -> None:
    with planted(mutation):
        simulator = Simulator()
        seeds = chain([KNOWN_SEEDS[mutation.name]] if mutation.name in KNOWN_SEEDS else [], SEEDS)
        failing_seed = next((seed for seed in seeds if simulator.check(scenario_of(seed)).problem), None)
    assert failing_seed is not None, f"no seed shows that {mutation.name}"
    assert not Simulator().check(scenario_of(failing_seed)).problem


def test_there_are_many_and_each_has_a_name_of_its_own() -> None:
    names = {mutation.name for mutation in MUTATIONS}
    assert len(names) == len(MUTATIONS) >= 22
    assert names.issuperset(KNOWN_SEEDS)
