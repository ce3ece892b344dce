import asyncio

from noetl.ports.store import Committed, Conflict, Effects, KeyTaken, Snapshot, Store
from noetl.testing.store.store_fixtures import (
    StoreOpener,
    begin_execution,
    commit_accepted,
    effects_in_row,
    new_append,
    two_store_test,
)

NOTHING = Effects()


class SharingCases:
    """Several stores on the same data, at once and one after the other."""

    def test_everything_is_there_when_it_is_opened_again(self, open_store: StoreOpener) -> None:
        async def write() -> None:
            store = open_store()
            facts = Effects(status="running", labels={"k": "v"}, timers={"t": 1}, outbox={"m": b"1"})
            await commit_accepted(store, new_append("a", 0, facts, NOTHING, start_key="key"))
            await store.put_snapshot("a", Snapshot(2, 1, b"state"))
            await store.put_playbook("h", b"document")
            await store.send("a", b"letter")
            await store.close()

        async def read() -> None:
            store = open_store()
            record = await store.execution("a")
            assert record
            assert (record.version, record.status, record.labels) == (2, "running", {"k": "v"})
            assert [row.seq for row in await store.read("a")] == [1, 2]
            assert [(timer.key, timer.due) for timer in await store.timers()] == [("t", 1)]
            assert [message.body for message in await store.outbox()] == [b"1"]
            assert [letter.body for letter in await store.inbox(["a"])] == [b"letter"]
            assert await store.snapshot("a", state_format=1) == (2, 1, b"state")
            assert await store.playbook("h") == b"document"
            assert await store.commit([new_append("b", 0, start_key="key")]) == [KeyTaken("a")]
            assert await store.check(effects_in_row) == []
            await store.close()

        asyncio.run(write())
        asyncio.run(read())

    @two_store_test
    async def test_each_sees_what_the_other_wrote(self, first: Store, second: Store) -> None:
        await begin_execution(first, "a")
        assert len(await second.read("a")) == 1
        await commit_accepted(second, new_append("a", 1))
        assert [row.seq for row in await first.read("a")] == [1, 2]
        assert len(await first.feed()) == 2

    @two_store_test
    async def test_the_version_is_judged_over_all(self, first: Store, second: Store) -> None:
        await begin_execution(first, "a")
        assert await second.commit([new_append("a", 0)]) == [Conflict(1)]
        assert await second.commit([new_append("a", 1)]) == [Committed(2)]
        assert await first.commit([new_append("a", 1)]) == [Conflict(2)]

    @two_store_test
    async def test_what_the_other_deleted_is_gone(self, first: Store, second: Store) -> None:
        await begin_execution(first, "a")
        await second.delete("a")
        assert await first.commit([new_append("a", 1)]) == [Conflict(0)]
        assert await first.commit([new_append("a", 0)]) == [Committed(1)]

    @two_store_test
    async def test_those_who_append_at_once_lose_nothing(self, first: Store, second: Store) -> None:
        async def write(store: Store) -> int:
            version = refused = 0
            for _ in range(100):
                while (verdict := (await store.commit([new_append("a", version)]))[0]) != Committed(
                    version + 1
                ):
                    assert isinstance(verdict, Conflict)
                    version = verdict.version
                    refused += 1
                version += 1
                await asyncio.sleep(0)
            return refused

        await asyncio.gather(write(first), write(second))
        assert [row.seq for row in await first.read("a")] == [*range(1, 201)]
        assert await first.check(effects_in_row) == []

    @two_store_test
    async def test_a_start_key_starts_one_execution_over_all(self, first: Store, second: Store) -> None:
        verdicts = await asyncio.gather(
            first.commit([new_append("a", 0, start_key="key")]),
            second.commit([new_append("b", 0, start_key="key")]),
        )
        assert sorted(type(verdict).__name__ for [verdict] in verdicts) == ["Committed", "KeyTaken"]

    @two_store_test
    async def test_changes_ring_at_once_and_after_the_other_wrote(self, first: Store, second: Store) -> None:
        await begin_execution(first, "a")
        rings = aiter(first.changes())
        await anext(rings)
        await second.send("a", b"cancel")
        await asyncio.wait_for(anext(rings), 10)
        assert [letter.body for letter in await first.inbox(["a"])] == [b"cancel"]

    @two_store_test
    async def test_changes_end_when_the_store_is_closed(self, first: Store, second: Store) -> None:
        rings = aiter(first.changes())
        await anext(rings)
        await first.close()
        assert [ring async for ring in rings] == []
        await begin_execution(second, "a")
