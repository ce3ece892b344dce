"""The conformance suite of the `ResultStore` port.

A test module makes a subclass with a fixture `open_results` that gives a function which opens the same
store again and again, and pytest does the rest:

    class TestMyResults(ResultSuite):
        @pytest.fixture
        def open_results(self, tmp_path: Path) -> Opener:
            return lambda: MyResults(tmp_path)
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias
from uuid import uuid4

import pytest

from noetl.ports.results import ResultMissing, ResultStore

Opener: TypeAlias = Callable[[], ResultStore]

ONE = "01939d2e-0000-7000-8000-000000000001"
OTHER = "01939d2e-0000-7000-8000-000000000002"


def key_of(execution_id: str, data: bytes) -> str:
    return f"{execution_id}/{hashlib.sha256(data).hexdigest()}"


def _scenario(test: Callable[..., Awaitable[None]]) -> Callable[[Any, Opener], None]:
    """A test of as many stores on the same data as it takes."""

    def run(self: Any, open_results: Opener) -> None:
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


class ResultSuite:
    """What every result store does."""

    @_scenario
    async def test_what_was_put_can_be_got(self, store: ResultStore) -> None:
        for data in (b"", b"null", b"\0\xff" * 100, b"x" * 3_000_000):
            await store.put(key_of(ONE, data), data)
            assert await store.get(key_of(ONE, data)) == data

    @_scenario
    async def test_a_file_can_be_stored_and_read_as_one(self, store: ResultStore) -> None:
        data = b"\0\xff" * 1_000_000
        key = key_of(ONE, data)
        path = store.scratch(ONE) / f"draft-{uuid4().hex}"
        path.write_bytes(data)
        await store.put_file(key, path)
        assert not path.exists()
        assert await store.get(key) == data
        async with store.local(key) as found:
            assert found.read_bytes() == data

    @_scenario
    async def test_what_is_not_stored_is_no_file(self, store: ResultStore) -> None:
        with pytest.raises(ResultMissing):
            async with store.local(key_of(ONE, b"never")):
                pass

    @_scenario
    async def test_others_see_it(self, store: ResultStore, other: ResultStore) -> None:
        await store.put(key_of(ONE, b"1"), b"1")
        assert await other.get(key_of(ONE, b"1")) == b"1"

    @_scenario
    async def test_putting_again_changes_nothing(self, store: ResultStore, other: ResultStore) -> None:
        key = key_of(ONE, b"same")
        await asyncio.gather(*(each.put(key, b"same") for each in (store, other) * 10))
        assert await store.get(key) == b"same"

    @_scenario
    async def test_what_is_not_there_is_named(self, store: ResultStore) -> None:
        key = key_of(ONE, b"nothing")
        with pytest.raises(ResultMissing, match=key) as caught:
            await store.get(key)
        assert caught.value.hint

    @_scenario
    async def test_a_key_belongs_to_its_bytes(self, store: ResultStore) -> None:
        with pytest.raises(ValueError, match="not the key of these bytes"):
            await store.put(key_of(ONE, b"1"), b"2")
        with pytest.raises(ResultMissing):
            await store.get(key_of(ONE, b"1"))

    @_scenario
    async def test_only_keys_are_keys(self, store: ResultStore) -> None:
        name = hashlib.sha256(b"1").hexdigest()
        for key in (
            "",
            name,
            f"/{name}",
            f"../{name}",
            f"{ONE}/..",
            f"{ONE}/x/{name}",
            f"{ONE}/{name.upper()}",
        ):
            with pytest.raises(ValueError, match="not the key"):
                await store.put(key, b"1")
            with pytest.raises(ValueError, match="not the key"):
                await store.get(key)
        for execution_id in ("", "..", ".", "a/b"):
            with pytest.raises(ValueError, match="not the id"):
                await store.delete(execution_id)

    @_scenario
    async def test_an_execution_goes_with_all_it_has_and_nothing_else(self, store: ResultStore) -> None:
        for execution_id in (ONE, OTHER):
            for data in (b"1", b"2"):
                await store.put(key_of(execution_id, data), data)
        await store.delete(ONE)
        await store.delete(ONE)
        for data in (b"1", b"2"):
            with pytest.raises(ResultMissing):
                await store.get(key_of(ONE, data))
            assert await store.get(key_of(OTHER, data)) == data
        await store.put(key_of(ONE, b"1"), b"1")
        assert await store.get(key_of(ONE, b"1")) == b"1"

    @_scenario
    async def test_closing_twice_is_fine(self, store: ResultStore) -> None:
        await store.close()
