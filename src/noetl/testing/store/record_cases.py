import pytest

from noetl.ports.credentials import SealedCredential
from noetl.ports.store import Effects, ExecutionUnknown, Snapshot, Store
from noetl.testing.store.store_fixtures import begin_execution, commit_accepted, new_append, store_test

NOTHING = Effects()


class RecordCases:
    """Timers, messages, letters, snapshots, documents and sealed credentials."""

    @store_test
    async def test_timers_come_in_the_order_they_are_due(self, store: Store) -> None:
        await commit_accepted(
            store,
            new_append("a", 0, Effects(timers={"late": 30, "soon": 10})),
            new_append("b", 0, Effects(timers={"soon": 20})),
        )
        assert await store.timers() == [(10, "a", "soon"), (20, "b", "soon"), (30, "a", "late")]
        assert await store.timers(until=20) == [(10, "a", "soon"), (20, "b", "soon")]
        assert await store.timers(until=9) == []
        assert await store.timers(limit=1) == [(10, "a", "soon")]

    @store_test
    async def test_a_timer_can_be_moved_and_taken_away(self, store: Store) -> None:
        await begin_execution(store, "a", Effects(timers={"t": 10, "u": 20}))
        await commit_accepted(
            store, new_append("a", 1, Effects(timers={"t": 30, "u": None, "unknown": None}))
        )
        assert await store.timers() == [(30, "a", "t")]
        await commit_accepted(
            store, new_append("a", 2, Effects(timers={"t": None}), Effects(timers={"t": 5}))
        )
        assert await store.timers() == [(5, "a", "t")]

    @store_test
    async def test_messages_wait_until_they_are_sent(self, store: Store) -> None:
        await begin_execution(store, "a", Effects(outbox={"m": b"\0one", "n": b"two"}))
        await begin_execution(store, "b", Effects(outbox={"m": b"three"}))
        messages = await store.outbox()
        assert [tuple(message[1:]) for message in messages] == [
            ("a", "m", b"\0one"),
            ("a", "n", b"two"),
            ("b", "m", b"three"),
        ]
        assert await store.outbox(limit=1) == messages[:1]
        await store.sent(messages[:2])
        await store.sent(messages[:2])
        assert await store.outbox() == messages[2:]

    @store_test
    async def test_a_message_can_be_taken_back_and_replaced(self, store: Store) -> None:
        await begin_execution(store, "a", Effects(outbox={"m": b"one", "n": b"two"}))
        old = await store.outbox()
        await commit_accepted(store, new_append("a", 1, Effects(outbox={"m": None, "n": b"three"})))
        await store.sent(old)
        assert [(message.key, message.body) for message in await store.outbox()] == [("n", b"three")]

    @store_test
    async def test_a_letter_stays_until_an_append_answers_it(self, store: Store) -> None:
        await begin_execution(store, "a")
        await begin_execution(store, "b")
        first = await store.send("a", b"cancel\0")
        second = await store.send("b", b"pause")
        third = await store.send("a", b"")
        assert await store.inbox(["a"]) == [first, third]
        assert await store.inbox(["b", "unknown", "a"]) == [first, second, third]
        await store.commit([new_append("a", 0, answers=(first.id,))])
        assert await store.inbox(["a"]) == [first, third]
        await commit_accepted(store, new_append("a", 1, answers=(first.id,)))
        assert await store.inbox(["a"]) == [third]
        await store.take([second, third])
        await store.take([second, third])
        assert await store.inbox(["a", "b"]) == []

    @store_test
    async def test_a_letter_to_nobody_is_refused(self, store: Store) -> None:
        with pytest.raises(ExecutionUnknown, match="nobody"):
            await store.send("nobody", b"cancel")
        assert await store.inbox(["nobody"]) == []
        assert await store.inbox([]) == []

    @store_test
    async def test_the_latest_two_snapshots_are_kept(self, store: Store) -> None:
        await begin_execution(store, "a", *[NOTHING] * 9)
        for seq in (2, 8, 5):
            await store.put_snapshot("a", Snapshot(seq, 1, b"state %d" % seq))
        assert await store.snapshot("a", state_format=1) == (8, 1, b"state 8")
        assert await store.snapshot("a", state_format=1, at=8) == (8, 1, b"state 8")
        assert await store.snapshot("a", state_format=1, at=7) == (5, 1, b"state 5")
        assert await store.snapshot("a", state_format=1, at=4) is None

    @store_test
    async def test_a_snapshot_is_found_by_its_format_only(self, store: Store) -> None:
        await begin_execution(store, "a", *[NOTHING] * 9)
        await begin_execution(store, "b")
        await store.put_snapshot("a", Snapshot(3, 1, b"old"))
        await store.put_snapshot("a", Snapshot(4, 2, b"new"))
        assert await store.snapshot("a", state_format=1) == (3, 1, b"old")
        assert await store.snapshot("a", state_format=2) == (4, 2, b"new")
        await store.put_snapshot("a", Snapshot(4, 1, b"again"))
        assert await store.snapshot("a", state_format=2) is None
        assert await store.snapshot("a", state_format=1) == (4, 1, b"again")
        assert await store.snapshot("b", state_format=1) is None

    @store_test
    async def test_a_snapshot_rests_on_durable_rows(self, store: Store) -> None:
        await begin_execution(store, "a")
        with pytest.raises(ValueError, match="version is 1"):
            await store.put_snapshot("a", Snapshot(2, 1, b""))
        with pytest.raises(ExecutionUnknown):
            await store.put_snapshot("b", Snapshot(0, 1, b""))
        assert await store.snapshot("a", state_format=1) is None

    @store_test
    async def test_a_document_is_kept_once(self, store: Store) -> None:
        assert await store.playbook("h") is None
        await store.put_playbook("h", b"first\0")
        await store.put_playbook("h", b"second")
        assert await store.playbook("h") == b"first\0"

    @store_test
    async def test_credentials_are_kept_by_name(self, store: Store) -> None:
        first, second = _sealed("b", at=5), _sealed("a\0ü", at=6)
        assert await store.put_credential(first)
        assert await store.put_credential(second)
        assert await store.credentials() == [second, first]
        assert await store.credential("b") == first
        assert await store.credential("c") is None
        assert await store.delete_credential("b")
        assert not await store.delete_credential("b")
        assert await store.credentials() == [second]

    @store_test
    async def test_a_credential_that_is_replaced_keeps_the_time_it_was_made(self, store: Store) -> None:
        await store.put_credential(_sealed("a", at=5))
        new = _sealed("a", at=9)._replace(kind="other", body=b"new", wrapped_key=b"other")
        assert await store.put_credential(new)
        assert await store.credential("a") == new._replace(created_at=5)

    @store_test
    async def test_all_credentials_are_sealed_with_one_key(self, store: Store) -> None:
        sealed = _sealed("a")
        await store.put_credential(sealed)
        for name in ("a", "b"):
            assert not await store.put_credential(_sealed(name)._replace(key_id="k2"))
        assert await store.credentials() == [sealed]

    @store_test
    async def test_credentials_are_wrapped_anew_all_or_none(self, store: Store) -> None:
        before = [_sealed("a"), _sealed("b")]
        after = [row._replace(key_id="k2", wrapped_key=b"anew") for row in before]
        for row in before:
            await store.put_credential(row)
        assert not await store.rewrap_credentials(before[:1], after[:1])
        assert await store.credentials() == before
        assert await store.rewrap_credentials(before, after)
        assert await store.credentials() == after
        assert not await store.rewrap_credentials(before, after)

    @store_test
    async def test_blobs_are_kept_by_name(self, store: Store) -> None:
        assert await store.blob("a/1") is None
        for name, data in (("a/1", b"one\0"), ("a/2", b""), ("b/1", b"x" * 100_000)):
            await store.put_blob(name, data)
            assert await store.blob(name) == data
        assert await store.blob("b/1", 99_998) == b"xx"
        assert await store.blob("a/1", 1, 3) == b"ne"
        assert await store.blob("a/1", 4, 9) == await store.blob("a/1", 9) == b""
        await store.put_blob("a/1", b"new")
        assert await store.blob("a/1") == b"new"
        assert await store.blobs("a/") == ["a/1", "a/2"]
        await store.delete_blobs(["a/1", "nothing"])
        assert await store.blobs("") == ["a/2", "b/1"]


def _sealed(name: str, *, at: int = 1) -> SealedCredential:
    return SealedCredential(name, "bearer", "k1", b"wrapped\0", b"body\xff", at, at)
