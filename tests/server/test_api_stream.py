"""One stream for all that a browser shows: topics, and going on without gap or double."""

import asyncio
import http.client
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode, urlsplit

import pytest
from starlette.types import Message

from noetl.client.http_client import Client
from noetl.ports.http_api import StartExecution
from noetl.server.http import sse
from noetl.server.http.sse import sse_response
from tests.server.server_process import GREET, WAITING, ServerProcess, kill, server_process
from tests.server.test_api_security import send

ELSEWHERE = GREET.replace("path: examples/greet", "path: examples/elsewhere").replace(
    "- step: start", "- step: start\n  spec: {pool: nowhere}"
)


class Received(NamedTuple):
    id: str
    event: str
    data: Any


class Reader:
    """As an EventSource: it keeps the last id, also of messages without data."""

    def __init__(self, answer: http.client.HTTPResponse) -> None:
        self._answer = answer
        self.last_id = ""

    def __iter__(self) -> Iterator[Received]:
        event, data = "", ""
        for line in iter(self._answer.readline, b""):
            name, _, value = line.decode().rstrip("\n").partition(": ")
            if name == "id":
                self.last_id = value
            elif name == "event":
                event = value
            elif name == "data":
                data = value
            elif not name and data:
                yield Received(self.last_id, event, json.loads(data))
                event, data = "", ""

    def until(self, event: str) -> Received:
        return next(received for received in self if received.event == event)


@contextmanager
def reading(server: ServerProcess, *topics: str, after: str = "", header: str = "") -> Iterator[Reader]:
    connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=60)
    headers = {"Authorization": f"Bearer {server.token}"}
    if header:
        headers["Last-Event-ID"] = header
    query = urlencode({"topics": ",".join(topics), **({"after": after} if after else {})})
    connection.request("GET", f"/api/stream?{query}", headers=headers)
    answer = connection.getresponse()
    assert answer.status == 200, answer.read()
    assert answer.headers["Content-Type"].startswith("text/event-stream")
    assert answer.readline() == b": ok\n"
    try:
        yield Reader(answer)
    finally:
        connection.close()


@pytest.mark.parametrize(
    "topics",
    [
        "",
        "nothing",
        "execution",
        "execution:",
        "executions,nothing",
        ",".join(f"execution:{n}" for n in range(101)),
    ],
)
def test_what_is_no_topic_is_refused(server: ServerProcess, topics: str) -> None:
    url = f"{server.url}/api/stream?{urlencode({'topics': topics})}"
    status, _, problem = send(url, token=server.token)
    assert (status, problem["code"], problem["pointer"]) == (422, "invalid_request", "/topics")


@pytest.mark.parametrize("after", ["x", "-1", "1.5", "9" * 30])
def test_what_is_no_cursor_is_refused(server: ServerProcess, after: str) -> None:
    url = f"{server.url}/api/stream?topics=executions&{urlencode({'after': after})}"
    assert send(url, token=server.token)[2]["code"] == "invalid_request"
    assert (
        send(f"{server.url}/api/stream?topics=executions", token=server.token, Last_Event_ID=after)[0] == 422
    )


def test_the_list_of_executions_changes_as_they_do(server: ServerProcess, client: Client) -> None:
    with reading(server, "executions") as reader:
        started = client.start(StartExecution(path="examples/greet"))
        statuses = []
        for received in reader:
            assert received.event == "executions"
            statuses += [
                item["status"]
                for item in received.data["executions"]
                if item["execution_id"] == started.execution_id
            ]
            if statuses and statuses[-1] == "completed":
                break


def test_an_execution_gives_each_event_once_and_others_none(server: ServerProcess, client: Client) -> None:
    waiting = client.start(StartExecution(path="examples/waiting")).execution_id
    with reading(server, f"execution:{waiting}", after="0") as reader:
        for received in reader:
            if "RunSuspended" in [event["name"] for event in received.data["events"]]:
                break
    known = client.events(waiting).events
    with reading(server, f"execution:{waiting}") as reader:
        client.start(StartExecution(path="examples/greet"))
        client.signal(waiting, "go")
        events: list[dict[str, Any]] = []
        for received in reader:
            assert (received.event, received.data["execution_id"]) == ("execution", waiting)
            events += received.data["events"]
            if events[-1]["name"] == "PlaybookProcessed":
                break
    recorded = client.events(waiting).events
    seqs = [event["seq"] for event in events]
    assert seqs == list(range(seqs[0], recorded[-1]["seq"] + 1))
    assert seqs[0] <= known[-1]["seq"] + 1
    assert events == recorded[seqs[0] - 1 :]


def test_a_new_wait_is_told(server: ServerProcess, client: Client) -> None:
    with reading(server, "waits") as reader:
        client.start(StartExecution(path="examples/greet"))
        client.start(StartExecution(path="examples/waiting"))
        assert reader.until("waits").data == {"topic": "waits"}


def test_a_queue_that_grows_and_a_worker_that_leaves_are_told(tmp_path: Path) -> None:
    with server_process(tmp_path) as server:
        server.client.register(ELSEWHERE)
        with reading(server, "queue", "workers") as reader:
            server.client.start(StartExecution(path="examples/elsewhere"))
            assert reader.until("queue").data == {"topic": "queue"}
            worker = server.client.workers().workers[0]
            server.client.drain_worker(worker.session)
            assert reader.until("workers").data == {"topic": "workers"}


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_a_stream_goes_on_after_a_restart_without_gap_or_double(tmp_path: Path, end: str) -> None:
    events: list[int] = []
    with server_process(tmp_path) as first:
        first.client.register(WAITING)
        execution_id = first.client.start(StartExecution(path="examples/waiting")).execution_id
        with reading(first, f"execution:{execution_id}", after="0") as reader:
            for received in reader:
                events += [event["seq"] for event in received.data["events"]]
                if received.data["events"][-1]["name"] == "RunSuspended":
                    break
            if end == "stop":
                first.stop()
            else:
                kill(first)
            assert not list(reader)
        cursor = reader.last_id
    with server_process(tmp_path) as second:
        second.client.signal(execution_id, "go")
        second.client.wait(execution_id)
        with reading(second, f"execution:{execution_id}", header=cursor) as reader:
            for received in reader:
                events += [event["seq"] for event in received.data["events"]]
                if received.data["events"][-1]["name"] == "PlaybookProcessed":
                    break
        last = second.client.show(execution_id).events
    assert events == list(range(1, last + 1))


def test_going_on_behind_any_message_gives_the_rest_and_no_more(
    server: ServerProcess, client: Client
) -> None:
    ids = []
    for _ in range(3):
        # One after the other, so that the last event is that of the last one.
        ids.append(client.start(StartExecution(path="examples/greet")).execution_id)
        client.wait(ids[-1])
    topics = [f"execution:{execution_id}" for execution_id in ids]
    last = {execution_id: client.show(execution_id).events for execution_id in ids}

    def read(after: str) -> list[tuple[str, str, int]]:
        seen: list[tuple[str, str, int]] = []
        with reading(server, *topics, after=after) as reader:
            for received in reader:
                name = received.data["execution_id"]
                seen += [(received.id, name, event["seq"]) for event in received.data["events"]]
                if name == ids[-1] and seen[-1][2] == last[name]:
                    return seen
        raise AssertionError(seen)

    everything = read("0")
    by_execution = {name: [seq for _, of, seq in everything if of == name] for name in ids}
    assert by_execution == {name: list(range(1, last[name] + 1)) for name in ids}
    for cursor in dict.fromkeys(position for position, _, _ in everything[:-1]):
        if int(cursor) < int(everything[-1][0]):
            behind = [entry for entry in everything if int(entry[0]) > int(cursor)]
            assert [entry[1:] for entry in read(cursor)] == [entry[1:] for entry in behind]


def test_a_reader_that_does_not_read_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "PATIENCE", 0.01)
    sent: list[Message] = []

    async def messages() -> AsyncIterator[bytes]:
        while True:
            yield b"data: 1\n\n"

    async def receive() -> Message:
        await asyncio.Event().wait()
        raise AssertionError

    async def send_slowly(message: Message) -> None:
        sent.append(message)
        if len(sent) > 3:
            await asyncio.Event().wait()

    scope = {"type": "http", "asgi": {"spec_version": "2.3"}}

    async def respond() -> None:
        await asyncio.wait_for(sse_response(messages())(scope, receive, send_slowly), 30)

    asyncio.run(respond())
    assert len(sent) == 4
