"""The store in PostgreSQL beside what the database itself can do: appends, a large table, an old transaction.

On servers of its own, with fsync on. What is compared takes turns, round by round, and the median of
the rounds counts: this machine is not the same from minute to minute.
"""

import argparse
import asyncio
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from statistics import median
from uuid import UUID

import asyncpg
from uuid_utils import uuid7

from bench.measurement import Measurement
from bench.postgres_server import postgres_cluster
from noetl.model.run_rows import ReadyRun
from noetl.ports.store import Append, Committed, Effects, Row
from noetl.stores.postgres.address import DatabaseAddress
from noetl.stores.postgres.store import PostgresStore

DURABLE = {
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    "autovacuum": "on",
    "shared_buffers": "256MB",
    "max_wal_size": "4GB",
}
BODY = b'{"run":"r12","task":"fetch","outcome":' + b"1" * 211 + b"}"
"""250 bytes."""
EVENTS = 10
TOGETHER = 20
"""Executions in one commit."""
CLAIMED = 10
"""Runs that are claimed together."""
READY = ReadyRun(pool="", kinds=(), priority=0)
RAW_TABLE = """
CREATE TABLE raw_event (
  execution_id uuid NOT NULL, seq integer NOT NULL, ts bigint NOT NULL, kind smallint NOT NULL,
  body bytea NOT NULL,
  PRIMARY KEY (execution_id, seq)
)
"""
RAW_INSERT = """
INSERT INTO raw_event
SELECT * FROM unnest($1::uuid[], $2::integer[], $3::bigint[], $4::smallint[], $5::bytea[])
"""


def new_id() -> str:
    return str(uuid7())


def rows(after: int, count: int) -> list[Row]:
    numbers = range(after + 1, after + count + 1)
    return [Row(seq, 1_700_000_000_000_000 + seq, 13, 1, BODY, seq == numbers[-1]) for seq in numbers]


def append(execution_id: str, after: int, count: int, **effects: object) -> Append:
    return Append(
        execution_id=execution_id,
        expected_version=after,
        rows=rows(after, count),
        effects=Effects(**effects),  # type: ignore[arg-type]  # of its fields
    )


async def commit(store: PostgresStore, appends: list[Append]) -> None:
    wanted = [Committed(each.rows[-1].seq) for each in appends]
    if await store.commit(appends) != wanted:
        raise RuntimeError("an append was refused")


async def seconds(work: Callable[[], Awaitable[None]]) -> float:
    begin = time.perf_counter()
    await work()
    return time.perf_counter() - begin


async def compare_appends(
    store: PostgresStore, address: DatabaseAddress, rounds: int, commits: int
) -> tuple[float, float, float]:
    """Events a second through the store and into a bare table, and the median of their ratios."""
    raw = await asyncpg.connect(address.dsn)
    await raw.execute(RAW_TABLE)

    async def through_store() -> None:
        for _ in range(commits):
            await commit(store, [append(new_id(), 0, EVENTS, status="running") for _ in range(TOGETHER)])

    async def into_table() -> None:
        for _ in range(commits):
            ids = [UUID(new_id()) for _ in range(TOGETHER)]
            columns = list(
                zip(
                    *[(name, row.seq, row.ts, row.kind, row.body) for name in ids for row in rows(0, EVENTS)],
                    strict=True,
                )
            )
            await raw.execute(RAW_INSERT, *columns)

    await through_store()  # what is planned once is planned
    await into_table()
    events = commits * TOGETHER * EVENTS
    rates = []
    for number in range(rounds):
        sides = [through_store, into_table]
        times = {side: await seconds(side) for side in (sides if number % 2 else sides[::-1])}
        rates.append((events / times[through_store], events / times[into_table]))
    await raw.close()
    return (
        median(ours for ours, _ in rates),
        median(bare for _, bare in rates),
        median(ours / bare for ours, bare in rates),
    )


async def run_executions(store: PostgresStore, count: int) -> float:
    """Seconds for each of so many executions, which begin, have a run ready and claimed, and end."""

    async def work() -> None:
        for _ in range(count // TOGETHER):
            ids = [new_id() for _ in range(TOGETHER)]
            await commit(
                store,
                [append(name, 0, 4, status="running", served=True, ready={"r3": READY}) for name in ids],
            )
            await commit(store, [append(name, 4, 3, ready={"r3": None}) for name in ids])
            await commit(store, [append(name, 7, 3, status="completed", ended_at=1) for name in ids])

    return await seconds(work) / count


async def fill(store: PostgresStore, executions: int) -> None:
    """Ended ones, of three events."""
    for start in range(0, executions, 500):
        count = min(500, executions - start)
        await commit(store, [append(new_id(), 0, 3, status="completed", ended_at=1) for _ in range(count)])


async def claim(store: PostgresStore, claims: int) -> float:
    """Claims a second: runs become ready in rows, are looked for behind those that were seen, and claimed.

    A claim is in the append that takes the row away, as a server makes it.
    """
    newest = [row.id for row in await store.ready()]
    after = max(newest, default=0)

    async def work() -> None:
        nonlocal after
        for _ in range(claims // CLAIMED):
            ids = [new_id() for _ in range(CLAIMED)]
            ready = {"r2": READY}
            await commit(
                store, [append(name, 0, 2, status="running", served=True, ready=ready) for name in ids]
            )
            waiting = await store.ready(after=after, limit=CLAIMED)
            after = max(row.id for row in waiting)
            if {row.execution_id for row in waiting} != {*ids}:
                raise RuntimeError("something else is ready")
            await commit(store, [append(row.execution_id, 2, 1, ready={row.key: None}) for row in waiting])

    return claims / await seconds(work)


async def claim_behind_transaction(
    stores: tuple[PostgresStore, PostgresStore],
    held: DatabaseAddress,
    rounds: int,
    claims: int,
    minutes: float,
) -> tuple[float, float, float, int]:
    """Claims a second on a server without and on one with an old transaction; the median of their ratios.

    And how many were made on each while it was open. Not its age slows others down but the rows behind it
    that nobody may clean up. As many are left as so many minutes leave, in at most a tenth of that time.
    """
    old = await asyncpg.connect(held.dsn)
    transaction = old.transaction(isolation="repeatable_read")
    await transaction.start()
    await old.fetchval("SELECT pg_current_xact_id()")
    rate = max([await claim(store, claims) for store in stores])
    made, begin = claims, time.perf_counter()
    while made < rate * minutes * 60 and time.perf_counter() - begin < minutes * 6:
        for store in stores:
            await claim(store, claims)
        made += claims
    rates = []
    for number in range(rounds):
        turns = stores if number % 2 else stores[::-1]
        measured = {store: await claim(store, claims) for store in turns}
        rates.append((measured[stores[0]], measured[stores[1]]))
    await transaction.rollback()
    await old.close()
    return (
        median(free for free, _ in rates),
        median(behind for _, behind in rates),
        median(behind / free for free, behind in rates),
        made,
    )


async def measure(
    address: DatabaseAddress, held: DatabaseAddress, options: argparse.Namespace
) -> list[Measurement]:
    store, behind = PostgresStore(address), PostgresStore(held)
    rounds = options.rounds
    try:
        ours, bare, ratio = await compare_appends(store, address, rounds, options.commits)
        few = 1_000
        await fill(store, few)
        await run_executions(store, options.sample)
        small = median([await run_executions(store, options.sample) for _ in range(rounds)])
        begin = time.perf_counter()
        await fill(store, options.executions)
        filled = time.perf_counter() - begin
        large = median([await run_executions(store, options.sample) for _ in range(rounds)])
        free, slow, share, made = await claim_behind_transaction(
            (store, behind), held, rounds, options.claims, options.minutes
        )
    finally:
        await store.close()
        await behind.close()
    many = f"{options.executions:,}"
    return [
        Measurement("postgres store: appends, 20 times ten events", ours, "events/s"),
        Measurement("postgres store: INSERT … SELECT unnest, the same rows", bare, "events/s"),
        Measurement("postgres store: appends beside that", ratio * 100, "%", "at least 60"),
        Measurement("postgres store: an execution, few in the table", small * 1e3, "ms"),
        Measurement(f"postgres store: an execution, {many} in the table", large * 1e3, "ms"),
        Measurement("postgres store: that beside few", large / small, "times", "at most 1.2"),
        Measurement(f"postgres store: making {many} executions", filled, "s"),
        Measurement("postgres store: claims", free, "claims/s"),
        Measurement(f"postgres store: claims, a transaction open over {made:,}", slow, "claims/s"),
        Measurement("postgres store: that beside none", share * 100, "%", "at least 70"),
    ]


def measure_postgres_store(options: argparse.Namespace) -> Iterator[Measurement]:
    # The transaction is on a server of its own: it would be in the way of all else on this one.
    with postgres_cluster(**DURABLE) as cluster, postgres_cluster(**DURABLE) as held:
        free, behind = (DatabaseAddress.parse(each.server.dsn()) for each in (cluster, held))
        yield from asyncio.run(measure(free, behind, options))


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--commits", type=int, default=100, help="in a round of appends")
    parser.add_argument("--sample", type=int, default=1_000, help="executions in a round")
    parser.add_argument("--executions", type=int, default=1_000_000, help="in the table")
    parser.add_argument("--claims", type=int, default=1_000, help="in a round")
    parser.add_argument("--minutes", type=float, default=10.0, help="for which a transaction counts as open")
    for row in measure_postgres_store(parser.parse_args(arguments)):
        print(f"{row.name:<70} {row.value:>12,.2f} {row.unit:<10} {row.goal}".rstrip())


if __name__ == "__main__":
    main(sys.argv[1:])
