from msgspec.structs import replace

from noetl.model.run_rows import LeasedRun, ReadyRun
from noetl.ports.store import Effects, ExecutionQuery, Store
from noetl.testing.store.store_fixtures import begin_execution, commit_accepted, new_append, store_test

READY = ReadyRun("gpu", ("http", "python"), 3)
LEASED = LeasedRun("session", 7)


class RowCases:
    """Ready and leased runs, and what is told by whom an execution is kept."""

    @store_test
    async def test_ready_runs_come_in_the_order_in_which_they_became_so(self, store: Store) -> None:
        await begin_execution(store, "b", Effects(ready={"r1": READY}))
        await begin_execution(store, "a", Effects(ready={"r2": ReadyRun()}))
        first, second = await store.ready()
        assert (first[1:], second[1:]) == (("b", "r1", READY), ("a", "r2", ReadyRun()))
        assert await store.ready(limit=1) == [first]
        assert await store.ready(after=first.id) == [second]

    @store_test
    async def test_runs_change_from_ready_to_leased_in_one_append(self, store: Store) -> None:
        await begin_execution(store, "a", Effects(ready={"r1": READY, "r2": READY}))
        await commit_accepted(store, new_append("a", 1, Effects(ready={"r1": None}, leases={"r1": LEASED})))
        assert [row.key for row in await store.ready()] == ["r2"]
        assert await store.leases() == [("a", "r1", LEASED)]
        moved = replace(LEASED, fence=9)
        await commit_accepted(store, new_append("a", 2, Effects(leases={"r1": moved, "unknown": None})))
        assert await store.leases() == [("a", "r1", moved)]
        await commit_accepted(store, new_append("a", 3, Effects(leases={"r1": None})))
        assert await store.leases() == []

    @store_test
    async def test_a_message_goes_with_the_append_that_it_led_to(self, store: Store) -> None:
        await begin_execution(store, "a", Effects(outbox={"m": b"1", "n": b"2"}))
        await begin_execution(store, "b")
        first, second = await store.outbox()
        assert await store.outbox(after=first.id) == [second]
        append = replace(new_append("b", 1), delivered=[first.id])
        await store.commit([replace(append, expected_version=0, rows=new_append("b", 0).rows)])
        assert await store.outbox() == [first, second]
        await commit_accepted(store, append)
        assert await store.outbox() == [second]

    @store_test
    async def test_who_keeps_an_execution_is_told_by_its_first_rows(self, store: Store) -> None:
        await begin_execution(store, "a", Effects(status="running", served=True))
        await begin_execution(store, "b", Effects(status="running"))
        records = [await store.execution(name) for name in "ab"]
        assert [record.served for record in records if record] == [True, False]
        page = await store.executions(ExecutionQuery(unserved=True))
        assert [record.execution_id for record in page.executions] == ["b"]

    @store_test
    async def test_all_rows_of_an_execution_can_be_put_at_once(self, store: Store) -> None:
        old = Effects(timers={"t": 1}, ready={"r1": READY}, leases={"r2": LEASED}, outbox={"m": b"1"})
        await begin_execution(store, "a", old)
        await begin_execution(store, "b", old)
        new = Effects(timers={"u": 2}, ready={"r3": READY}, leases={"r4": LEASED}, served=True)
        assert await store.put_rows("a", 1, new)
        assert await store.rows_of("a") == replace(new, outbox={"m": b"1"})
        assert await store.rows_of("b") == replace(old, served=False)
        assert await store.put_rows("a", 1, Effects(served=False))
        assert await store.rows_of("a") == Effects(outbox={"m": b"1"}, served=False)

    @store_test
    async def test_rows_are_put_only_at_the_version_that_they_are_of(self, store: Store) -> None:
        await begin_execution(store, "a", Effects(timers={"t": 1}))
        assert not await store.put_rows("a", 2, Effects(served=True))
        assert not await store.put_rows("unknown", 0, Effects(served=True))
        assert await store.rows_of("a") == Effects(timers={"t": 1}, served=False)
        assert await store.rows_of("unknown") == Effects()

    @store_test
    async def test_ready_and_leased_runs_go_with_their_execution(self, store: Store) -> None:
        await begin_execution(store, "a", Effects(ready={"r1": READY}, leases={"r2": LEASED}))
        await store.delete("a")
        assert (await store.ready(), await store.leases(), await store.check()) == ([], [], [])

    @store_test
    async def test_the_inbox_of_all_executions_can_be_read(self, store: Store) -> None:
        for name in "ab":
            await begin_execution(store, name)
        messages = [await store.send("b", b"1"), await store.send("a", b"2")]
        assert await store.inbox(None) == messages
        assert await store.inbox([]) == []
