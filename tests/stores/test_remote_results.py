"""Result stores elsewhere: who is first at a key, what is large, and what they say when something is wrong."""

import asyncio
import hashlib
import re
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from uuid import uuid4

import pytest
from aiohttp import ClientSession
from yarl import URL

from bench.s3_server import S3Server
from noetl.ports.results import AccessGrant, ResultDamaged, ResultError, ResultMissing, ResultStore
from noetl.stores.home_folder import Home
from noetl.stores.results.bucket_backend import PART_BYTES, BucketResults
from noetl.stores.results.file_backend import FileResults
from noetl.stores.results.nats_backend import NatsResults
from noetl.stores.results.result_store_urls import ResultStoreUrlWrong, open_result_stores
from noetl.stores.sqlite.store import SqliteStore
from noetl.testing.results_suite import EXECUTION, result_key_of
from tests.azure_server import AzureServer
from tests.gcs_server import BUCKET, FORBIDDEN, GcsServer
from tests.nats_server import NatsServer, create_object_store, nats_server
from tests.stores.test_result_stores import set_environment

Work = Callable[[ResultStore], Awaitable[None]]
DATA = b"a result " * 1_000
KEY = result_key_of(EXECUTION, DATA)


def use(store: ResultStore, work: Work) -> None:
    async def play() -> None:
        try:
            await work(store)
        finally:
            await store.close()

    asyncio.run(play())


def check_error(store: ResultStore) -> ResultError:
    """What a store says that cannot be used; on one line, with what to do."""
    with pytest.raises(ResultError) as caught:
        use(store, lambda each: each.check())
    assert caught.value.hint
    assert "\n" not in str(caught.value)
    assert (caught.value.kind, caught.value.retryable) == ("store", True)
    return caught.value


@pytest.fixture(autouse=True)
def signed_in(
    s3: S3Server, gcs: GcsServer, azure: AzureServer, nats: NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for server in (s3, gcs, azure, nats):
        set_environment(monkeypatch, server.environment)


@pytest.fixture
def places(s3: S3Server, gcs: GcsServer, azure: AzureServer) -> dict[str, str]:
    """A URL in each kind of bucket."""
    folder = uuid4().hex
    return {
        "s3": f"s3://{s3.bucket}/{folder}?endpoint={s3.endpoint}",
        "gs": gcs.location(folder),
        "az": azure.location(folder),
    }


@pytest.mark.parametrize("scheme", ["s3", "gs", "az"])
def test_what_is_there_is_not_written_again_and_what_is_spoilt_is(
    places: dict[str, str], scheme: str, tmp_path: Path
) -> None:
    async def work(store: ResultStore) -> None:
        backend = store._backend  # type: ignore[attr-defined]  # what is behind it tells versions apart
        await store.put(KEY, DATA)
        first = await backend._obstore.head_async(backend._bucket, KEY)
        await store.put(KEY, DATA)
        assert (await backend._obstore.head_async(backend._bucket, KEY))["last_modified"] == first[
            "last_modified"
        ]
        await backend._obstore.put_async(backend._bucket, KEY, b"evil" + DATA[4:])
        with pytest.raises(ResultDamaged, match=KEY) as caught:
            await store.get(KEY)
        assert f"{scheme}://" in str(caught.value)
        assert not caught.value.retryable
        await store.put(KEY, DATA)
        assert await store.get(KEY) == DATA

    use(BucketResults(places[scheme], tmp_path), work)


@pytest.mark.parametrize("scheme", ["s3", "gs", "az"])
def test_many_may_write_the_same_at_once(places: dict[str, str], scheme: str, tmp_path: Path) -> None:
    async def work(store: ResultStore) -> None:
        for _ in range(3):
            await store.expire(KEY, "2024-05-01T12:00:00Z")
            await asyncio.gather(*(store.put(KEY, DATA) for _ in range(8)))
            assert await store.get(KEY) == DATA

    use(BucketResults(places[scheme], tmp_path), work)


@pytest.mark.parametrize("scheme", ["s3", "gs", "az"])
def test_a_large_file_goes_in_parts(places: dict[str, str], scheme: str, tmp_path: Path) -> None:
    data = bytes(range(256)) * (2 * PART_BYTES // 256) + b"and a rest"
    key = result_key_of(EXECUTION, data)

    async def work(store: ResultStore) -> None:
        for _ in range(2):
            path = store.scratch(EXECUTION) / "large"
            path.write_bytes(data)
            await store.put_file(key, path)
        assert await store.get(key) == data
        assert await store.read(key, len(data) - 5) == b" rest"

    use(BucketResults(places[scheme], tmp_path), work)


def test_of_large_files_the_stand_in_sees_parts_and_the_second_time_nothing(
    places: dict[str, str], gcs: GcsServer, tmp_path: Path
) -> None:
    data = b"x" * (2 * PART_BYTES + 1)
    key = result_key_of(EXECUTION, data)

    async def work(store: ResultStore) -> None:
        gcs.requests.clear()
        await store.put(key, data)
        assert [method for method, path, _ in gcs.requests if "partNumber" in path] == ["PUT"] * 3
        gcs.requests.clear()
        await store.put(key, data)
        assert {method for method, _, _ in gcs.requests} == {"HEAD", "GET"}

    use(BucketResults(places["gs"], tmp_path), work)


def test_a_missing_bucket_is_named(
    gcs: GcsServer, azure: AzureServer, nats: NatsServer, tmp_path: Path
) -> None:
    for url, location in (  # the server that speaks S3 makes the bucket
        (gcs.location("p", "nobody-has-this"), "gs://nobody-has-this/p"),
        (azure.location("p", "nobody-has-this"), "az://nobody-has-this/p"),
    ):
        error = check_error(BucketResults(url, tmp_path))
        assert str(error) == f"{location}: there is no bucket `nobody-has-this`"
        assert error.hint == "make it, or name another in the URL"
    error = check_error(NatsResults(f"{nats.url}/nobody-has-this", tmp_path))
    assert "there is no object store `nobody-has-this`" in str(error)
    assert error.hint == "`nats object add nobody-has-this` makes it"


def test_who_has_no_rights_is_told_where_credentials_come_from(
    places: dict[str, str], gcs: GcsServer, nats: NatsServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", "d3Jvbmc=")
    monkeypatch.setenv("NATS_PASSWORD", "wrong")
    for url, variable in (
        (places["s3"], "AWS_SECRET_ACCESS_KEY"),
        (gcs.location("p", FORBIDDEN), "GOOGLE_SERVICE_ACCOUNT"),
        (places["az"], "AZURE_STORAGE_ACCOUNT_KEY"),
    ):
        error = check_error(BucketResults(url, tmp_path))
        assert str(error).endswith(": the credentials do not allow this")
        assert variable in error.hint
    error = check_error(NatsResults(f"{nats.url}/bucket", tmp_path))
    # The server may end the connection before the client has read why.
    assert re.search("authorization violation|reset by peer", str(error), re.IGNORECASE)
    assert "NATS_PASSWORD" in error.hint


def test_a_nats_user_who_may_not_write_is_told(
    nats: NatsServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket = uuid4().hex
    asyncio.run(create_object_store(nats, bucket))
    monkeypatch.setattr("noetl.stores.results.nats_backend.ANSWER_SECONDS", 2)
    monkeypatch.setenv("NATS_USER", "guest")
    monkeypatch.setenv("NATS_PASSWORD", "guest")
    use(NatsResults(f"{nats.url}/{bucket}", tmp_path), lambda each: each.check())
    monkeypatch.setenv("NATS_USER", "mute")
    monkeypatch.setenv("NATS_PASSWORD", "mute")
    assert "permissions violation" in str(check_error(NatsResults(f"{nats.url}/{bucket}", tmp_path))).lower()


def test_nobody_is_there(tmp_path: Path) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        for url in (
            f"s3://b/p?endpoint=http://127.0.0.1:{port}",
            f"gs://b/p?endpoint=http://127.0.0.1:{port}",
            f"az://b/p?endpoint=http://127.0.0.1:{port}/a",
        ):
            assert str(check_error(BucketResults(url, tmp_path))).startswith(f"{url[:6]}/p: ")
        assert f"nats://127.0.0.1:{port}/b: " in str(
            check_error(NatsResults(f"nats://127.0.0.1:{port}/b", tmp_path))
        )


def test_a_connection_to_nats_that_was_cut_is_made_anew(tmp_path: Path) -> None:
    with nats_server() as server:
        asyncio.run(create_object_store(server, "results"))
        results = NatsResults(f"{server.url}/results", tmp_path)

        async def work(store: ResultStore) -> None:
            await store.put(KEY, DATA)
            await results._backend._client.close()  # type: ignore[attr-defined]  # as a network does it
            assert await store.get(KEY) == DATA
            server.process.kill()
            server.process.wait()
            with pytest.raises(ResultError) as caught:
                await store.get(KEY)
            assert not isinstance(caught.value, ResultMissing)
            with pytest.raises(ResultError, match="nats://"):
                await store.put(KEY, DATA)

        use(results, work)


def test_what_a_crash_left_of_a_put_to_nats_is_swept(nats: NatsServer, tmp_path: Path) -> None:
    bucket = uuid4().hex
    asyncio.run(create_object_store(nats, bucket))

    async def work(store: ResultStore) -> None:
        backend = store._backend  # type: ignore[attr-defined]  # a put ends between chunks and name
        await store.put(KEY, DATA)
        client = await backend._connected()
        await client.jetstream().publish(f"$O.{bucket}.C.LEFT", b"chunk")
        assert await store.sweep(0) == 0
        assert await store.sweep(2**40) == 1
        assert await store.sweep(2**40) == 0
        assert await store.get(KEY) == DATA
        await store.delete(EXECUTION)
        assert await backend._subjects("C") == await backend._subjects("M") == []

    use(NatsResults(f"{nats.url}/{bucket}", tmp_path), work)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("gs://", "no place for results"),
        ("gs://b?region=x", "with `region`"),
        ("az://c?colour=red", "with `colour`"),
        ("nats://host", "names no server and bucket"),
        ("nats:///bucket", "names no server and bucket"),
        ("nats://host/a/b", "names no server and bucket"),
        ("nats://host/b?x=1", "names no server and bucket"),
        ("nats://ada:secret@host/b", "who signs in does not stand in it"),
        ("ftp://ada:secret@host/b", "no place for results"),
    ],
)
def test_urls_that_are_wrong_are_refused_without_their_passwords(
    tmp_path: Path, url: str, message: str
) -> None:
    store = SqliteStore.in_memory()
    with pytest.raises(ResultStoreUrlWrong, match=message) as caught:
        open_result_stores(Home(tmp_path), store, own=url)
    assert caught.value.hint
    assert "secret" not in str(caught.value)
    asyncio.run(store.close())


def test_only_stores_that_are_set_are_tried_and_their_setting_is_named(
    gcs: GcsServer, tmp_path: Path
) -> None:
    async def work() -> None:
        store = SqliteStore.in_memory()
        await open_result_stores(Home(tmp_path), store).check()
        assert not (tmp_path / "results").exists()
        wrong = gcs.location("p", "nobody-has-this")
        for own, named, setting in (
            (wrong, (), "`result_store`: gs://"),
            ("", ("db=store:", f"far={wrong}"), "`result_stores`, `far`: gs://"),
        ):
            with pytest.raises(ResultError, match=setting):
                await open_result_stores(Home(tmp_path), store, own=own, named=named).check()
        await open_result_stores(Home(tmp_path), store, own=gcs.location("p", BUCKET)).check()
        await store.close()

    asyncio.run(work())


@pytest.mark.parametrize("scheme", ["s3", "gs", "az"])
def test_a_grant_is_for_one_body_and_needs_no_credentials(
    places: dict[str, str], scheme: str, tmp_path: Path
) -> None:
    async def work(store: ResultStore) -> None:
        put, get = [await store.grant(KEY, method, 60) for method in ("PUT", "GET")]
        assert put is not None
        assert get is not None
        async with ClientSession(skip_auto_headers=["Content-Type"]) as http:

            async def status(method: str, grant: AccessGrant, url: str = "") -> int:
                target = URL(url or grant.url, encoded=True)
                async with http.request(method, target, data=DATA, headers=grant.headers) as response:
                    return response.status

            assert await status("PUT", put) in (200, 201)
            assert await store.get(KEY) == DATA
            async with http.get(URL(get.url, encoded=True), headers=get.headers) as response:
                assert await response.read() == DATA
            if scheme != "gs":  # the stand-in does not look who signed what
                other = hashlib.sha256(b"other").hexdigest()
                assert await status("PUT", put, put.url.replace(KEY.partition("/")[2], other)) == 403

    use(BucketResults(places[scheme], tmp_path), work)


def test_where_there_are_no_urls_there_is_no_grant(nats: NatsServer, tmp_path: Path) -> None:
    async def work(store: ResultStore) -> None:
        for method in ("PUT", "GET"):
            assert await store.grant(KEY, method, 60) is None

    use(NatsResults(f"{nats.url}/bucket", tmp_path), work)
    use(FileResults(tmp_path), work)
