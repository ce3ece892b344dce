"""The kind `nats`, on a real server with JetStream."""

import asyncio
import os
import select
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from nats.aio.client import Client
from nats.js import JetStreamContext
from nats.js.api import KeyValueConfig, StreamConfig

import noetl
from noetl.model.outcome import Outcome
from noetl.stores.results.memory_backend import MemoryResults
from noetl.stores.results.result_store_objects import ResultStoreObjects
from noetl.tools.nats.connections import connection_options
from noetl.tools.nats.tool import NatsTool
from tests.nats_server import NatsServer, nats_server
from tests.tools.calls import call_of

_numbers = count(1)


@asynccontextmanager
async def connected(server: NatsServer) -> AsyncIterator[Client]:
    client = Client()
    await client.connect(server.url, user="ada", password="open-sesame")
    try:
        yield client
    finally:
        await client.close()


class Attempts:
    """Attempts of tasks with one tool, in one loop."""

    def __init__(self, server: NatsServer, folder: Path) -> None:
        self.server = server
        self.folder = folder
        self.tool = NatsTool()
        self.objects = ResultStoreObjects(MemoryResults(), "x")

    async def attempt(self, *, timeout: float = 30, idempotency: str = "k", **inputs: Any) -> Outcome:
        call = call_of(
            "nats",
            {"auth": self.server.auth, **inputs},
            timeout=timeout,
            key=idempotency,
            folder=self.folder,
            objects=self.objects,
        )
        return await self.tool.run(call)

    async def ok(self, **inputs: Any) -> Any:
        outcome = await self.attempt(**inputs)
        assert outcome.status == "ok", outcome.error
        return outcome.result

    async def error(self, **inputs: Any) -> tuple[str, str, bool]:
        outcome = await self.attempt(**inputs)
        assert outcome.error is not None, outcome.result
        return outcome.error.kind, outcome.error.message, outcome.error.retryable


Work = Callable[[Attempts, JetStreamContext], Awaitable[None]]


def on(server: NatsServer, folder: Path, work: Work) -> None:
    async def run() -> None:
        attempts = Attempts(server, folder)
        async with connected(server) as client:
            try:
                await work(attempts, client.jetstream())
            finally:
                await attempts.tool.close()

    asyncio.run(run())


async def new_bucket(jetstream: JetStreamContext) -> str:
    name = f"bucket{next(_numbers)}"
    await jetstream.create_key_value(KeyValueConfig(bucket=name, history=5))
    return name


async def new_object_bucket(jetstream: JetStreamContext) -> str:
    name = f"objects{next(_numbers)}"
    await jetstream.create_object_store(name)
    return name


@pytest.mark.parametrize(
    ("value", "data"),
    [
        ({"a": [1, None]}, b'{"a":[1,null]}'),
        ("plain text", b"plain text"),
        (7, b"7"),
        (None, b""),
        ("", b""),
    ],
)
def test_what_is_put_under_a_key_can_be_had_again(
    nats: NatsServer, tmp_path: Path, value: Any, data: bytes
) -> None:
    async def work(attempts: Attempts, jetstream: JetStreamContext) -> None:
        bucket = await new_bucket(jetstream)
        put = await attempts.ok(action="kv_put", bucket=bucket, key="a.b", value=value)
        assert put == {"key": "a.b", "revision": 1}
        assert (await (await jetstream.key_value(bucket)).get("a.b")).value == (data or None)
        got = await attempts.ok(action="kv_get", bucket=bucket, key="a.b")
        assert got == {"key": "a.b", "value": value or None, "revision": 1}

    on(nats, tmp_path, work)


def test_revisions_are_conditions_of_writes(nats: NatsServer, tmp_path: Path) -> None:
    async def work(attempts: Attempts, jetstream: JetStreamContext) -> None:
        at: Any = {"bucket": await new_bucket(jetstream), "key": "k"}
        assert (await attempts.ok(action="kv_put", **at, value=1, revision=0))["revision"] == 1
        kind, message, retryable = await attempts.error(action="kv_put", **at, value=2, revision=0)
        assert (kind, retryable) == ("input", False)
        assert message == f"`k` in the bucket `{at['bucket']}` has another revision than 0"
        assert (await attempts.ok(action="kv_put", **at, value=2, revision=1))["revision"] == 2
        outcome = await attempts.attempt(action="kv_put", **at, value=3, revision=1)
        assert outcome.error is not None
        assert outcome.error.details == {"code": 10071}
        assert (await attempts.error(action="kv_delete", **at, revision=1))[0] == "input"
        assert (await attempts.ok(action="kv_get", **at))["value"] == 2
        assert (await attempts.ok(action="kv_get", **at, revision=1))["value"] == 1
        assert await attempts.ok(action="kv_delete", **at, revision=2) == {"key": "k", "deleted": True}
        assert (await attempts.error(action="kv_get", **at))[0] == "not_found"
        assert (await attempts.ok(action="kv_put", **at, value=5, revision=0))["revision"] == 4

    on(nats, tmp_path, work)


def test_keys_are_listed_by_pattern_and_deleted_once(nats: NatsServer, tmp_path: Path) -> None:
    async def work(attempts: Attempts, jetstream: JetStreamContext) -> None:
        bucket = await new_bucket(jetstream)
        assert await attempts.ok(action="kv_keys", bucket=bucket) == []
        for key in ("orders.2", "orders.1", "users.1"):
            await attempts.ok(action="kv_put", bucket=bucket, key=key, value=key)
        assert await attempts.ok(action="kv_keys", bucket=bucket) == ["orders.1", "orders.2", "users.1"]
        assert await attempts.ok(action="kv_keys", bucket=bucket, key="orders.>") == ["orders.1", "orders.2"]
        delete: Any = {"action": "kv_delete", "bucket": bucket, "key": "orders.1"}
        assert (await attempts.ok(**delete))["deleted"] is True
        assert (await attempts.ok(**delete))["deleted"] is False
        assert await attempts.ok(action="kv_keys", bucket=bucket, key="orders.>") == ["orders.2"]

    on(nats, tmp_path, work)


@pytest.mark.parametrize(
    ("stored", "chosen", "value"),
    [(b"5", "text", "5"), (b"5", None, 5), (b"5", "json", 5), (b"no json", None, "no json")],
)
def test_the_format_says_how_a_value_is_read(
    nats: NatsServer, tmp_path: Path, stored: bytes, chosen: str | None, value: Any
) -> None:
    async def work(attempts: Attempts, jetstream: JetStreamContext) -> None:
        bucket = await new_bucket(jetstream)
        await (await jetstream.key_value(bucket)).put("k", stored)
        inputs = {} if chosen is None else {"format": chosen}
        assert (await attempts.ok(action="kv_get", bucket=bucket, key="k", **inputs))["value"] == value

    on(nats, tmp_path, work)


def test_what_is_no_text_becomes_a_reference(nats: NatsServer, tmp_path: Path) -> None:
    async def work(attempts: Attempts, jetstream: JetStreamContext) -> None:
        bucket = await new_bucket(jetstream)
        await (await jetstream.key_value(bucket)).put("k", b"\xff\xfe")
        reference = (await attempts.ok(action="kv_get", bucket=bucket, key="k"))["value"]
        async with attempts.objects.local(reference) as path:
            assert path.read_bytes() == b"\xff\xfe"
        kind, message, _ = await attempts.error(action="kv_get", bucket=bucket, key="k", format="json")
        assert (kind, message) == ("input", "what came is no text: 2 bytes")

    on(nats, tmp_path, work)


def test_objects_go_there_and_back(nats: NatsServer, tmp_path: Path) -> None:
    data = os.urandom(300_000)
    (tmp_path / "big.bin").write_bytes(data)

    async def work(attempts: Attempts, jetstream: JetStreamContext) -> None:
        at: Any = {"bucket": await new_object_bucket(jetstream)}
        assert await attempts.ok(action="object_list", **at) == []
        put = await attempts.ok(action="object_put", **at, key="a/big.bin", source="big.bin")
        assert (put["key"], put["size"]) == ("a/big.bin", len(data))
        reference = await attempts.ok(action="object_get", **at, key="a/big.bin")
        async with attempts.objects.local(reference) as path:
            assert path.read_bytes() == data
        await attempts.ok(action="object_put", **at, key="again", source=reference)
        await attempts.ok(action="object_put", **at, key="b.json", content={"a": 1})
        assert await attempts.ok(action="object_get", **at, key="b.json", format="json") == {"a": 1}
        info = await (await jetstream.object_store(at["bucket"])).get_info("b.json")
        assert info.headers == {"Content-Type": "application/json; charset=utf-8"}
        listed = await attempts.ok(action="object_list", **at)
        assert [(item["key"], item["size"]) for item in listed] == [
            ("a/big.bin", len(data)),
            ("again", len(data)),
            ("b.json", 7),
        ]
        assert listed[0]["digest"] == listed[1]["digest"] == put["digest"]
        assert (await attempts.ok(action="object_delete", **at, key="again"))["deleted"] is True
        assert (await attempts.ok(action="object_delete", **at, key="again"))["deleted"] is False
        assert (await attempts.error(action="object_get", **at, key="again"))[0] == "not_found"

    on(nats, tmp_path, work)


def test_a_message_reaches_who_listens(nats: NatsServer, tmp_path: Path) -> None:
    async def work(attempts: Attempts, jetstream: JetStreamContext) -> None:
        async with connected(nats) as client:
            inbox = await client.subscribe("news.>")
            await client.flush()
            sent = await attempts.ok(action="publish", subject="news.a", payload={"n": 1}, headers={"X-N": 1})
            assert sent == {"subject": "news.a", "bytes": 7}
            message = await inbox.next_msg(timeout=30)
            assert (message.data, message.headers) == (b'{"n":1}', {"X-N": "1"})

    on(nats, tmp_path, work)


def test_a_request_gets_its_answer(nats: NatsServer, tmp_path: Path) -> None:
    async def work(attempts: Attempts, jetstream: JetStreamContext) -> None:
        async with connected(nats) as client:

            async def answer(message: Any) -> None:
                await message.respond(b"[" + message.data + b"]")

            await client.subscribe("double", cb=answer)
            await client.flush()
            answered = await attempts.ok(action="request", subject="double", payload=21)
            assert answered == {"subject": "double", "headers": {}, "data": [21]}
            answered = await attempts.ok(action="request", subject="double", payload=21, format="text")
            assert answered["data"] == "[21]"

    on(nats, tmp_path, work)


def test_a_stream_stores_a_message_once_however_often_its_task_is_tried(
    nats: NatsServer, tmp_path: Path
) -> None:
    async def work(attempts: Attempts, jetstream: JetStreamContext) -> None:
        name = f"stream{next(_numbers)}"
        await jetstream.add_stream(StreamConfig(name=name, subjects=[f"{name}.*"]))
        publish: Any = {"action": "publish", "subject": f"{name}.a", "payload": "x"}
        first = await attempts.ok(**publish, jetstream=True, idempotency="same")
        assert (first["stream"], first["seq"], first["duplicate"]) == (name, 1, False)
        again = await attempts.ok(**publish, stream=name, idempotency="same")
        assert (again["seq"], again["duplicate"]) == (1, True)
        assert (await attempts.ok(**publish, stream=name, idempotency="other"))["seq"] == 2
        kind, message, retryable = await attempts.error(**publish, stream="another")
        assert (kind, message, retryable) == (
            "tool",
            "the server refuses it: expected stream does not match",
            False,
        )
        named = await attempts.ok(
            **publish, stream=name, headers={"Nats-Msg-Id": "mine"}, idempotency="other"
        )
        assert (named["seq"], named["duplicate"]) == (3, False)
        kind, message, _ = await attempts.error(action="publish", subject="stored.nowhere", jetstream=True)
        assert (kind, message) == ("not_found", "no stream stores what is sent to `stored.nowhere`")

    on(nats, tmp_path, work)


@pytest.mark.parametrize(
    ("inputs", "failure"),
    [
        (
            {"action": "kv_get", "bucket": "absent", "key": "k"},
            ("not_found", "there is no bucket `absent`", False),
        ),
        (
            {"action": "object_get", "bucket": "absent", "key": "k"},
            ("not_found", "there is no bucket `absent`", False),
        ),
        (
            {"action": "kv_get", "bucket": "a b", "key": "k"},
            ("input", "`a b` cannot be the name of a bucket", False),
        ),
        (
            {"action": "request", "subject": "nobody.there"},
            ("not_found", "nobody answers at `nobody.there`", True),
        ),
        (
            {"action": "publish", "subject": "big", "payload": "x" * 1_100_000},
            ("limit", "the message is larger than the server takes", False),
        ),
        (
            {"action": "publish", "subject": "a", "auth": {"url": "nats://127.0.0.1:9"}},
            ("connection", "the server cannot be reached: ", True),
        ),
        (
            {"action": "publish", "subject": "a", "auth": {"user": "ada", "password": "wrong-password"}},
            ("credential", "the server does not take the credential", False),
        ),
        (
            {"action": "publish", "subject": "a", "auth": "nobody"},
            ("credential", "the credential `nobody` is not there", False),
        ),
        (
            {"action": "publish", "subject": "a", "auth": {"url": "http://127.0.0.1"}},
            ("credential", "the address of the server does not begin with `nats://`", False),
        ),
        (
            {"action": "publish", "subject": "a", "auth": {"user": "ada"}},
            ("credential", "the credential does not say where the server is: give `url`", False),
        ),
        ({"action": "publish", "subject": "a.*"}, ("input", "nothing can be sent to `a.*`", False)),
        ({"action": "publish"}, ("input", "`subject` is missing", False)),
        (
            {"action": "kv_get", "bucket": "b", "key": "k", "value": 1},
            ("input", "`value` means nothing to", False),
        ),
    ],
)
def test_what_goes_wrong_is_named(
    nats: NatsServer, tmp_path: Path, inputs: dict[str, Any], failure: tuple[str, str, bool]
) -> None:
    if inputs.get("auth") == {"user": "ada", "password": "wrong-password"}:
        inputs = {**inputs, "url": nats.url}

    async def work(attempts: Attempts, jetstream: JetStreamContext) -> None:
        kind, message, retryable = await attempts.error(**inputs)
        assert (kind, retryable) == (failure[0], failure[2])
        assert failure[1] in message
        assert "password" not in message

    on(nats, tmp_path, work)


def test_what_the_server_denies_a_user_is_said_at_once_and_to_nobody_else(
    nats: NatsServer, tmp_path: Path
) -> None:
    async def work(attempts: Attempts, jetstream: JetStreamContext) -> None:
        bucket = await new_bucket(jetstream)
        put: Any = {"action": "kv_put", "bucket": bucket, "key": "closed", "value": 1}
        guest, mute = ({**nats.auth, "user": name, "password": name} for name in ("guest", "mute"))
        assert (await attempts.ok(**put))["revision"] == 1
        assert (await attempts.ok(action="publish", subject="forbidden.a"))["bytes"] == 0
        for inputs in (
            {"action": "publish", "subject": "forbidden.A"},
            {"action": "request", "subject": "forbidden.a"},
            put,
        ):
            (kind, message, retryable), others = await asyncio.gather(
                attempts.error(**inputs, auth=guest),
                attempts.ok(action="kv_put", bucket=bucket, key="open", value=1, auth=guest),
            )
            assert (kind, retryable) == ("permission", False)
            assert message.startswith("the server does not allow it: permissions violation for publish to ")
            assert others["key"] == "open"
        kind, message, _ = await attempts.error(action="kv_get", bucket=bucket, key="k", auth=mute)
        assert kind == "permission"
        assert "subscription to" in message

    on(nats, tmp_path, work)


@pytest.mark.parametrize(
    ("auth", "options"),
    [
        ({"host": "h"}, {"servers": ["nats://h:4222"]}),
        ({"host": "h", "port": 7}, {"servers": ["nats://h:7"]}),
        ({"servers": ["nats://a", "tls://b"]}, {"servers": ["nats://a", "tls://b"]}),
        ({"url": "nats://a", "value": "t"}, {"servers": ["nats://a"], "token": "t"}),
        (
            {"nats_url": "nats://a", "nats_user": "u", "nats_password": "p", "token": "t"},
            {"servers": ["nats://a"], "user": "u", "password": "p"},
        ),
        ({"url": "nats://a", "nkey": "SU"}, {"servers": ["nats://a"], "nkeys_seed_str": "SU"}),
        ({"url": "nats://a", "creds": "text"}, {"servers": ["nats://a"], "user_credentials": "text"}),
    ],
)
def test_a_credential_has_these_fields(auth: dict[str, Any], options: dict[str, Any]) -> None:
    assert connection_options(None, auth) == options


def test_a_request_ends_with_the_time_of_its_task_and_when_it_is_cancelled(
    nats: NatsServer, tmp_path: Path
) -> None:
    async def work(attempts: Attempts, jetstream: JetStreamContext) -> None:
        async with connected(nats) as client:
            inbox = await client.subscribe("silent")
            await client.flush()
            kind, message, retryable = await attempts.error(action="request", subject="silent", timeout=0.2)
            assert (kind, message, retryable) == ("timeout", "it was not done within 0.2 s", True)
            running = asyncio.create_task(attempts.attempt(action="request", subject="silent"))
            await inbox.next_msg(timeout=30)
            await inbox.next_msg(timeout=30)
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            # The connection goes on for others.
            assert (await attempts.ok(action="publish", subject="silent"))["bytes"] == 0

    on(nats, tmp_path, work)


def test_tasks_share_a_connection_and_a_lost_one_is_made_anew(tmp_path: Path) -> None:
    async def work(attempts: Attempts) -> None:
        await asyncio.gather(*(attempts.ok(action="publish", subject="a") for _ in range(5)))
        clients = [shared.client for shared in attempts.tool._connections._connections.values()]
        assert len(clients) == 1
        attempts.server.process.send_signal(signal.SIGSTOP)
        assert (await attempts.error(action="publish", subject="a", timeout=0.2))[0] == "timeout"
        attempts.server.process.send_signal(signal.SIGCONT)
        await attempts.ok(action="publish", subject="a")
        assert clients[0].is_connected
        await clients[0].close()
        await attempts.ok(action="publish", subject="a")
        await attempts.tool.close()
        kind, message, _ = await attempts.error(action="publish", subject="a")
        assert (kind, message) == ("cancelled", "the worker is ending")

    with nats_server() as server:
        asyncio.run(work(Attempts(server, tmp_path)))


def test_a_playbook_keeps_a_number_in_a_bucket(nats: NatsServer, tmp_path: Path) -> None:
    async def make_bucket() -> str:
        async with connected(nats) as client:
            return await new_bucket(client.jetstream())

    bucket = asyncio.run(make_bucket())
    playbook = tmp_path / "count.yaml"
    playbook.write_text(
        f"""\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {{ name: count, path: count }}
keychain:
  - {{ name: bus, kind: nats_credential, url: "{nats.url}", user: ada, password: open-sesame }}
workflow:
  - step: start
    tool:
      - put: {{ kind: nats, auth: bus, action: kv_put, bucket: {bucket}, key: n, value: 41 }}
      - get: {{ kind: nats, auth: bus, action: kv_get, bucket: {bucket}, key: n }}
      - sum: {{ kind: noop, args: {{ n: "{{{{ get.value + 1 }}}}", revision: "{{{{ get.revision }}}}" }} }}
"""
    )
    assert noetl.run(playbook, store="sqlite:///:memory:").result == {"n": 42, "revision": 1}


def test_the_server_of_the_tests_ends_with_its_parent() -> None:
    code = (
        "from tests.nats_server import nats_server\n"
        "with nats_server() as server:\n"
        "    print(server.process.pid, flush=True)\n"
        "    import signal; signal.pause()\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        handle = os.pidfd_open(pid)
        parent.send_signal(signal.SIGKILL)
    assert select.select([handle], [], [], 60)[0]
    os.close(handle)
