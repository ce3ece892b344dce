"""What the tests of stores are written with."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import reduce
from typing import Any, TypeAlias

import msgspec

from noetl.ports.catalog import AuditEntry
from noetl.ports.store import NO_EFFECTS, Append, Committed, Effects, Row, Store, merge_effects

StoreOpener: TypeAlias = Callable[[], Store]


def store_test(test: Callable[[Any, Store], Awaitable[None]]) -> Callable[[Any, StoreOpener], None]:
    """A test of one store, which is open while it runs."""

    def run(self: Any, open_store: StoreOpener) -> None:
        async def play() -> None:
            store = open_store()
            try:
                await test(self, store)
            finally:
                await store.close()

        asyncio.run(play())

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run


def two_store_test(
    test: Callable[[Any, Store, Store], Awaitable[None]],
) -> Callable[[Any, StoreOpener], None]:
    """A test of two stores on the same data."""

    def run(self: Any, open_store: StoreOpener) -> None:
        async def play() -> None:
            first, second = open_store(), open_store()
            try:
                await test(self, first, second)
            finally:
                await first.close()
                await second.close()

        asyncio.run(play())

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run


def effects_in_row(row: Row) -> Effects:
    """Rows of these tests say in their bodies what they change."""
    return msgspec.json.decode(row.body, type=Effects)


def new_append(
    execution_id: str,
    expected_version: int,
    *effects: Effects,
    ts: int = 0,
    start_key: str = "",
    answers: tuple[int, ...] = (),
    audit: tuple[AuditEntry, ...] = (),
) -> Append:
    """One row for each of `effects`, or one that changes nothing. The time of row n is `ts` + n."""
    changes = effects or (NO_EFFECTS,)
    return Append(
        execution_id=execution_id,
        expected_version=expected_version,
        rows=new_rows(expected_version, *changes, ts=ts),
        effects=reduce(merge_effects, changes),
        start_key=start_key,
        answers=answers,
        audit=audit,
    )


def new_rows(after: int, *effects: Effects, ts: int = 0) -> list[Row]:
    last = after + len(effects)
    return [
        Row(seq, ts + seq, seq % 7, 1 + seq % 2, msgspec.json.encode(effect), seq == last)
        for seq, effect in enumerate(effects, after + 1)
    ]


async def begin_execution(store: Store, execution_id: str, *effects: Effects, ts: int = 0) -> None:
    """Makes an execution with its first append."""
    await commit_accepted(store, new_append(execution_id, 0, *effects, ts=ts))


async def commit_accepted(store: Store, *appends: Append) -> None:
    """Commits what must not be refused."""
    verdicts = await store.commit(appends)
    assert all(isinstance(verdict, Committed) for verdict in verdicts), verdicts
