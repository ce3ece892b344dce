"""A server with an execution of a million events: its start, a look at it, memory, beside shorter ones."""

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bench import large_store
from bench.measurement import Measurement
from bench.process_memory import peak_bytes
from bench.server_process import admin_token, started_server
from noetl import AsyncClient
from noetl.engine.catalog.playbook_record import PlaybookSource, encode_source
from noetl.engine.effects import effects_of
from noetl.events.bodies import EventBody
from noetl.events.codec import FORMAT, encode
from noetl.events.event_kind import kind_of_body
from noetl.loader import load
from noetl.model.run_rows import LeasedRun
from noetl.ports.store import Append, Committed, Effects, Row, Store, merge_effects
from noetl.stores import open_store
from noetl.stores.home_folder import Home

EVENTS_OF_ITERATION = 4
IN_APPEND = 1_000
LIVING, ENDED = (large_store.name_of(number) for number in (1, 2))
LOOKS = 3


async def write_history(store: Store, execution_id: str, events: list[EventBody], leases: Effects) -> None:
    for start in range(0, len(events), IN_APPEND):
        part = events[start : start + IN_APPEND]
        rows, effects = [], leases if not start else Effects()
        for seq, body in enumerate(part, start + 1):
            ts = large_store.START + seq
            rows.append(Row(seq, ts, kind_of_body(body).number, FORMAT, encode(body), body is part[-1]))
            effects = merge_effects(effects, effects_of(ts, body))
        append = Append(execution_id=execution_id, expected_version=start, rows=rows, effects=effects)
        if await store.commit([append]) != [Committed(start + len(part))]:
            raise RuntimeError("an append was refused")


async def fill(home: Home, events: int) -> None:
    """An execution whose loop is under way, as a server leaves it, and one that has ended."""
    iterations = max(1, (events - 10) // EVENTS_OF_ITERATION)
    text = large_store.PLAYBOOK.replace("247", str(iterations))
    playbook = load(text)
    store = open_store(f"sqlite:///{home.store}")
    await store.put_playbook(playbook.hash, encode_source(PlaybookSource(text, "long.yaml"), playbook))
    history = [*large_store.bodies(playbook.hash, 0, iterations)]
    lease = Effects(served=True, leases={"r5": LeasedRun(session="gone", fence=6)})
    await write_history(store, LIVING, history[:-3], lease)
    await write_history(store, ENDED, history, Effects(served=True))
    await store.close()


async def look(url: str, token: str) -> tuple[float, float]:
    """Seconds for what `show` asks and for the newest page of events: medians, after a first time."""
    times: dict[str, list[float]] = {"show": [], "page": []}
    async with AsyncClient(url, token) as client:
        for number in range(LOOKS + 1):
            begin = time.perf_counter()
            detail = await client.show(ENDED)
            if detail.status != "completed":
                raise RuntimeError(f"it is {detail.status}")
            between = time.perf_counter()
            await client.events(ENDED, limit=100)
            if number:
                times["show"].append(between - begin)
                times["page"].append(time.perf_counter() - between)
    return statistics.median(times["show"]), statistics.median(times["page"])


def measure_size(folder: Path, events: int) -> tuple[float, float, float, int]:
    """Seconds of a start, of `show` and of a page, and bytes at most."""
    home = Home(folder)
    home.make()
    asyncio.run(fill(home, events))
    starts = []
    for _ in range(LOOKS):
        with started_server(folder, folder / "server.log") as server:
            starts.append(server.seconds)
    with started_server(folder, folder / "server.log") as server:
        show, page = asyncio.run(look(server.url, admin_token(folder)))
        return statistics.median(starts), show, page, peak_bytes([server.process.pid])


def measure_long_history(small: int, middle: int, large: int) -> Iterator[Measurement]:
    with tempfile.TemporaryDirectory() as name:
        sizes = {size: measure_size(Path(name, str(size)), size) for size in (small, middle, large)}
    for size, (start, show, page, memory) in sizes.items():
        goal = "under 2" if size == large else ""
        yield Measurement(f"long history: start beside {size:,} events", start, "s", goal)
        yield Measurement(f"long history: show of {size:,} events", show * 1e3, "ms")
        yield Measurement(f"long history: a page of {size:,} events", page * 1e3, "ms")
        yield Measurement(f"long history: memory with {size:,} events", memory / 1e6, "MB")
    of_large, of_small, of_middle = sizes[large], sizes[small], sizes[middle]
    yield Measurement(
        "long history: show beside a small one", of_large[1] / of_small[1], "times", "at most 1.5"
    )
    yield Measurement(
        "long history: page beside a small one", of_large[2] / of_small[2], "times", "at most 1.5"
    )
    yield Measurement(
        f"long history: memory beside {middle:,} events", of_large[3] / of_middle[3], "times", "at most 2"
    )


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", type=int, default=1_000)
    parser.add_argument("--middle", type=int, default=100_000)
    parser.add_argument("--large", type=int, default=1_000_000)
    options = parser.parse_args(arguments)
    for row in measure_long_history(options.small, options.middle, options.large):
        print(f"{row.name:<60} {row.value:>12,.2f} {row.unit:<6} {row.goal}".rstrip())


if __name__ == "__main__":
    main(sys.argv[1:])
