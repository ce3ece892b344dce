from noetl.ports.store import Effects, Store
from noetl.testing.store.store_fixtures import (
    begin_execution,
    commit_accepted,
    new_append,
    new_rows,
    store_test,
)

NOTHING = Effects()


class HistoryCases:
    """Reading rows: of one execution, and of all in the order of commits."""

    @store_test
    async def test_rows_come_back_as_they_were_written(self, store: Store) -> None:
        await begin_execution(store, "a", Effects(status="one"), Effects(status="two"), ts=1_000)
        await commit_accepted(store, new_append("a", 2, Effects(path="p"), ts=5_000))
        first = new_rows(0, Effects(status="one"), Effects(status="two"), ts=1_000)
        assert await store.read("a") == [*first, *new_rows(2, Effects(path="p"), ts=5_000)]

    @store_test
    async def test_the_end_of_an_append_is_marked(self, store: Store) -> None:
        await commit_accepted(
            store,
            new_append("a", 0, NOTHING, NOTHING),
            new_append("a", 2),
            new_append("a", 3, NOTHING, NOTHING),
        )
        assert [row.last for row in await store.read("a")] == [False, True, True, False, True]

    @store_test
    async def test_reading_goes_on_where_it_stopped(self, store: Store) -> None:
        await begin_execution(store, "a", *[NOTHING] * 25)
        seen: list[int] = []
        while page := await store.read("a", after=seen[-1] if seen else 0, limit=10):
            assert len(page) <= 10
            seen += [row.seq for row in page]
        assert seen == [*range(1, 26)]

    @store_test
    async def test_an_unknown_execution_has_no_rows(self, store: Store) -> None:
        await begin_execution(store, "a")
        assert await store.read("b") == []
        assert await store.read("a", after=1) == []

    @store_test
    async def test_the_feed_has_all_rows_in_the_order_of_commits(self, store: Store) -> None:
        await commit_accepted(store, new_append("a", 0, NOTHING, NOTHING), new_append("b", 0))
        await commit_accepted(store, new_append("b", 1))
        await commit_accepted(store, new_append("a", 2))
        feed = await store.feed()
        assert [(entry.execution_id, entry.row.seq) for entry in feed] == [
            *[("a", 1), ("a", 2), ("b", 1)],
            *[("b", 2), ("a", 3)],
        ]
        assert [entry.row for entry in feed if entry.execution_id == "a"] == await store.read("a")
        positions = [entry.pos for entry in feed]
        assert positions == sorted(set(positions))
        assert await store.feed_end() == positions[-1]

    @store_test
    async def test_the_feed_goes_on_where_it_stopped(self, store: Store) -> None:
        await begin_execution(store, "a", *[NOTHING] * 10)
        first = await store.feed(limit=4)
        assert [entry.row.seq for entry in first] == [1, 2, 3, 4]
        await commit_accepted(store, new_append("a", 10))
        remaining = await store.feed(after=first[-1].pos)
        assert [entry.row.seq for entry in remaining] == [5, 6, 7, 8, 9, 10, 11]
        assert await store.feed(after=remaining[-1].pos) == []

    @store_test
    async def test_a_position_is_not_used_again_after_a_deletion(self, store: Store) -> None:
        await begin_execution(store, "a")
        await begin_execution(store, "b", *[NOTHING] * 5)
        end = (await store.feed())[-1].pos
        await store.delete("b")
        await begin_execution(store, "c")
        assert [entry.execution_id for entry in await store.feed(after=end)] == ["c"]
