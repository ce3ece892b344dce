"""The simulator finds the bugs that are planted."""

import pytest

from noetl.testing.simulator.scenario import SEEDS_PER_PLAYBOOK, scenario_of
from noetl.testing.simulator.simulation import Simulator
from tests.simulator.mutations import MUTATIONS, Mutation, planted

SEEDS = [playbook * SEEDS_PER_PLAYBOOK + playbook % SEEDS_PER_PLAYBOOK for playbook in range(200)]
"""Each with another playbook."""


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name.replace(" ", "-"))
def test_a_planted_bug_is_found(mutation: Mutation) -> None:
    with planted(mutation):
        simulator = Simulator()
        failing_seed = next((seed for seed in SEEDS if simulator.check(scenario_of(seed)).problem), None)
    assert failing_seed is not None, f"no seed shows that {mutation.name}"
    assert not Simulator().check(scenario_of(failing_seed)).problem


def test_there_are_many_and_each_has_a_name_of_its_own() -> None:
    assert len({mutation.name for mutation in MUTATIONS}) == len(MUTATIONS) >= 22
