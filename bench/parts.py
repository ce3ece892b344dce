"""Says which part of the engine a repeated run of a workload spends its processor time in.

    .venv/bin/python -m bench.parts w3b
    .venv/bin/python -m bench.parts w4b --seconds 20 --instructions 1600000

Samples are taken by processor time, about 250 a second: on a busy machine it takes longer, and the shares are
nearly the same.
"""

import argparse
import signal
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from types import FrameType
from typing import NamedTuple

from bench.workload_table import WORKLOADS
from bench.workloads.documents import document_of
from bench.workloads.engine import BenchEngine, with_engine

SHAPES = ("chain", "loop")
WARM_UPS = 3
INTERVAL = 0.001
"""Seconds between two samples; the system's own clock may tick more slowly."""
REST = "event loop"


class PartRule(NamedTuple):
    """What belongs to a part: code in files whose path has `path` in it, or only these functions of them."""

    part: str
    path: str
    functions: frozenset[str] = frozenset()


def _functions(names: str) -> frozenset[str]:
    return frozenset(names.split())


RULES = (
    PartRule("encode", "noetl/events/codec.py"),
    PartRule("fold", "noetl/kernel/state/"),
    PartRule("decide", "noetl/kernel/"),
    PartRule("SQL", "noetl/stores/sqlite/"),
    PartRule("SQL", "noetl/stores/checksums.py"),
    PartRule("attempt", "noetl/worker/attempt.py"),
    PartRule("attempt", "noetl/tools/"),
    PartRule("begin", "noetl/engine/engine.py", _functions("start begin")),
    PartRule("begin", "noetl/engine/service.py", _functions("begin")),
    PartRule("begin", "noetl/stores/ownership.py", _functions("acquire")),
    PartRule("begin", "noetl/engine/registry.py", _functions("add expect")),
    PartRule("end", "noetl/engine/engine.py", _functions("wait_for_end")),
    PartRule("end", "noetl/engine/registry.py", _functions("remove over")),
    PartRule("end", "noetl/stores/ownership.py", _functions("release")),
    PartRule("append", "noetl/engine/commit_log.py"),
    PartRule("append", "noetl/engine/execution.py"),
    PartRule("append", "noetl/engine/service.py"),
    PartRule("append", "noetl/ports/store.py"),
    PartRule("dispatch", "noetl/engine/scheduler.py"),
    PartRule("dispatch", "noetl/worker/"),
)
"""The first that fits counts. `append` is what lies between decisions and the store."""


def part_of(stack: Iterable[tuple[str, str]]) -> str:
    """Whose time it is, given files and functions, the innermost first: that of the first with a part."""
    for file, function in stack:
        for rule in RULES:
            if rule.path in file and (not rule.functions or function in rule.functions):
                return rule.part
    return REST


def _frames(frame: FrameType | None) -> Iterator[tuple[str, str]]:
    while frame is not None:
        yield frame.f_code.co_filename, frame.f_code.co_name
        frame = frame.f_back


def sample_parts(name: str, seconds: float) -> Counter[str]:
    """Samples by part, of runs one lap after the other until so much processor time is used."""
    workload = WORKLOADS[name]
    samples: Counter[str] = Counter()

    def take_sample(_: int, frame: FrameType | None) -> None:
        samples[part_of(_frames(frame))] += 1

    async def work(engine: BenchEngine) -> None:
        source = document_of(workload)
        for _ in range(WARM_UPS):
            await engine.run(source, workload.runs)
        end = time.process_time() + seconds
        signal.signal(signal.SIGPROF, take_sample)
        signal.setitimer(signal.ITIMER_PROF, INTERVAL, INTERVAL)
        while time.process_time() < end:
            await engine.run(source, workload.runs)
        signal.setitimer(signal.ITIMER_PROF, 0)

    with_engine(work)
    return samples


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.parts", description=(__doc__ or "").splitlines()[0]
    )
    names = [name for name, workload in WORKLOADS.items() if workload.shape in SHAPES]
    parser.add_argument("workload", choices=names)
    parser.add_argument("--seconds", type=float, default=40, help="of processor time")
    parser.add_argument("--instructions", type=int, default=0, help="of a step, to be shared out")
    options = parser.parse_args(arguments)
    samples = sample_parts(options.workload, options.seconds)
    total = sum(samples.values())
    print(f"{options.workload}: {total:,} samples")
    for part, count in samples.most_common():
        instructions = f"{options.instructions * count / total:>12,.0f}" if options.instructions else ""
        print(f"{count / total:>7.1%}{instructions}  {part}")


if __name__ == "__main__":
    main()
