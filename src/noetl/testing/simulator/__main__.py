"""`--seed 7` runs one seed and tells all about it, `--seeds 0:2000` runs many and tells what fails."""

import argparse
import sys
from collections.abc import Sequence

from noetl.testing.simulator.scenario import scenario_of
from noetl.testing.simulator.shrinker import shrink
from noetl.testing.simulator.simulation import Simulator
from noetl.testing.simulator.simulation_report import describe_scenario, failure_report


def main(arguments: Sequence[str] | None = None) -> int:
    """1 if a seed fails, else 0."""
    parser = argparse.ArgumentParser(prog="python -m noetl.testing.simulator", description=__doc__)
    selection = parser.add_mutually_exclusive_group(required=True)
    selection.add_argument("--seed", type=int, help="run this seed and print what it stands for")
    selection.add_argument(
        "--seeds", type=_seed_range, metavar="A:B", help="run the seeds from A to B, without B"
    )
    options = parser.parse_args(arguments)
    seeds = options.seeds if options.seed is None else range(options.seed, options.seed + 1)
    failed = 0
    simulator = Simulator()
    for seed in seeds:
        verdict = simulator.check(scenario_of(seed))
        if verdict.problem:
            failed += 1
            _print(failure_report(verdict, shrink(simulator, verdict)))
        elif options.seed is not None:
            _print(f"{describe_scenario(verdict.scenario)}\nended: {verdict.end}\n")
    _print(f"{len(seeds)} seeds, {failed} failed")
    return 1 if failed else 0


def _seed_range(text: str) -> range:
    first, _, last = text.partition(":")
    return range(int(first), int(last))


def _print(text: str) -> None:
    sys.stdout.write(text + "\n")


if __name__ == "__main__":
    sys.exit(main())
