"""The conformance suite of the `ResultStore` port.

A test module makes a subclass with a fixture `open_results` that gives a function which opens the same
store again and again, and pytest does the rest:

    class TestMyResults(ResultSuite):
        @pytest.fixture
        def open_results(self, tmp_path: Path) -> ResultStoreOpener:
            return lambda: MyResults(tmp_path)

        async def spoil(self, store: ResultStore, key: str, data: bytes) -> None:
            ...  # writes these bytes in place of what is stored
"""

import asyncio
import hashlib
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias
from uuid import uuid4

import pytest

from noetl.ports.results import ResultDamaged, ResultExpired, ResultMissing, ResultStore
from noetl.stores.results.body_format import pack_body

ResultStoreOpener: TypeAlias = Callable[[], ResultStore]

EXECUTION = "01939d2e-0000-7000-8000-000000000001"
OTHER_EXECUTION = "01939d2e-0000-7000-8000-000000000002"


def result_key_of(execution_id: str, data: bytes) -> str:
    return f"{execution_id}/{hashlib.sha256(data).hexdigest()}"


def _result_store_test(test: Callable[..., Awaitable[None]]) -> Callable[[Any, ResultStoreOpener], None]:
    """A test of as many stores on the same data as it takes."""

    def run(self: Any, open_results: ResultStoreOpener) -> None:
        async def play() -> None:
            stores = [open_results() for _ in range(test.__code__.co_argcount - 1)]
            try:
                await test(self, *stores)
            finally:
                for store in stores:
                    await store.close()

        asyncio.run(play())

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run


class ResultSuite(ABC):
    """What every result store does."""

    @abstractmethod
    async def spoil(self, store: ResultStore, key: str, data: bytes) -> None:
        """Puts these bytes where what the key names is kept, behind the back of the store."""

    @_result_store_test
    async def test_what_was_put_can_be_got(self, store: ResultStore) -> None:
        for data in (b"", b"null", b"\0\xff" * 100, b"x" * 3_000_000):
            await store.put(result_key_of(EXECUTION, data), data)
            assert await store.get(result_key_of(EXECUTION, data)) == data

    @_result_store_test
    async def test_a_file_can_be_stored_and_read_as_one(self, store: ResultStore) -> None:
        data = b"\0\xff" * 1_000_000
        key = result_key_of(EXECUTION, data)
        path = store.scratch(EXECUTION) / f"draft-{uuid4().hex}"
        path.write_bytes(data)
        await store.put_file(key, path)
        assert not path.exists()
        assert await store.get(key) == data
        async with store.local(key) as local_path:
            assert local_path.read_bytes() == data

    @_result_store_test
    async def test_what_is_not_stored_is_no_file(self, store: ResultStore) -> None:
        with pytest.raises(ResultMissing):
            async with store.local(result_key_of(EXECUTION, b"never")):
                pass

    @_result_store_test
    async def test_others_see_it(self, store: ResultStore, other: ResultStore) -> None:
        await store.put(result_key_of(EXECUTION, b"1"), b"1")
        assert await other.get(result_key_of(EXECUTION, b"1")) == b"1"

    @_result_store_test
    async def test_putting_again_changes_nothing(self, store: ResultStore, other: ResultStore) -> None:
        key = result_key_of(EXECUTION, b"same")
        await asyncio.gather(*(each.put(key, b"same") for each in (store, other) * 10))
        assert await store.get(key) == b"same"

    @_result_store_test
    async def test_what_is_not_there_is_named(self, store: ResultStore) -> None:
        key = result_key_of(EXECUTION, b"nothing")
        with pytest.raises(ResultMissing, match=key) as caught:
            await store.get(key)
        assert caught.value.hint

    @_result_store_test
    async def test_a_key_belongs_to_its_bytes(self, store: ResultStore) -> None:
        with pytest.raises(ValueError, match="not the key of these bytes"):
            await store.put(result_key_of(EXECUTION, b"1"), b"2")
        with pytest.raises(ResultMissing):
            await store.get(result_key_of(EXECUTION, b"1"))

    @_result_store_test
    async def test_only_keys_are_keys(self, store: ResultStore) -> None:
        name = hashlib.sha256(b"1").hexdigest()
        for key in (
            "",
            name,
            f"/{name}",
            f"../{name}",
            f"{EXECUTION}/..",
            f"{EXECUTION}/x/{name}",
            f"{EXECUTION}/{name.upper()}",
        ):
            with pytest.raises(ValueError, match="not the key"):
                await store.put(key, b"1")
            with pytest.raises(ValueError, match="not the key"):
                await store.get(key)
        for execution_id in ("", "..", ".", "a/b"):
            with pytest.raises(ValueError, match="not the id"):
                await store.delete(execution_id)

    @_result_store_test
    async def test_an_execution_goes_with_all_it_has_and_nothing_else(self, store: ResultStore) -> None:
        for execution_id in (EXECUTION, OTHER_EXECUTION):
            for data in (b"1", b"2"):
                await store.put(result_key_of(execution_id, data), data)
        await store.delete(EXECUTION)
        await store.delete(EXECUTION)
        for data in (b"1", b"2"):
            with pytest.raises(ResultMissing):
                await store.get(result_key_of(EXECUTION, data))
            assert await store.get(result_key_of(OTHER_EXECUTION, data)) == data
        await store.put(result_key_of(EXECUTION, b"1"), b"1")
        assert await store.get(result_key_of(EXECUTION, b"1")) == b"1"

    @_result_store_test
    async def test_packed_or_not_it_is_the_same(self, store: ResultStore) -> None:
        for data in (
            b"",
            b"x" * 300_000,
            b"\x93NOETL\x01",
            b"\x93NOETL\x01z and so on",
            bytes(range(256)) * 100,
        ):
            for execution_id, compression in (
                (EXECUTION, "gzip"),
                (OTHER_EXECUTION, "zstd"),
                ("plain", "none"),
            ):
                key = result_key_of(execution_id, data)
                await store.put(key, data, compression)
                assert await store.get(key) == data
                async with store.local(key) as path:
                    assert path.read_bytes() == data
                assert await store.read(key, 3, 9) == data[3:9]

    @_result_store_test
    async def test_a_packed_file_is_the_same_too(self, store: ResultStore) -> None:
        data = b"some bytes " * 100_000
        for execution_id, compression in ((EXECUTION, "gzip"), (OTHER_EXECUTION, "zstd")):
            path = store.scratch(execution_id) / f"draft-{uuid4().hex}"
            path.write_bytes(data)
            await store.put_file(result_key_of(execution_id, data), path, compression)
            assert not path.exists()
            assert await store.get(result_key_of(execution_id, data)) == data

    @_result_store_test
    async def test_a_part_can_be_read(self, store: ResultStore) -> None:
        data = bytes(range(256)) * 8_192
        for execution_id, compression in ((EXECUTION, "none"), (OTHER_EXECUTION, "zstd")):
            key = result_key_of(execution_id, data)
            await store.put(key, data, compression)
            for start, end in ((0, 10), (1_000_000, 1_000_001), (100, None), (len(data) - 5, len(data) + 5)):
                assert await store.read(key, start, end) == data[start:end]
            assert await store.read(key, len(data), None) == b""
            assert await store.read(key, 5, 5) == b""
        with pytest.raises(ResultMissing):
            await store.read(result_key_of(EXECUTION, b"never"), 0, 1)

    @_result_store_test
    async def test_what_is_damaged_is_not_given_out(self, store: ResultStore) -> None:
        data = b"good " * 10_000
        for compression in ("none", "gzip", "zstd"):
            for spoilt in (
                b"evil",
                pack_body(data, compression)[:-100],
                pack_body(b"evil " * 10_000, compression),
            ):
                key = result_key_of(EXECUTION, data)
                await store.delete(EXECUTION)
                await store.put(key, data, compression)
                async with store.local(key) as path:
                    assert path.read_bytes() == data
                await self.spoil(store, key, spoilt)
                with pytest.raises(ResultDamaged, match="damaged"):
                    await store.get(key)
                with pytest.raises(ResultDamaged, match="damaged"):
                    async with store.local(key):
                        pass

    @_result_store_test
    async def test_a_copy_lives_on_its_own(self, store: ResultStore) -> None:
        data = b"shared " * 1_000
        await store.put(result_key_of(EXECUTION, data), data, "zstd")
        await store.copy(result_key_of(EXECUTION, data), result_key_of(OTHER_EXECUTION, data))
        await store.delete(EXECUTION)
        assert await store.get(result_key_of(OTHER_EXECUTION, data)) == data
        with pytest.raises(ResultMissing):
            await store.copy(result_key_of(EXECUTION, data), result_key_of(OTHER_EXECUTION, data))

    @_result_store_test
    async def test_an_execution_knows_its_keys(self, store: ResultStore) -> None:
        assert await store.keys(EXECUTION) == []
        for data in (b"1", b"2"):
            await store.put(result_key_of(EXECUTION, data), data)
        await store.put(result_key_of(OTHER_EXECUTION, b"3"), b"3")
        assert sorted(await store.keys(EXECUTION)) == sorted(
            result_key_of(EXECUTION, data) for data in (b"1", b"2")
        )

    @_result_store_test
    async def test_what_is_kept_is_listed_with_its_size_and_age(self, store: ResultStore) -> None:
        assert await store.owners() == []
        before = time.time()
        for execution_id, data in ((EXECUTION, b"1" * 10), (EXECUTION, b"2" * 20), (OTHER_EXECUTION, b"3")):
            await store.put(result_key_of(execution_id, data), data)
        await store.put_entry("report", b"{}")
        assert await store.owners() == [EXECUTION, OTHER_EXECUTION]
        bodies = {body.key: body for body in await store.bodies(EXECUTION)}
        sizes = {key: body.size for key, body in bodies.items()}
        assert sizes == {result_key_of(EXECUTION, b"1" * 10): 10, result_key_of(EXECUTION, b"2" * 20): 20}
        for body in bodies.values():
            # Some clocks count seconds.
            assert body.written_at is None or before - 2 <= body.written_at <= time.time() + 2
        assert await store.bodies("nobody") == []

    @_result_store_test
    async def test_single_bodies_can_be_removed(self, store: ResultStore) -> None:
        for data in (b"1", b"2", b"3"):
            await store.put(result_key_of(EXECUTION, data), data)
        await store.remove([result_key_of(EXECUTION, data) for data in (b"never", b"1", b"2")])
        await store.remove([])
        assert await store.keys(EXECUTION) == [result_key_of(EXECUTION, b"3")]

    @_result_store_test
    async def test_a_check_leaves_nothing(self, store: ResultStore) -> None:
        await store.check()
        assert await store.owners() == []
        assert await store.entries() == []

    @_result_store_test
    async def test_what_has_expired_says_since_when(self, store: ResultStore, other: ResultStore) -> None:
        for data in (b"old", b"old " * 100_000):
            key = result_key_of(EXECUTION, data)
            await store.put(key, data)
            await store.put(result_key_of(OTHER_EXECUTION, data), data)
            assert await store.expire(key, "2024-05-01T12:00:00Z") == len(data)
            assert await store.expire(key, "2025-01-01T00:00:00Z") == 0
            with pytest.raises(ResultExpired, match="expired at 2024-05-01T12:00:00Z"):
                await other.get(key)
            with pytest.raises(ResultExpired, match="expired at 2024"):
                await other.read(key, 0, 1)
            with pytest.raises(ResultExpired, match="expired at 2024"):
                async with other.local(key):
                    pass
            assert await store.get(result_key_of(OTHER_EXECUTION, data)) == data
            await store.put(key, data)
            assert await store.get(key) == data
        assert await store.expire(result_key_of(EXECUTION, b"never"), "2024-05-01T12:00:00Z") == 0

    @_result_store_test
    async def test_entries_have_names(self, store: ResultStore, other: ResultStore) -> None:
        names = ["a", "reports/2024/ä b.csv", "reports/x", "..", "a?b#c%2F"]
        for name in names:
            await store.put_entry(name, name.encode())
        assert await other.entries() == sorted(names)
        assert await other.entries("reports/") == ["reports/2024/ä b.csv", "reports/x"]
        assert await other.entry("..") == b".."
        await store.put_entry("a", b"new")
        assert await other.entry("a") == b"new"
        await store.delete_entry("a")
        await store.delete_entry("a")
        assert await other.entry("a") is None
        for name in ("", "x" * 300):
            with pytest.raises(ValueError, match="name of an artifact"):
                await store.put_entry(name, b"")
        with pytest.raises(ResultMissing, match="no result store `elsewhere`"):
            await store.entry("a", "elsewhere")

    @_result_store_test
    async def test_logs_have_segments_that_grow(self, store: ResultStore, other: ResultStore) -> None:
        assert await store.log_segments(EXECUTION) == []
        await store.put(result_key_of(EXECUTION, b"1"), b"1")
        await store.put_log(EXECUTION, "0002-b", b"two\n")
        await store.put_log(EXECUTION, "0001-a", b"one\n")
        await store.put_log(OTHER_EXECUTION, "0001-a", b"other\n")
        await store.put_log(EXECUTION, "0002-b", b"two\nthree\n")
        segments = [(segment.key, segment.size) for segment in await other.log_segments(EXECUTION)]
        assert segments == [("0001-a", 4), ("0002-b", 10)]
        assert await other.log_segment(EXECUTION, "0002-b") == b"two\nthree\n"
        assert await other.log_segment(EXECUTION, "0002-b", 4) == b"three\n"
        assert await other.log_segment(EXECUTION, "0002-b", 10) == b""
        assert await other.log_segment(EXECUTION, "0003-c") == b""
        assert await other.keys(EXECUTION) == [result_key_of(EXECUTION, b"1")]
        assert [body.key for body in await other.bodies(EXECUTION)] == [result_key_of(EXECUTION, b"1")]
        assert await other.owners() == sorted([EXECUTION, OTHER_EXECUTION])
        await store.delete(EXECUTION)
        assert await other.log_segments(EXECUTION) == []
        await store.delete_log(OTHER_EXECUTION)
        await store.delete_log(OTHER_EXECUTION)
        assert await other.log_segments(OTHER_EXECUTION) == []

    @_result_store_test
    async def test_a_segment_has_a_plain_name(self, store: ResultStore) -> None:
        for name in ("", "..", "a/b", "a.b", "x" * 65):
            with pytest.raises(ValueError, match="not the name of a segment"):
                await store.put_log(EXECUTION, name, b"")
        with pytest.raises(ValueError, match="not the id"):
            await store.put_log("..", "a", b"")

    @_result_store_test
    async def test_sweeping_takes_no_results(self, store: ResultStore) -> None:
        await store.put(result_key_of(EXECUTION, b"1"), b"1")
        await store.sweep(2**40)
        assert await store.get(result_key_of(EXECUTION, b"1")) == b"1"

    @_result_store_test
    async def test_closing_twice_is_fine(self, store: ResultStore) -> None:
        await store.close()
