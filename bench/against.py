"""Measures the noetl of this checkout and of another one in turns, by the protocol of all benchmarks.

    .venv/bin/python -m bench.against ../other          # another checkout with its own .venv
    .venv/bin/python -m bench.against ../other --only w1,w2 --rounds 9

Both run this checkout's workloads, so that only the engine differs. Below 1 means that this one is faster.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.compare import Comparison
from bench.noetl_side import NoetlSide
from bench.results import Results
from bench.run import add_plan_options, plan_of
from bench.summary import round_ratios, spread_of_rounds
from bench.tables import Table, render_plain
from bench.workload_table import WORKLOADS

OTHER, THIS = "other", "this"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.against", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("other", type=Path, help="the checkout to compare with")
    add_plan_options(parser)
    options = parser.parse_args(arguments)
    python = options.other.absolute() / ".venv" / "bin" / "python"
    if not python.exists():
        sys.exit(f"{options.other} has no .venv: run its scripts/noetl once")
    sides = [NoetlSide(OTHER, str(python)), NoetlSide(THIS)]
    comparison = Comparison(sides, options.other, plan_of(options), options.only)
    comparison.measure()
    print(*render_plain(against_table(comparison.results)), *comparison.results.reasons.items(), sep="\n")
    if comparison.results.reasons:
        sys.exit(1)


def against_table(results: Results) -> Table:
    head = ["", "figure", f"{OTHER}, ms", f"{THIS}, ms", "ratio", "least and most of a round"]
    return Table("This checkout against another one: medians", head, list(_lines(results)))


def _lines(results: Results) -> Iterator[list[str]]:
    for name in results.reports:
        other, this = results.rounds(name, OTHER), results.rounds(name, THIS)
        for figure in WORKLOADS[name].figures:
            ratios = round_ratios(other, this, figure)
            spreads = [spread_of_rounds(rounds, figure) for rounds in (other, this)]
            medians = [f"{spread.median * 1e3:,.2f}" if spread else "" for spread in spreads]
            if ratios is not None:
                yield [
                    name,
                    figure,
                    *medians,
                    f"{ratios.median:.3f}",
                    f"{ratios.least:.3f} … {ratios.most:.3f}",
                ]


if __name__ == "__main__":
    main()
