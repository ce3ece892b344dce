"""The seed of this run of the tests: what is tried beside the examples that are always the same.

`TEST_SEED=N` in the environment repeats a run. It stands there for the workers of pytest-xdist, too, which
must try the same as the process that started them.
"""

import os
from random import SystemRandom

RUN_SEED = int(os.environ.setdefault("TEST_SEED", str(SystemRandom().randrange(10**9))))
FIRST_NEW_SEED = 10_000
"""Those below are tried in every run."""


def new_seeds(count: int) -> range:
    """So many seeds that no other run is likely to have tried."""
    first = FIRST_NEW_SEED + RUN_SEED * 1_000
    return range(first, first + count)
