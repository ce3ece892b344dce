import pytest

from noetl.ports.store import Append, Committed, Effects, Row, Snapshot, Store
from noetl.testing.store.store_fixtures import (
    begin_execution,
    commit_accepted,
    effects_in_row,
    new_append,
    new_rows,
    store_test,
)

FULL = Effects(status="ended", path="p", labels={"k": "v"}, ended_at=50, timers={"t": 9}, outbox={"m": b"1"})
EMPTY = Effects()


class MaintenanceCases:
    """Deleting, checking, rebuilding."""

    @store_test
    async def test_deleting_leaves_nothing_behind(self, store: Store) -> None:
        await begin_execution(store, "kept", FULL)
        await commit_accepted(store, new_append("a", 0, FULL, start_key="key"))
        await store.send("a", b"letter")
        await store.put_snapshot("a", Snapshot(1, 1, b"state"))
        assert await store.delete("a")
        assert not await store.delete("a")
        assert await store.execution("a") is None
        assert await store.read("a") == []
        assert await store.inbox(["a"]) == []
        assert await store.snapshot("a", state_format=1) is None
        assert [timer.execution_id for timer in await store.timers()] == ["kept"]
        assert [message.execution_id for message in await store.outbox()] == ["kept"]
        assert [entry.execution_id for entry in await store.feed()] == ["kept"]
        assert await store.check(effects_in_row) == []

    @store_test
    async def test_a_deleted_execution_can_begin_again(self, store: Store) -> None:
        await commit_accepted(store, new_append("a", 0, FULL, EMPTY, start_key="key"))
        await store.delete("a")
        assert await store.commit([new_append("a", 0, start_key="key")]) == [Committed(1)]
        assert await store.timers() == []
        assert await store.check(effects_in_row) == []

    @store_test
    async def test_the_oldest_that_ended_before_come_first(self, store: Store) -> None:
        for name, ended_at in (("a", 30), ("b", 10), ("c", 20), ("d", 40), ("running", 0)):
            await begin_execution(store, name, Effects(ended_at=ended_at, root=name))
        assert await store.ended(before=40, limit=2) == ["b", "c"]
        assert await store.ended(before=40) == ["b", "c", "a"]
        assert await store.ended(before=10) == []

    @store_test
    async def test_what_belongs_to_an_execution_that_runs_is_not_among_those_that_ended(
        self, store: Store
    ) -> None:
        await begin_execution(store, "running", Effects(root="running"))
        await begin_execution(store, "over", Effects(ended_at=10, root="over"))
        for name, parent, root in (
            ("child", "running", "running"),
            ("grandchild", "over", "running"),
            ("forgotten", "deleted", "deleted"),
            ("other", "over", "over"),
        ):
            await begin_execution(store, name, Effects(ended_at=20, parent=parent, root=root))
        assert await store.ended(before=40) == ["over", "forgotten", "other"]

    @store_test
    async def test_a_sound_store_has_no_inconsistencies(self, store: Store) -> None:
        await store.put_playbook("h", b"document")
        await begin_execution(store, "a", FULL, Effects(playbook="h", timers={"t": None}))
        await begin_execution(store, "b", FULL, EMPTY)
        await store.sent(await store.outbox())
        assert await store.check() == []
        assert await store.check(effects_in_row) == []

    @store_test
    async def test_a_document_that_is_missing_is_found(self, store: Store) -> None:
        await begin_execution(store, "a", Effects(playbook="h"))
        [inconsistency] = await store.check()
        assert inconsistency.execution_id == "a"
        assert "h" in inconsistency.message

    @store_test
    async def test_derived_facts_that_do_not_follow_from_the_rows_are_found_and_rebuilt(
        self, store: Store
    ) -> None:
        await begin_execution(store, "sound", FULL)
        for name, wrong in (
            ("a", Effects(status="wrong", labels={"other": "1"})),
            ("b", Effects(path="p", timers={"t": 8, "u": 1})),
            ("c", Effects(outbox={"n": b"2"})),
        ):
            written = new_rows(0, FULL, Effects(status="last"))
            await commit_accepted(
                store, Append(execution_id=name, expected_version=0, rows=written, effects=wrong)
            )
        assert await store.check() == []
        assert {inconsistency.execution_id for inconsistency in await store.check(effects_in_row)} == {
            "a",
            "b",
            "c",
        }
        assert await store.rebuild(effects_in_row) == 4
        assert await store.check(effects_in_row) == []
        for name in "abc":
            record = await store.execution(name)
            assert record
            assert (record.version, record.status, record.path, record.ended_at) == (2, "last", "p", 50)
        assert {(timer.execution_id, timer.key, timer.due) for timer in await store.timers()} == {
            (name, "t", 9) for name in ("sound", "a", "b", "c")
        }

    @store_test
    async def test_rebuilding_a_sound_store_changes_nothing(self, store: Store) -> None:
        await begin_execution(store, "a", FULL, EMPTY)
        await begin_execution(store, "b", Effects(status="running", timers={"t": 1}))
        before = (await store.executions(), await store.timers(), await store.outbox(), await store.feed())
        assert await store.rebuild(effects_in_row) == 2
        assert before == (
            await store.executions(),
            await store.timers(),
            await store.outbox(),
            await store.feed(),
        )

    @store_test
    async def test_what_cannot_be_derived_leaves_the_store_as_it_is(self, store: Store) -> None:
        def refuse(row: Row) -> Effects:
            raise LookupError(f"kind {row.kind}")

        await begin_execution(store, "a", FULL)
        with pytest.raises(LookupError, match="kind 1"):
            await store.rebuild(refuse)
        assert await store.check(effects_in_row) == []
        await commit_accepted(store, new_append("a", 1))
