"""Disturbs executions on real processes, and exits with 1 if one of them is lost, or anything counted twice.

    .venv/bin/python -m bench.faults
    .venv/bin/python -m bench.faults --executions 200 --faults 20 --seed 7

Each step leaves its idempotency key in a file that the engine knows nothing of. The seed says what is done to
whom, and after how long; where that finds the processes is up to the machine.
"""

import argparse
import asyncio
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.faults import effect_tools  # noqa: F401 - who reads the histories knows its kind
from bench.faults.checked_store import CheckedStore, read_store
from bench.faults.disturbance import Disturbance, DisturbanceEnd, disturb
from bench.faults.laws import STEPS, Effect, broken_laws, by_tag, read_effects

SHOWN = 20


def main(arguments: Sequence[str] | None = None) -> int:
    words = (__doc__ or "").splitlines()[0]
    parser = argparse.ArgumentParser(prog="python -m bench.faults", description=words)
    parser.add_argument("--executions", type=int, default=2_000)
    parser.add_argument("--faults", "--kills", type=int, default=120)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--slots", type=int, default=8, help="of each worker")
    parser.add_argument("--ttl", type=int, default=10, help="seconds of a lease")
    parser.add_argument("--gap", type=float, default=1.5, help="seconds between two faults, on average")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))  # noqa: S311 - no secret
    parser.add_argument("--keep", type=Path, help="a new folder for the store and all logs")
    options = parser.parse_args(arguments)
    disturbance = Disturbance(
        executions=options.executions,
        faults=options.faults,
        workers=options.workers,
        slots=options.slots,
        ttl=options.ttl,
        gap=options.gap,
        seed=options.seed,
    )
    print(f"seed {options.seed}", flush=True)
    if options.keep is not None:
        options.keep.mkdir(parents=True)
        return report(disturbance, options.keep)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        return report(disturbance, Path(folder))


def report(disturbance: Disturbance, folder: Path) -> int:
    began = time.monotonic()
    ended = asyncio.run(disturb(disturbance, folder))
    seconds = time.monotonic() - began
    effects = read_effects(ended.effects)
    store = asyncio.run(read_store(folder / "home"))
    breaches = [
        *broken_laws(disturbance.executions, store.executions, effects, ended.hits),
        *ended.problems,
        *store.problems,
    ]
    print(*_figures(disturbance, ended, store, effects), sep="\n")
    print(f"{seconds:.0f} s")
    print(*breaches[:SHOWN], sep="\n", end="\n" if breaches else "")
    print(f"{len(breaches)} breaches" if breaches else "nothing lost, nothing recorded twice", flush=True)
    return 1 if breaches else 0


def _figures(
    disturbance: Disturbance, ended: DisturbanceEnd, store: CheckedStore, effects: Sequence[Effect]
) -> Iterator[str]:
    yield f"{disturbance.executions:,} executions of {len(STEPS)} steps on {disturbance.workers} workers"
    kinds = Counter((hit.target.partition("-")[0], hit.action) for hit in ended.hits)
    counts = ", ".join(f"{target} {action} {count}" for (target, action), count in sorted(kinds.items()))
    yield f"{len(ended.hits)} faults: {counts}"
    completed = sum(execution.status == "completed" for execution in store.executions)
    yield f"executions: {len(store.executions):,} in the store, {completed:,} completed"
    outcomes = sum(len(execution.outcomes) for execution in store.executions)
    yield f"log: {store.events:,} events, {outcomes:,} attempts with an outcome; the store was checked"
    yield f"verified: {store.verified:,} histories come out the same"
    repeated = [same for same in by_tag(effects).values() if len(same) > 1]
    repetitions = sum(len(same) - 1 for same in repeated)
    yield f"effects: {len(effects):,} seen, {repetitions} of them repetitions, of {len(repeated)} keys"


if __name__ == "__main__":
    sys.exit(main())
