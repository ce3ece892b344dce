"""The feed for other systems: a real server, a real NATS, and what stands in the stream."""

import asyncio
import json
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
import pytest
from nats.errors import Error as NatsError
from nats.js.api import StreamConfig
from nats.js.errors import NotFoundError

from bench.postgres_server import PostgresServer
from noetl.ports.http_api import StartExecution
from noetl.server.feed_publisher import FeedPublisher, subject_of_path
from noetl.server.feed_stream import FeedEnd, FeedError, FeedMessage, FeedStream
from noetl.server.http.event_bell import EventBell
from noetl.stores import open_store
from noetl.stores.nats_connection import connect_nats
from tests.cli.command_line import run
from tests.nats_server import NatsServer, nats_client, nats_server
from tests.server.server_process import GREET, PARENT, ServerProcess, kill, server_process

_numbers = count(1)
PATIENCE = 120.0


class Published(NamedTuple):
    subject: str
    headers: dict[str, str]
    document: dict[str, Any]


@pytest.fixture
def stream() -> str:
    """The name of one that is not there yet."""
    return f"FEED_{next(_numbers)}"


def feed_flags(nats: NatsServer, stream: str) -> dict[str, str]:
    return {**nats.environment, "NOETL_FEED": f"{nats.url}/{stream}"}


def read_stream(nats: NatsServer, stream: str, number: int) -> list[Published]:
    """Its first messages, as they come."""

    async def read() -> list[Published]:
        async with nats_client(nats) as client, asyncio.timeout(PATIENCE):
            context = client.jetstream()
            while True:
                try:
                    await context.stream_info(stream)
                    break
                except NotFoundError:
                    await asyncio.sleep(0.05)  # the server makes it when it has reached NATS
            messages = await context.subscribe(f"{stream}.events.>", ordered_consumer=True)
            published: list[Published] = []
            while len(published) < number:
                message = await messages.next_msg(timeout=PATIENCE)
                headers = dict(message.headers or {})
                published.append(Published(message.subject, headers, json.loads(message.data)))
            return published

    return asyncio.run(read())


def last_number(nats: NatsServer, stream: str) -> int:
    async def ask() -> int:
        async with nats_client(nats) as client:
            return int((await client.jetstream().stream_info(stream)).state.last_seq)

    return asyncio.run(ask())


def recorded_order(home: Path) -> list[str]:
    """The ids of all events in the order of commits, as the file has them."""
    with sqlite3.connect(home / "store.db") as connection:
        query = "SELECT execution.id || '/' || seq FROM event JOIN execution USING (x) ORDER BY pos"
        return [name for [name] in connection.execute(query)]


def printed_events(server: ServerProcess, event_ids: Iterable[str], *flags: str) -> dict[str, dict[str, Any]]:
    """What `noetl executions events` prints of these executions, by the id of the event."""
    flags = flags or ("--home", str(server.home))
    events: dict[str, dict[str, Any]] = {}
    for name in {event_id.partition("/")[0] for event_id in event_ids}:
        done = run("executions", "events", name, "-o", "json", *flags, cwd=server.home.parent)
        events |= {event["event_id"]: event for event in json.loads(done.out)["events"]}
    return events


def assert_published(nats: NatsServer, stream: str, server: ServerProcess) -> list[Published]:
    """Everything once, in the order of commits, and nothing else."""
    expected = recorded_order(server.home)
    published = read_stream(nats, stream, len(expected))
    assert [message.headers["Nats-Msg-Id"] for message in published] == expected
    assert last_number(nats, stream) == len(expected)
    printed = printed_events(server, expected)
    assert [message.document for message in published] == [printed[name] for name in expected]
    return published


def start_many(server: ServerProcess, number: int) -> list[str]:
    client = server.client
    client.register(GREET)
    client.register(PARENT)
    paths = ("examples/greet", "examples/parent")
    return [client.start(StartExecution(path=paths[n % 2])).execution_id for n in range(number)]


def wait_for_all(server: ServerProcess, names: Sequence[str]) -> None:
    for name in names:
        server.client.wait(name)


def wait_until(condition: Callable[[], bool]) -> None:
    while not condition():
        pass  # each question takes its time, and the test has a time limit


def test_every_event_is_published_in_the_order_of_commits(
    tmp_path: Path, nats: NatsServer, stream: str
) -> None:
    with server_process(tmp_path, "--feed", f"{nats.url}/{stream}", env=nats.environment) as server:
        wait_for_all(server, start_many(server, 6))
        published = assert_published(nats, stream, server)
        positions = [int(message.headers["Noetl-Position"]) for message in published]
        assert positions == sorted(set(positions))
        for message in published:
            name, path = message.document["name"], message.subject.rpartition(".")[2]
            assert message.subject == f"{stream}.events.{name}.examples.{path}"
            assert message.headers.keys() == {
                "Nats-Msg-Id",
                "Nats-Expected-Stream",
                "Nats-Expected-Last-Sequence",
                "Noetl-Position",
            }
        assert {message.subject.rpartition(".")[2] for message in published} == {"greet", "parent"}
        wait_until(lambda: getattr(server.client.status().feed, "lag", None) == 0)
        checked = run("doctor", "--home", str(server.home), cwd=tmp_path)
        assert f"feed lag: {nats.url}/{stream} is 0 s behind" in checked.out
        assert (
            f"feed {nats.url}/{stream}: 0.0 s behind"
            in run("server", "status", "--home", str(server.home), cwd=tmp_path).out
        )


def test_what_happens_while_the_server_ends_is_published_before_it_is_gone(
    tmp_path: Path, nats: NatsServer, stream: str
) -> None:
    with server_process(tmp_path, env=feed_flags(nats, stream)) as server:
        start_many(server, 6)
        assert server.stop() == 0
        assert last_number(nats, stream) == len(recorded_order(server.home))


def test_a_server_that_was_killed_goes_on_where_the_stream_ends(
    tmp_path: Path, nats: NatsServer, stream: str
) -> None:
    names: list[str] = []
    for _ in range(3):
        with server_process(tmp_path, env=feed_flags(nats, stream)) as server:
            seen = len(recorded_order(server.home))
            names += start_many(server, 10)
            read_stream(nats, stream, seen + 1)
            kill(server)
    with server_process(tmp_path, env=feed_flags(nats, stream)) as server:
        wait_for_all(server, names)
        assert_published(nats, stream, server)


def test_without_nats_executions_end_and_the_feed_catches_up(tmp_path: Path, stream: str) -> None:
    with ExitStack() as stack:
        nats = stack.enter_context(nats_server(tmp_path / "streams"))
        server = stack.enter_context(server_process(tmp_path, env=feed_flags(nats, stream)))
        for _ in range(2):
            wait_for_all(server, start_many(server, 2))
            nats.process.kill()
            nats.process.wait()
            wait_for_all(server, start_many(server, 4))
            wait_until(lambda: getattr(server.client.status().feed, "problem", None) is not None)
            assert getattr(server.client.status().feed, "lag", 0) > 0
            checked = run("doctor", "--home", str(server.home), cwd=tmp_path)
            assert checked.code == 0
            assert f"warning feed lag: {nats.url}/{stream} is" in checked.out
            nats = stack.enter_context(nats_server(tmp_path / "streams", nats.url))
            assert_published(nats, stream, server)
            wait_until(lambda: getattr(server.client.status().feed, "problem", "") is None)
        log = (tmp_path / "server.err").read_text()
        assert log.count("feed recovered") == 2


def test_a_server_starts_without_nats_and_publishes_when_it_is_there(tmp_path: Path, stream: str) -> None:
    with nats_server() as gone:
        pass
    with server_process(tmp_path, env=feed_flags(gone, stream)) as server:
        wait_for_all(server, start_many(server, 2))
        with nats_server(url=gone.url) as nats:
            assert_published(nats, stream, server)


def test_a_stream_that_was_deleted_is_made_and_filled_again(
    tmp_path: Path, nats: NatsServer, stream: str
) -> None:
    async def delete() -> None:
        async with nats_client(nats) as client:
            await client.jetstream().delete_stream(stream)

    with server_process(tmp_path, env=feed_flags(nats, stream)) as server:
        wait_for_all(server, start_many(server, 4))
        assert_published(nats, stream, server)
        asyncio.run(delete())
        wait_for_all(server, start_many(server, 2))
        assert_published(nats, stream, server)
        asyncio.run(delete())
    with server_process(tmp_path, env=feed_flags(nats, stream)) as server:
        assert_published(nats, stream, server)


def prune(*store: str, cwd: Path) -> None:
    """Deletes every execution: also that of the last message."""
    done = run("executions", "prune", "--before", "0s", "-y", *store, cwd=cwd)
    assert done.code == 0, done.err


def test_the_feed_goes_on_when_what_it_published_was_deleted(
    tmp_path: Path, nats: NatsServer, stream: str
) -> None:
    with server_process(tmp_path, env=feed_flags(nats, stream)) as server:
        wait_for_all(server, start_many(server, 2))
        server.stop()
    prune("--home", str(server.home), cwd=tmp_path)
    before = last_number(nats, stream)
    with server_process(tmp_path, env=feed_flags(nats, stream)) as server:
        wait_for_all(server, start_many(server, 2))
        expected = recorded_order(server.home)
        published = read_stream(nats, stream, before + len(expected))
    assert [message.headers["Nats-Msg-Id"] for message in published[before:]] == expected


def test_two_publishers_at_once_leave_no_gap_and_no_disorder(
    tmp_path: Path, nats: NatsServer, stream: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("noetl.server.feed_publisher.BATCH", 7)
    monkeypatch.setattr("noetl.server.feed_publisher.RETRY_SECONDS", 0.01)
    monkeypatch.setattr("noetl.server.feed_publisher._MOST_ORIGINS", 2)
    with server_process(tmp_path) as server:
        wait_for_all(server, start_many(server, 10))
    url = f"sqlite:///{server.home}/store.db"

    async def publish_both() -> None:
        first, second = open_store(url), open_store(url)
        try:
            publishers = [
                FeedPublisher(
                    FeedStream(f"{nats.url}/{stream}", nats.environment), store, EventBell(), keeps_end=True
                )
                for store in (first, second)
            ]
            async with publishers[0], publishers[1], nats_client(nats) as client:
                messages = await client.jetstream().subscribe(f"{stream}.events.>", ordered_consumer=True)
                for _ in range(len(recorded_order(server.home))):
                    await messages.next_msg(timeout=PATIENCE)
        finally:
            await first.close()
            await second.close()

    asyncio.run(publish_both())
    assert_published(nats, stream, server)


def test_a_publisher_that_was_overtaken_is_refused(nats: NatsServer, stream: str) -> None:
    """Not by the ids of messages alone: those are forgotten after two minutes."""

    async def publish() -> None:
        first, second = (FeedStream(f"{nats.url}/{stream}", nats.environment) for _ in range(2))
        try:
            assert await first.open() == await second.open() == FeedEnd("", 0, 0)
            messages = [FeedMessage(f"{stream}.events.A.b", f"x/{n}", n, b"{}") for n in range(1, 4)]
            assert await first.publish(messages[:2], 0) == 2
            with pytest.raises(FeedError, match="another publisher was faster"):
                await second.publish(messages[2:], 0)
            assert await second.open() == FeedEnd("x/2", 2, 2)
            assert await second.publish(messages[2:], 2) == 3
            with pytest.raises(FeedError, match="sent a moment ago"):
                await second.publish(messages[:1], 3)
        finally:
            await first.close()
            await second.close()

    asyncio.run(publish())
    assert last_number(nats, stream) == 3


def test_an_event_that_is_too_large_is_published_without_its_data(tmp_path: Path, stream: str) -> None:
    with (
        nats_server(configuration="max_payload: 20000\n") as nats,
        server_process(tmp_path, env=feed_flags(nats, stream)) as server,
    ):
        server.client.register(GREET)
        request = StartExecution(path="examples/greet", workload={"name": "x" * 20_000})
        server.client.wait(server.client.start(request).execution_id)
        names = recorded_order(server.home)
        published = read_stream(nats, stream, len(names))
        printed = printed_events(server, names)
    omitted = [message for message in published if "Noetl-Omitted" in message.headers]
    assert {message.headers["Noetl-Omitted"] for message in omitted} == {"data"}
    assert "PlaybookExecutionRequested" in {message.document["name"] for message in omitted}
    for message in published:
        expected = dict(printed[message.document["event_id"]])
        if message in omitted:
            assert len(json.dumps(expected.pop("data"))) > 15_000
        assert message.document == expected


def test_a_server_on_postgresql_publishes_too(
    tmp_path: Path, nats: NatsServer, stream: str, postgres: PostgresServer
) -> None:
    url = postgres.dsn(schema=f"feed_{next(_numbers)}")
    with server_process(tmp_path, "--store", url, env=feed_flags(nats, stream)) as server:
        wait_for_all(server, start_many(server, 4))
        server.stop()
    prune("--store", url, cwd=tmp_path)
    before = last_number(nats, stream)
    with server_process(tmp_path, "--store", url, env=feed_flags(nats, stream)) as server:
        wait_for_all(server, start_many(server, 4))
        with psycopg.connect(url.rpartition("&schema=")[0]) as connection:
            query = f"SELECT count(*) FROM {url.rpartition('schema=')[2]}.event"  # noqa: S608 - a name made here
            [number] = connection.execute(query).fetchone() or [0]
        published = read_stream(nats, stream, before + number)[before:]
        printed = printed_events(server, [m.headers["Nats-Msg-Id"] for m in published], "--store", url)
    assert {message.headers["Nats-Msg-Id"]: message.document for message in published} == printed
    positions = [int(message.headers["Noetl-Position"]) for message in published]
    assert positions == sorted(set(positions))
    for name in {message.document["execution_id"] for message in published}:
        numbers = [m.document["seq"] for m in published if m.document["execution_id"] == name]
        assert numbers == list(range(1, len(numbers) + 1))


def test_of_several_servers_one_publishes_and_another_goes_on_when_it_is_gone(
    tmp_path: Path, postgres: PostgresServer, nats: NatsServer, stream: str
) -> None:
    url = postgres.dsn(schema=f"feed_of_several_{next(_numbers)}")
    env = feed_flags(nats, stream)
    folders = [tmp_path / "first", tmp_path / "second"]
    for folder in folders:
        folder.mkdir()
    with ExitStack() as stack:
        first, second = [
            stack.enter_context(server_process(folder, "--store", url, env=env)) for folder in folders
        ]
        first.client.register(GREET)
        names = [start_many(server, 3) for server in (first, second) for _ in range(2)]
        for started in names:
            wait_for_all(second, started)
        kill(first)
        names.append(start_many(second, 2))
        wait_for_all(second, names[-1])
        with psycopg.connect(postgres.dsn()) as connection:
            query = f"SELECT count(*) FROM {url.rpartition('schema=')[2]}.event"  # noqa: S608 - a name made here
            [number] = connection.execute(query).fetchone() or [0]
        published = [message.headers["Nats-Msg-Id"] for message in read_stream(nats, stream, number)]
        assert len(published) == len(set(published)) == number
        assert second.stop() == 0
    assert "feed failing" not in "".join((folder / "server.err").read_text() for folder in folders)


def refuse(folder: Path, feed: str, env: dict[str, str]) -> str:
    flags = ("--port", "0", "--home", str(folder / "server-home"), "--feed", feed)
    done = run("server", "start", *flags, cwd=folder, env=env)
    assert done.code == 3, done.err
    return done.err


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("nats://127.0.0.1:4222", "names no server and stream"),
        ("nats://127.0.0.1:4222/a/b", "names no server and stream"),
        ("nats://127.0.0.1:4222/a.b", "letters, digits"),
        ("http://127.0.0.1:4222/EVENTS", "nats://HOST:PORT/STREAM"),
        ("nats://ada:open-sesame@127.0.0.1:4222/EVENTS", "set NATS_USER"),
    ],
)
def test_a_wrong_url_ends_the_start(tmp_path: Path, url: str, message: str) -> None:
    refusal = refuse(tmp_path, url, {})
    assert message in refusal
    assert "open-sesame" not in refusal


def test_a_start_without_client_access_or_jetstream_says_what_to_do(
    tmp_path: Path, nats: NatsServer, stream: str
) -> None:
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden" / "nats.py").write_text("raise ImportError('hidden')\n")
    url = f"{nats.url}/{stream}"
    hidden = {**nats.environment, "PYTHONPATH": str(tmp_path / "hidden")}
    assert "noetl[nats]" in refuse(tmp_path, url, hidden)
    assert "NATS_PASSWORD" in refuse(tmp_path, url, {"NATS_USER": "ada", "NATS_PASSWORD": "wrong"})
    with nats_server(jetstream=()) as plain:
        assert "`nats-server -js`" in refuse(tmp_path, f"{plain.url}/{stream}", plain.environment)


def test_a_wrong_password_is_never_taken_for_a_server_that_is_gone(nats: NatsServer) -> None:
    async def sign_in_often() -> None:
        for _ in range(400):  # the server closes the connection at once, and a race may lose its last words
            with pytest.raises(NatsError, match="Authorization Violation"):
                await connect_nats(nats.url, {"user": "ada", "password": "wrong"}, lambda _: None)

    asyncio.run(sign_in_often())


@pytest.fixture
def make_stream(nats: NatsServer) -> Callable[[StreamConfig, str], None]:
    async def make(config: StreamConfig, subject: str) -> None:
        async with nats_client(nats) as client:
            await client.jetstream().add_stream(config)
            if subject:
                await client.jetstream().publish(subject, b"{}")

    return lambda config, subject: asyncio.run(make(config, subject))


def test_a_stream_that_is_no_feed_is_left_alone(
    tmp_path: Path, nats: NatsServer, stream: str, make_stream: Callable[[StreamConfig, str], None]
) -> None:
    other, strange, aged = f"{stream}_OTHER", f"{stream}_STRANGE", f"{stream}_AGED"
    make_stream(StreamConfig(name=other, subjects=[f"{other}.>"]), "")
    make_stream(StreamConfig(name=strange, subjects=[f"{strange}.events.>"]), f"{strange}.events.x")
    make_stream(StreamConfig(name=aged, subjects=[f"{aged}.events.>"], max_age=60.0), "")
    for name, message in ((other, "other subjects"), (strange, "not of a server"), (aged, "largest age")):
        assert message in refuse(tmp_path, f"{nats.url}/{name}", nats.environment)
    assert (last_number(nats, other), last_number(nats, strange)) == (0, 1)


def test_a_stream_of_another_store_is_left_alone(tmp_path: Path, nats: NatsServer, stream: str) -> None:
    (tmp_path / "first").mkdir()
    (tmp_path / "second").mkdir()
    with server_process(tmp_path / "first", env=feed_flags(nats, stream)) as server:
        wait_for_all(server, start_many(server, 2))
        before = len(assert_published(nats, stream, server))
    refusal = refuse(tmp_path / "second", f"{nats.url}/{stream}", nats.environment)
    assert "events of another store" in refusal
    with server_process(tmp_path / "second") as server:  # with as many events of its own
        wait_for_all(server, start_many(server, 4))
    assert "events of another store" in refuse(tmp_path / "second", f"{nats.url}/{stream}", nats.environment)
    assert last_number(nats, stream) == before


def test_a_path_becomes_a_subject() -> None:
    assert subject_of_path("examples/greet") == "examples.greet"
    assert subject_of_path("a b/c.d/>/*é") == "a_b.c_d._.__"
    assert subject_of_path("") == "_"
    assert len(subject_of_path("x/" * 5_000)) <= 500
