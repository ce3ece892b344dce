"""Every result store keeps the same promises."""

import asyncio
from collections.abc import Iterator, Mapping
from pathlib import Path
from uuid import uuid4

import pytest

from bench.s3_server import S3Server
from noetl.ports.results import ResultError, ResultMissing, ResultStore
from noetl.stores.home_folder import Home
from noetl.stores.results.bucket_backend import BucketResults
from noetl.stores.results.database_backend import MAX_VALUE_BYTES, DatabaseResults
from noetl.stores.results.file_backend import FileResults
from noetl.stores.results.memory_backend import MemoryResults
from noetl.stores.results.named_results import NamedResults
from noetl.stores.results.nats_backend import NatsResults
from noetl.stores.results.result_store_urls import ResultStoreUrlWrong, open_result_stores
from noetl.stores.sqlite.store import SqliteStore
from noetl.testing.results_suite import (
    EXECUTION,
    OTHER_EXECUTION,
    ResultStoreOpener,
    ResultSuite,
    result_key_of,
)
from tests.azure_server import AzureServer
from tests.gcs_server import GcsServer
from tests.nats_server import NatsServer, create_object_store


def set_environment(monkeypatch: pytest.MonkeyPatch, variables: Mapping[str, str]) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)


class BackendSuite(ResultSuite):
    async def spoil(self, store: ResultStore, key: str, data: bytes) -> None:
        await store._backend.write(key, data)  # type: ignore[attr-defined]  # as a disk would spoil it


class TestFileResults(BackendSuite):
    @pytest.fixture
    def open_results(self, tmp_path: Path) -> ResultStoreOpener:
        return lambda: FileResults(tmp_path / "results")


class TestMemoryResults(BackendSuite):
    @pytest.fixture
    def open_results(self) -> ResultStoreOpener:
        results = MemoryResults()
        return lambda: results


class TestS3Results(BackendSuite):
    @pytest.fixture
    def open_results(
        self, s3: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> ResultStoreOpener:
        set_environment(monkeypatch, s3.environment)
        url = f"s3://{s3.bucket}/{uuid4().hex}?endpoint={s3.endpoint}"
        return lambda: BucketResults(url, tmp_path)


class TestGcsResults(BackendSuite):
    @pytest.fixture
    def open_results(
        self, gcs: GcsServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> ResultStoreOpener:
        set_environment(monkeypatch, gcs.environment)
        url = gcs.location(uuid4().hex)
        return lambda: BucketResults(url, tmp_path)


class TestAzureResults(BackendSuite):
    @pytest.fixture
    def open_results(
        self, azure: AzureServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> ResultStoreOpener:
        set_environment(monkeypatch, azure.environment)
        url = azure.location(uuid4().hex)
        return lambda: BucketResults(url, tmp_path)


class TestNatsResults(BackendSuite):
    @pytest.fixture
    def open_results(
        self, nats: NatsServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> ResultStoreOpener:
        set_environment(monkeypatch, nats.environment)
        bucket = uuid4().hex
        asyncio.run(create_object_store(nats, bucket))
        return lambda: NatsResults(f"{nats.url}/{bucket}", tmp_path)


class TestDatabaseResults(BackendSuite):
    @pytest.fixture
    def open_results(self, tmp_path: Path) -> Iterator[ResultStoreOpener]:
        store = SqliteStore.in_memory()
        yield lambda: DatabaseResults(store, tmp_path)
        asyncio.run(store.close())


class TestNamedResults(ResultSuite):
    @pytest.fixture
    def open_results(self, tmp_path: Path) -> ResultStoreOpener:
        return lambda: NamedResults(FileResults(tmp_path / "own"), {"more": FileResults(tmp_path / "more")})

    async def spoil(self, store: ResultStore, key: str, data: bytes) -> None:
        assert isinstance(store, NamedResults)
        own, _ = store.locate(key)
        await own._backend.write(key, data)  # type: ignore[attr-defined]  # as a disk would spoil it


def test_a_key_says_which_store_has_it(tmp_path: Path) -> None:
    async def use_stores() -> None:
        own, more = FileResults(tmp_path / "own"), FileResults(tmp_path / "more")
        results = NamedResults(own, {"more": more})
        key = f"more:{result_key_of(EXECUTION, b'1')}"
        await results.put(key, b"1")
        assert await more.keys(EXECUTION) == [result_key_of(EXECUTION, b"1")]
        assert await own.keys(EXECUTION) == []
        assert await results.get(key) == b"1"
        assert await results.keys(EXECUTION) == [key]
        await results.copy(key, result_key_of(OTHER_EXECUTION, b"1"))
        assert await own.get(result_key_of(OTHER_EXECUTION, b"1")) == b"1"
        await results.delete(EXECUTION)
        with pytest.raises(ResultMissing):
            await results.get(key)
        with pytest.raises(ResultMissing, match="no result store `gone` here"):
            await results.get(f"gone:{result_key_of(EXECUTION, b'1')}")

    asyncio.run(use_stores())


def test_too_much_for_a_database_is_refused(tmp_path: Path) -> None:
    async def use_stores() -> None:
        store = SqliteStore.in_memory()
        try:
            large = tmp_path / "large"
            with large.open("wb") as file:
                file.truncate(MAX_VALUE_BYTES + 1)
            with pytest.raises(ResultError, match="does not go into the event store") as caught:
                await DatabaseResults(store, tmp_path).put_file(result_key_of(EXECUTION, b"any"), large)
            assert caught.value.kind == "limit"
        finally:
            await store.close()

    asyncio.run(use_stores())


def test_what_was_left_in_scratch_goes_with_the_execution(tmp_path: Path) -> None:
    async def use_stores() -> None:
        store = SqliteStore.in_memory()
        try:
            for results in (FileResults(tmp_path / "results"), DatabaseResults(store, tmp_path / "scratch")):
                left = results.scratch(EXECUTION) / ".draft-1"
                left.write_bytes(b"half")
                await results.delete(OTHER_EXECUTION)
                assert left.exists()
                await results.delete(EXECUTION)
                assert not left.parent.exists()
        finally:
            await store.close()

    asyncio.run(use_stores())


def test_a_bucket_that_cannot_be_reached_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "x")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
    results = BucketResults("s3://bucket/place?endpoint=http://127.0.0.1:1", tmp_path)
    with pytest.raises(ResultError, match="s3://bucket/place: Generic S3 error") as caught:
        asyncio.run(results.get(result_key_of(EXECUTION, b"1")))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("own", "named", "message"),
    [
        ("ftp://x", (), "`ftp://x` is no place for results"),
        ("s3://", (), "no place for results"),
        ("s3://b?colour=red", (), "with `colour`"),
        ("file://", (), "no place for results"),
        ("", ("x",), "is not NAME=URL"),
        ("", ("auto=store:",), "is not NAME=URL"),
        ("", ("a=store:", "a=store:"), "`a` twice"),
        ("", ("a=what",), "`what` is no place for results"),
    ],
)
def test_places_that_are_none_are_refused(
    tmp_path: Path, own: str, named: tuple[str, ...], message: str
) -> None:
    store = SqliteStore.in_memory()
    with pytest.raises(ResultStoreUrlWrong, match=message) as caught:
        open_result_stores(Home(tmp_path), store, own=own, named=named)
    assert caught.value.hint
    asyncio.run(store.close())


def test_settings_open_all_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "x")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
    store = SqliteStore.in_memory()
    named = ("db=store:", "far=s3://b/p?region=eu-central-1", "near=file://beside")
    results = open_result_stores(Home(tmp_path), store, named=named, directory=tmp_path)
    assert results.names == {"db", "far", "near"}

    async def use_stores() -> None:
        await results.put(f"near:{result_key_of(EXECUTION, b'1')}", b"1")
        await results.put(f"db:{result_key_of(EXECUTION, b'1')}", b"1")
        await results.put(result_key_of(EXECUTION, b"1"), b"1")
        assert (tmp_path / "beside" / result_key_of(EXECUTION, b"1")).read_bytes() == b"1"
        assert (tmp_path / "results" / result_key_of(EXECUTION, b"1")).read_bytes() == b"1"
        assert await store.blob(result_key_of(EXECUTION, b"1")) == b"1"
        await store.close()

    asyncio.run(use_stores())
