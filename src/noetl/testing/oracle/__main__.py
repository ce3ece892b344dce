"""`--seed 7` checks one seed, `--seeds 0:2000` many: tells what fails, exit 1 if something does."""

import argparse
import asyncio
import sys
from collections.abc import Iterable, Sequence

from noetl.testing.oracle.observed_ends import SeedCheck


def main(arguments: Sequence[str] | None = None) -> int:
    """1 if a seed fails, else 0."""
    parser = argparse.ArgumentParser(prog="python -m noetl.testing.oracle", description=__doc__)
    selection = parser.add_mutually_exclusive_group(required=True)
    selection.add_argument("--seed", type=int, help="check this seed")
    selection.add_argument("--seeds", metavar="A:B", help="check the seeds from A to B, without B")
    options = parser.parse_args(arguments)
    first, _, last = (options.seeds or f"{options.seed}:{options.seed + 1}").partition(":")
    seeds = range(int(first), int(last))
    failed = asyncio.run(_check(seeds))
    sys.stdout.write(f"{len(seeds)} seeds, {failed} failed\n")
    return 1 if failed else 0


async def _check(seeds: Iterable[int]) -> int:
    failed = 0
    async with SeedCheck() as checker:
        for seed in seeds:
            if problem := await checker.check(seed):
                failed += 1
                sys.stdout.write(problem + "\n")
    return failed


if __name__ == "__main__":
    sys.exit(main())
