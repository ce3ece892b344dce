"""The oracle finds bugs of the net that are planted."""

import pytest

from tests.oracle.net_mutations import NET_MUTATIONS
from tests.oracle.test_oracle_seeds import check_seeds
from tests.simulator.mutations import planted

SEEDS = {
    "an exclusive router takes all": 0,
    "a guard that did not hold handles a failure": 28,
    "an arc does not write": 3,
    "arcs write, and nobody keeps it": 3,
    "a failed step does not write at its end": 33,
    "a step that passes on forgets": 18,
    "the first branch is passed on": 62,
    "the result after a failure is lost": 41,
    "output is read from what failed": 32,
    "a later run hides a failure": 2,
    "the youngest join fires first": 21,
    "joins fire by their place in the document": 62,
    "a remainder that a retry needs is discarded": 5,
    "a join that a retry needs fires": 7,
    "a count takes what is there": 23,
    "a count waits for one more": 6,
    "the first token's args win": 1,
    "joined is in the wrong order": 6,
}
"""The first seed that shows each. Whoever changes the generator looks for them anew."""
MUTATIONS = {mutation.name: mutation for mutation in NET_MUTATIONS}


@pytest.mark.parametrize("name", SEEDS)
def test_a_planted_bug_is_found_by_the_oracle(name: str) -> None:
    seed = range(SEEDS[name], SEEDS[name] + 1)
    with planted(MUTATIONS[name]):
        assert check_seeds(seed)
    assert not check_seeds(seed)
