"""The engine comes to an end that the oracle knows, whatever the playbook and whatever goes wrong."""

import asyncio
from collections.abc import Iterable

import pytest

from noetl.testing.oracle.__main__ import main
from noetl.testing.oracle.observed_ends import SeedCheck
from tests.new_seeds import new_seeds
from tests.oracle.net_mutations import NET_MUTATIONS
from tests.simulator.mutations import planted

SEEDS = 200
AT_ONCE = 25
REMEMBERED = (296,)
"""Seeds behind the fixed ones that once went wrong."""


def check_seeds(seeds: Iterable[int]) -> str:
    """What is wrong with the first seed that shows anything."""

    async def check() -> str:
        async with SeedCheck() as checker:
            for seed in seeds:
                if problem := await checker.check(seed):
                    return problem
        return ""

    return asyncio.run(check())


@pytest.mark.parametrize("first", range(0, SEEDS, AT_ONCE))
def test_an_execution_ends_as_the_specification_says(first: int) -> None:
    if problem := check_seeds(range(first, first + AT_ONCE)):
        pytest.fail(problem, pytrace=False)


def test_so_do_those_that_once_went_wrong() -> None:
    if problem := check_seeds(REMEMBERED):
        pytest.fail(problem, pytrace=False)


@pytest.mark.parametrize("part", range(3))
def test_so_do_those_of_seeds_that_nobody_has_tried(part: int) -> None:
    if problem := check_seeds(new_seeds(60)[part * 20 :][:20]):
        pytest.fail(problem, pytrace=False)


def test_many_seeds_are_a_command_that_tells_what_fails(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seeds", "0:2"]) == 0
    assert capsys.readouterr().out == "2 seeds, 0 failed\n"
    (mutation,) = (bug for bug in NET_MUTATIONS if bug.name == "an arc does not write")
    with planted(mutation):
        assert main(["--seed", "3"]) == 1
    out = capsys.readouterr().out
    assert "seed 3: it ended as" in out
    assert "again: python -m noetl.testing.oracle --seed 3\n" in out
    assert out.endswith("1 seeds, 1 failed\n")
