import asyncio

import pytest

from noetl.ports.store import Append, Committed, Conflict, Effects, KeyTaken, Row, Store, StoreClosed
from noetl.testing.store.store_fixtures import begin_execution, new_append, new_rows, store_test

NOTHING = Effects()


class CommitCases:
    """Appending: order, atomicity, conflicts, start keys."""

    @store_test
    async def test_an_append_gives_the_new_version(self, store: Store) -> None:
        assert await store.commit([new_append("a", 0, NOTHING, NOTHING)]) == [Committed(2)]
        assert await store.commit([new_append("a", 2)]) == [Committed(3)]

    @store_test
    async def test_nothing_to_append_is_fine(self, store: Store) -> None:
        assert await store.commit([]) == []

    @store_test
    async def test_a_wrong_version_is_a_conflict_with_the_current_one(self, store: Store) -> None:
        await begin_execution(store, "a", NOTHING, NOTHING)
        assert await store.commit([new_append("a", 1)]) == [Conflict(2)]
        assert await store.commit([new_append("a", 3)]) == [Conflict(2)]
        assert len(await store.read("a")) == 2

    @store_test
    async def test_the_same_append_again_is_a_conflict(self, store: Store) -> None:
        first = new_append("a", 0, NOTHING, NOTHING)
        assert await store.commit([first]) == [Committed(2)]
        assert await store.commit([first]) == [Conflict(2)]

    @store_test
    async def test_an_execution_that_does_not_exist_is_at_version_0(self, store: Store) -> None:
        assert await store.commit([new_append("a", 4)]) == [Conflict(0)]
        assert await store.execution("a") is None

    @store_test
    async def test_executions_in_one_commit_are_judged_apart(self, store: Store) -> None:
        await begin_execution(store, "b")
        verdicts = await store.commit(
            [new_append("a", 0), new_append("b", 0), new_append("c", 0, NOTHING, NOTHING)]
        )
        assert verdicts == [Committed(1), Conflict(1), Committed(2)]
        assert [len(await store.read(name)) for name in "abc"] == [1, 1, 2]

    @store_test
    async def test_appends_to_one_execution_build_on_each_other(self, store: Store) -> None:
        verdicts = await store.commit([new_append("a", 0), new_append("a", 1), new_append("a", 2)])
        assert verdicts == [Committed(1), Committed(2), Committed(3)]

    @store_test
    async def test_what_was_built_on_a_refused_append_is_refused(self, store: Store) -> None:
        await begin_execution(store, "a")
        assert await store.commit([new_append("a", 0), new_append("a", 2)]) == [Conflict(1), Conflict(1)]

    @store_test
    async def test_commits_that_do_not_wait_for_each_other_keep_their_order(self, store: Store) -> None:
        verdicts = await asyncio.gather(*(store.commit([new_append("a", version)]) for version in range(200)))
        assert verdicts == [[Committed(version)] for version in range(1, 201)]
        assert [row.seq for row in await store.read("a")] == [*range(1, 201)]

    @store_test
    async def test_of_two_that_append_at_once_one_wins(self, store: Store) -> None:
        verdicts = await asyncio.gather(*(store.commit([new_append("a", 0)]) for _ in range(10)))
        assert sorted(map(str, verdicts)) == sorted(map(str, [[Committed(1)], *[[Conflict(1)]] * 9]))

    @store_test
    async def test_a_refused_append_has_no_effects(self, store: Store) -> None:
        await begin_execution(store, "a", Effects(status="running", timers={"t": 1}))
        change = Effects(status="ended", timers={"t": None, "u": 2}, outbox={"m": b"1"})
        assert await store.commit([new_append("a", 0, change, start_key="key")]) == [Conflict(1)]
        record = await store.execution("a")
        assert record
        assert record.status == "running"
        assert [timer.key for timer in await store.timers()] == ["t"]
        assert await store.outbox() == []
        assert await store.commit([new_append("b", 0, start_key="key")]) == [Committed(1)]

    @store_test
    async def test_a_start_key_starts_one_execution(self, store: Store) -> None:
        first = new_append("a", 0, start_key="key")
        assert await store.commit([first, new_append("b", 0, start_key="key")]) == [
            Committed(1),
            KeyTaken("a"),
        ]
        assert await store.commit([new_append("c", 0, start_key="key")]) == [KeyTaken("a")]
        assert await store.commit([first]) == [KeyTaken("a")]
        assert await store.commit([new_append("c", 0, start_key="another")]) == [Committed(1)]
        assert await store.execution("b") is None

    @store_test
    async def test_a_large_append_is_one_append(self, store: Store) -> None:
        many = [NOTHING] * 2_345
        assert (
            await store.commit([new_append("a", 0, *many), new_append("b", 0, *many)])
            == [Committed(2_345)] * 2
        )
        assert [row.seq for row in await store.read("a", after=2_000)] == [*range(2_001, 2_346)]

    @store_test
    async def test_many_executions_in_one_commit(self, store: Store) -> None:
        names = [f"x{number}" for number in range(1_100)]
        begun = [new_append(name, 0, Effects(status="running")) for name in names]
        assert await store.commit(begun) == [Committed(1)] * 1_100
        ended = [new_append(name, 1, Effects(status="ended", timers={"t": 1})) for name in names]
        assert await store.commit(ended) == [Committed(2)] * 1_100
        assert len(await store.timers(limit=2_000)) == 1_100

    @store_test
    async def test_rows_that_do_not_follow_are_refused(self, store: Store) -> None:
        good = new_rows(0, NOTHING, NOTHING, NOTHING)
        for wrong in ([], good[1:], [good[0], good[2]], [*good[:2], good[1]], good[:2]):
            with pytest.raises(ValueError, match="a: "):
                await store.commit([Append(execution_id="a", expected_version=0, rows=wrong)])
        with pytest.raises(ValueError, match="start key"):
            await store.commit([new_append("a", 1, start_key="key")])
        assert await store.execution("a") is None

    @store_test
    async def test_any_bytes_and_numbers_come_back(self, store: Store) -> None:
        bodies = [b"", bytes(range(256)), b"\0" * 100_000, '{"ü": "\U0001f40d"}'.encode()]
        numbers = [1, 2**53 + 1, -(2**40), 2**62]
        written = [
            Row(seq, ts, ts % 30_000, 9, body, seq == 4)
            for seq, (ts, body) in enumerate(zip(numbers, bodies, strict=True), 1)
        ]
        await store.commit([Append(execution_id="ü/1", expected_version=0, rows=written)])
        assert await store.read("ü/1") == written

    @store_test
    async def test_a_cancelled_commit_leaves_the_store_usable(self, store: Store) -> None:
        task = asyncio.create_task(store.commit([new_append("a", 0)]))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        [verdict] = await store.commit([new_append("a", 0)])
        assert verdict in (Committed(1), Conflict(1))
        assert len(await store.read("a")) == 1

    @store_test
    async def test_a_closed_store_says_so(self, store: Store) -> None:
        await begin_execution(store, "a")
        await store.close()
        await store.close()
        for call in (store.commit([new_append("a", 1)]), store.read("a"), store.delete("a"), store.check()):
            with pytest.raises(StoreClosed):
                await call

    @store_test
    async def test_closing_waits_for_what_was_asked(self, store: Store) -> None:
        commits = [asyncio.create_task(store.commit([new_append("a", version)])) for version in range(50)]
        await asyncio.sleep(0)
        await store.close()
        assert await asyncio.gather(*commits) == [[Committed(version)] for version in range(1, 51)]
