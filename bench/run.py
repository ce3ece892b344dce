"""Runs the benchmarks, prints tables and writes `bench/results.json`."""

import argparse
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.append import measure_append
from bench.bare_plane_side import BarePlaneSide
from bench.compare import Comparison
from bench.duckdb_tool import measure_duckdb_tool
from bench.large_store import measure_large_store
from bench.load import measure_load, measure_parse
from bench.machine import describe_machine
from bench.measurement import Measurement
from bench.noetl_server_side import NoetlServerSide
from bench.noetl_side import NoetlSide
from bench.peers import PEERS
from bench.postgres_copy import measure_postgres_copy
from bench.protocol import Plan
from bench.python_tool import measure_python_tool
from bench.results import Results, read_results
from bench.shared_database import peers_on, peers_without_database, shared_database
from bench.side import Side
from bench.tables import all_tables, notes, render_markdown, render_plain
from bench.workload_table import WORKLOADS

HERE = Path(__file__).parent
RESULTS = HERE / "results.json"


def add_plan_options(parser: argparse.ArgumentParser) -> None:
    plan = Plan()
    parser.add_argument("--only", type=workload_names, default=list(WORKLOADS), help="such as w1b,w2b")
    parser.add_argument("--rounds", type=int, default=plan.rounds)
    parser.add_argument("--shots", type=int, default=plan.shots)
    parser.add_argument("--warm-ups", type=int, default=plan.warm_ups)
    parser.add_argument("--shrink", type=int, default=plan.shrink, help="divide all sizes, to try it out")


def plan_of(options: argparse.Namespace) -> Plan:
    return Plan(options.rounds, options.warm_ups, options.shots, options.shrink)


def workload_names(text: str) -> list[str]:
    return _names(text, list(WORKLOADS))


def peer_names(text: str) -> list[str]:
    return _names(text, [peer.NAME for peer in PEERS])


def _names(text: str, known: Sequence[str]) -> list[str]:
    """In the order of `known`. Raises ArgumentTypeError."""
    names = text.split(",")
    if unknown := [name for name in names if name not in known]:
        raise argparse.ArgumentTypeError(f"{', '.join(unknown)} is none of {', '.join(known)}")
    return [name for name in known if name in names]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.run", description=__doc__)
    parser.add_argument(
        "--peers",
        type=peer_names,
        nargs="?",
        const=[peer.NAME for peer in PEERS],
        default=[],
        help="measure other engines, too, such as restate,dbos; all without names; installed on first use",
    )
    parser.add_argument(
        "--server", action="store_true", help="measure a server with a worker, too, and their floor"
    )
    parser.add_argument(
        "--postgres",
        action="store_true",
        help="measure a server with a worker, and peers that can, with all they keep in one PostgreSQL",
    )
    parser.add_argument(
        "--workloads", action="store_true", help="measure the workloads alone, as --only does"
    )
    parser.add_argument("--markdown", action="store_true", help="print the tables in Markdown")
    parser.add_argument("--show", action="store_true", help="measure nothing, print the last results")
    add_plan_options(parser)
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # servers are ended on the way out
    if options.show:
        results = read_results(RESULTS)
    elif options.postgres:
        if unable := peers_without_database(options.peers):
            parser.error(f"{unable[0]} cannot keep its state in PostgreSQL")
        try:
            results = measure_on_database(options.peers, plan_of(options), options.only)
        except ModuleNotFoundError as error:
            parser.error(f"{error.name} is not installed: `{sys.executable} -m pip install -e '.[test]'`")
        results.write(RESULTS)
    else:
        some = options.workloads or options.only != list(WORKLOADS)
        sides: list[Side] = [NoetlSide(), *([NoetlServerSide(), BarePlaneSide()] if options.server else [])]
        sides += [peer for peer in PEERS if peer.NAME in options.peers]
        results = measure_all(sides, plan_of(options), options.only, [] if some else measure_parts())
        results.write(RESULTS)
    print(*report_lines(results, markdown=options.markdown), sep="\n")


def measure_on_database(peers: Sequence[str], plan: Plan, names: Sequence[str]) -> Results:
    with shared_database() as database:
        comparison = Comparison(
            [NoetlServerSide(database), *peers_on(database, peers)], HERE / ".peers", plan, names
        )
        comparison.results.database = database.description()
        comparison.results.machine = describe_machine()
        comparison.measure()
    return comparison.results


def measure_all(
    sides: Sequence[Side], plan: Plan, names: Sequence[str], parts: Sequence[Measurement]
) -> Results:
    comparison = Comparison(sides, HERE / ".peers", plan, names)
    comparison.results.parts = list(parts)
    comparison.results.machine = describe_machine()
    comparison.measure()
    comparison.count_syncs()
    return comparison.results


def report_lines(results: Results, *, markdown: bool) -> list[str]:
    render = render_markdown if markdown else render_plain
    lines = [line for table in all_tables(results) for line in render(table)]
    return [*lines, *[f"- {note}" if markdown else note for note in notes(results)]]


def measure_parts() -> list[Measurement]:
    return [
        *measure_load(),
        *measure_parse(),
        *measure_append(),
        *measure_python_tool(),
        *measure_postgres_copy(),
        *measure_duckdb_tool(),
        *measure_large_store(),
    ]


if __name__ == "__main__":
    main()
