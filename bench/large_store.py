"""What it takes to look into a large store: a million events in a thousand executions.

The store is made with bulk appends; the commands are real processes, so the start of Python and what
they import is in the figures.
"""

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.measurement import Measurement
from noetl.engine.catalog.playbook_record import PlaybookSource, encode_source
from noetl.engine.effects import effects_of
from noetl.events.bodies import (
    EventBody,
    LoopDone,
    LoopIterationCompleted,
    LoopIterationStarted,
    LoopStarted,
    PlaybookExecutionRequested,
    PlaybookProcessed,
    PlaybookRequestEvaluated,
    StepScheduled,
    TaskProcessed,
    TaskStarted,
    TokenClaimed,
    TokenEnqueued,
    WorkflowFinished,
    WorkflowStarted,
)
from noetl.events.codec import FORMAT, encode
from noetl.events.event_kind import kind_of_body
from noetl.loader import load
from noetl.model.outcome import succeeded
from noetl.ports.store import Append, Committed, merge_effects
from noetl.ports.store import Row as Stored
from noetl.stores import open_store
from noetl.stores.home_folder import Home

EXECUTIONS = 1_000
ITERATIONS = 247
"""Each has four events; with what is around them that makes a thousand."""
RUNS = 3
START = 1_700_000_000_000_000
SECOND = 1_000_000
PLAYBOOK = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: large, path: bench/large }
workflow:
  - step: start
    loop: { in: "{{ range(0, 247) | list }}", iterator: item }
    tool:
      - { name: say, kind: python, code: "result = 1" }
"""


def bodies(playbook_hash: str, number: int, iterations: int = ITERATIONS) -> Iterator[EventBody]:
    """The history of one execution: a loop that went well."""
    run = "r5"
    yield PlaybookExecutionRequested(path="bench/large", hash=playbook_hash, labels={"n": str(number % 10)})
    yield PlaybookRequestEvaluated()
    yield WorkflowStarted()
    yield TokenEnqueued(step="start")
    yield StepScheduled(step="start", tokens=("t4",))
    yield TokenClaimed(run=run, worker="w")
    yield LoopStarted(run=run, total=iterations, items=list(range(iterations)))
    for index in range(iterations):
        yield LoopIterationStarted(run=run, index=index)
        yield TaskStarted(
            run=run, task="say", iteration=index, input={"code": "result = 1", "padding": "x" * 80}
        )
        outcome = succeeded({"item": index, "padding": "y" * 80})
        yield TaskProcessed(run=run, task="say", iteration=index, outcome=outcome)
        yield LoopIterationCompleted(run=run, index=index, status="success", result=index)
    yield LoopDone(run=run, total=iterations, succeeded=iterations, result=list(range(iterations)))
    yield WorkflowFinished(status="completed")
    yield PlaybookProcessed(status="completed", result=list(range(iterations)))


def append_of(execution_id: str, events: Sequence[EventBody], start: int) -> Append:
    rows, effects = [], effects_of(start, events[0])
    for seq, body in enumerate(events, 1):
        ts = start + seq
        rows.append(Stored(seq, ts, kind_of_body(body).number, FORMAT, encode(body), seq == len(events)))
        effects = merge_effects(effects, effects_of(ts, body))
    return Append(execution_id=execution_id, expected_version=0, rows=rows, effects=effects)


def name_of(number: int) -> str:
    return f"{START // 1_000 + number:012x}"[:8] + f"-{number:04x}-7000-8000-{number:012x}"


async def fill(home: Home, executions: int = EXECUTIONS) -> int:
    """The number of events written."""
    playbook = load(PLAYBOOK)
    store = open_store(f"sqlite:///{home.store}")
    await store.put_playbook(playbook.hash, encode_source(PlaybookSource(PLAYBOOK, "large.yaml"), playbook))
    written = 0
    for number in range(executions):
        append = append_of(name_of(number), [*bodies(playbook.hash, number)], START + number * SECOND)
        if await store.commit([append]) != [Committed(len(append.rows))]:
            raise RuntimeError("an append was refused")
        written += len(append.rows)
    await store.close()
    return written


def measure_large_store() -> Iterator[Measurement]:
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder) / ".noetl")
        home.make()
        begin = time.perf_counter()
        written = asyncio.run(fill(home))
        yield Measurement("large store: events written", written / (time.perf_counter() - begin), "events/s")
        yield Measurement("large store: size", home.store.stat().st_size / 1e6, "MB")
        yield Measurement(
            "large store: open", min(_measure_open(home) for _ in range(RUNS)), "s", "under 0.5"
        )
        middle = name_of(EXECUTIONS // 2)
        for arguments in (["list"], ["list", "--label", "n=3"], ["show", middle], ["events", middle]):
            goal = "under 0.5" if arguments[0] in ("list", "show") else ""
            title = " ".join(word for word in arguments if word != middle)
            yield Measurement(f"large store: executions {title}", _best(folder, arguments), "s", goal)
        yield Measurement("large store: noetl --version", _best(folder, []), "s")


def _measure_open(home: Home) -> float:
    async def open_and_list() -> float:
        begin = time.perf_counter()
        store = open_store(f"sqlite:///{home.store}")
        await store.executions()
        took = time.perf_counter() - begin
        await store.close()
        return took

    return asyncio.run(open_and_list())


def _best(folder: str, arguments: list[str]) -> float:
    command = [sys.executable, "-m", "noetl", *(["executions", *arguments] if arguments else ["--version"])]
    times = []
    for _ in range(RUNS):
        begin = time.perf_counter()
        subprocess.run(
            command, cwd=folder, env={**os.environ, "HOME": folder}, capture_output=True, check=True
        )
        times.append(time.perf_counter() - begin)
    return min(times)


if __name__ == "__main__":
    for row in measure_large_store():
        print(f"{row.name:<50} {row.value:>12,.3f} {row.unit:<10} {row.goal}".rstrip())
