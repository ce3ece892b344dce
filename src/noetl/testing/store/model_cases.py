"""A store behaves like a dictionary of lists, whoever writes in whatever order."""

import asyncio
from collections.abc import Sequence
from functools import reduce
from typing import NamedTuple, TypeAlias

from hypothesis import given, settings
from hypothesis import strategies as st

from noetl.ports.store import (
    Append,
    Committed,
    Conflict,
    Effects,
    KeyTaken,
    Row,
    Store,
    Verdict,
    merge_effects,
)
from noetl.testing.store.store_fixtures import StoreOpener, effects_in_row, new_append

_NAMES = "abc"
_KEYS = ("", "", "k", "l")


class _Attempt(NamedTuple):
    """An append to `execution`, from `off` below the version that the model has."""

    execution: str
    off: int
    effects: tuple[Effects, ...]
    key: str


_Steps: TypeAlias = Sequence[tuple[int, list[list[_Attempt]] | str]]

_effects = st.builds(
    Effects,
    status=st.sampled_from([None, "running", "ended"]),
    labels=st.sampled_from([None, {}, {"k": "v"}]),
    next_wake=st.sampled_from([None, 0, 5]),
    timers=st.dictionaries(st.sampled_from("tu"), st.none() | st.integers(0, 9), max_size=2),
    outbox=st.dictionaries(st.sampled_from("mn"), st.none() | st.binary(max_size=2), max_size=2),
)
_attempt = st.builds(
    _Attempt,
    st.sampled_from(_NAMES),
    st.sampled_from([0, 0, 0, 0, 1, -1]),
    st.lists(_effects, min_size=1, max_size=4).map(tuple),
    st.sampled_from(_KEYS),
)
_writer = st.integers(0, 2)
_commits = st.lists(st.lists(_attempt, min_size=1, max_size=3), min_size=1, max_size=3)
_steps = st.lists(st.tuples(_writer, _commits | st.sampled_from(_NAMES)), max_size=10)
"""Each step is what one writer does: several commits at once, or a deletion."""


class _Model:
    def __init__(self) -> None:
        self.rows: dict[str, list[Row]] = {}
        self.keys: dict[str, str] = {}

    def try_append(self, attempt: _Attempt) -> tuple[Append, Verdict]:
        """The append, and what must come of it."""
        rows = self.rows.get(attempt.execution, [])
        expected = max(0, len(rows) - attempt.off)
        key = "" if expected else attempt.key
        append = new_append(attempt.execution, expected, *attempt.effects, start_key=key)
        if key in self.keys:
            return append, KeyTaken(self.keys[key])
        if expected != len(rows):
            return append, Conflict(len(rows))
        self.rows[attempt.execution] = [*rows, *append.rows]
        if key:
            self.keys[key] = attempt.execution
        return append, Committed(expected + len(append.rows))

    def delete(self, execution: str) -> bool:
        self.keys = {key: owner for key, owner in self.keys.items() if owner != execution}
        return self.rows.pop(execution, None) is not None

    async def compare(self, store: Store) -> None:
        for name in _NAMES:
            assert await store.read(name) == self.rows.get(name, [])
        records = {record.execution_id: record for record in (await store.executions()).executions}
        assert records.keys() == self.rows.keys()
        timers, outbox = set(), set()
        for name, rows in self.rows.items():
            effects = reduce(merge_effects, map(effects_in_row, rows))
            assert (records[name].version, records[name].status) == (len(rows), effects.status or "")
            timers |= {(due, name, key) for key, due in effects.timers.items() if due is not None}
            outbox |= {(name, key, body) for key, body in effects.outbox.items() if body is not None}
        assert set(await store.timers()) == timers
        assert {message[1:] for message in await store.outbox()} == outbox
        assert await store.check(effects_in_row) == []


async def _check_steps(stores: Sequence[Store], steps: _Steps) -> None:
    for record in (await stores[0].executions()).executions:
        await stores[0].delete(record.execution_id)
    model = _Model()
    for writer, step in steps:
        store = stores[writer % len(stores)]
        if isinstance(step, str):
            assert await store.delete(step) == model.delete(step)
            continue
        attempts = [[model.try_append(attempt) for attempt in commit] for commit in step]
        commits = (store.commit([append for append, _ in commit]) for commit in attempts)
        expected = [[verdict for _, verdict in commit] for commit in attempts]
        assert await asyncio.gather(*commits) == expected
    await model.compare(stores[-1])


def _check_stores(open_store: StoreOpener, writers: int) -> None:
    with asyncio.Runner() as runner:

        async def open_all() -> list[Store]:
            return [open_store() for _ in range(writers)]

        # Inside, because Hypothesis wants a test to have one class and no fixtures.
        @settings(max_examples=40)
        @given(_steps)
        def behaves(steps: _Steps) -> None:
            runner.run(_check_steps(stores, steps))

        stores = runner.run(open_all())
        try:
            behaves()
        finally:
            for store in stores:
                runner.run(store.close())


class ModelCases:
    """One store, many commits at once."""

    def test_a_store_is_a_dictionary_of_lists(self, open_store: StoreOpener) -> None:
        _check_stores(open_store, 1)


class SharedModelCases:
    """Three stores that take turns."""

    def test_several_stores_are_one_dictionary_of_lists(self, open_store: StoreOpener) -> None:
        _check_stores(open_store, 3)
