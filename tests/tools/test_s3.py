import os
import select
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from bench.s3_server import S3Server, remove_sockets
from noetl.model.outcome import ToolError
from noetl.model.reference import escape, is_object_reference
from noetl.tools.s3.tool import S3Tool, s3_client_config
from tests.tools.object_calls import ObjectCalls


class Bucket(ObjectCalls):
    """Calls in a folder of their own in the bucket."""

    def __init__(self, folder: Path, server: S3Server) -> None:
        super().__init__(S3Tool, folder, "s3")
        self.server = server
        self.place = f"s3://{server.bucket}/{uuid4().hex}"

    def call(self, **inputs: Any) -> Any:
        for name in ("url", "to"):
            if isinstance(address := inputs.get(name), str) and "://" not in address:
                inputs[name] = f"{self.place}/{address}"
        return super().call(**{"auth": self.server.auth, **inputs})


@pytest.fixture
def bucket(tmp_path: Path, s3: S3Server) -> Bucket:
    return Bucket(tmp_path, s3)


def test_what_is_put_can_be_got(bucket: Bucket) -> None:
    put = bucket.ok(action="put", url="a/report.json", content={"n": 1})
    assert (put["url"], put["size"]) == (f"{bucket.place}/a/report.json", 7)
    assert put["media_type"] == "application/json; charset=utf-8"
    got = bucket.ok(action="get", url="a/report.json")
    assert is_object_reference(escape(got))
    assert (got["size"], got["name"], got["preview"]) == (7, "report.json", '{"n":1}')
    assert bucket.data(got) == b'{"n":1}'
    assert bucket.ok(action="get", url="a/report.json", format="json") == {"n": 1}


def test_large_objects_go_in_parts_both_ways(bucket: Bucket, tmp_path: Path) -> None:
    data = bytes(range(256)) * 4_096 * 20
    (tmp_path / "large.bin").write_bytes(data)
    put = bucket.ok(action="put", url="large.bin", source="large.bin")
    assert put["size"] == len(data)
    assert put["etag"].endswith("-3"), "three parts"
    got = bucket.ok(action="get", url="large.bin")
    assert bucket.data(got) == data
    assert bucket.ok(action="put", url="again.bin", source=got)["etag"] == put["etag"]


def test_a_table_becomes_parquet_and_a_table_again(bucket: Bucket) -> None:
    rows = [{"id": number} for number in range(100)]
    bucket.ok(action="put", url="t.parquet", content=bucket.table(rows))
    assert bucket.ok(action="get", url="t.parquet", format="parquet")["length"] == 100
    bucket.ok(action="put", url="t.csv", content=rows)
    assert bucket.ok(action="get", url="t.csv", format="csv")[99] == {"id": "99"}


def test_objects_are_listed_copied_and_deleted(bucket: Bucket) -> None:
    for name in ("a/1.txt", "a/2/3.txt", "ab.txt", "b.txt"):
        bucket.ok(action="put", url=name, content=name)
    urls = [item["url"] for item in bucket.ok(action="list", url="a")]
    assert urls == [f"{bucket.place}/{name}" for name in ("a/1.txt", "a/2/3.txt", "ab.txt")]
    objects = bucket.ok(action="list", url="a/")
    assert [(item["name"], item["size"]) for item in objects] == [("1.txt", 7), ("3.txt", 9)]
    assert {"modified_at", "etag"} <= objects[0].keys()
    assert bucket.ok(action="copy", url="a/1.txt", to="c.txt")["size"] == 7
    assert bucket.ok(action="get", url="c.txt", format="text") == "a/1.txt"
    assert bucket.ok(action="delete", url="c.txt")["deleted"] is True
    assert bucket.ok(action="delete", url="c.txt")["deleted"] is False
    assert bucket.ok(action="list", url="nothing/") == []


def test_another_bucket_can_be_copied_to(bucket: Bucket) -> None:
    bucket.ok(action="put", url="a.txt", content="a")
    other = f"s3://{bucket.server.bucket}-other/{uuid4().hex}.txt"
    assert bucket.ok(action="copy", url="a.txt", to=other)["url"] == other
    assert bucket.ok(action="get", url=other, format="text") == "a"


def test_without_a_credential_the_environment_says_it(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in bucket.server.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_ENDPOINT", bucket.server.endpoint)
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
    bucket.ok(action="put", url="env.txt", content="x", auth=None)
    assert bucket.ok(action="get", url="env.txt", format="text", auth=None) == "x"


@pytest.mark.parametrize(
    ("inputs", "kind", "words"),
    [
        ({"action": "get", "url": "none.txt"}, "not_found", "none.txt"),
        ({"action": "get", "url": "s3://no-such-bucket/a"}, "not_found", "no bucket `no-such-bucket`"),
        ({"action": "list", "url": "s3://no-such-bucket/a"}, "not_found", "no bucket `no-such-bucket`"),
        ({"action": "copy", "url": "none.txt", "to": "b.txt"}, "not_found", "none.txt"),
        ({"action": "get", "url": "https://example.com/a"}, "input", "no address for this kind"),
        ({"action": "get", "url": "s3://bucket"}, "input", "names no object"),
        ({"action": "get", "url": "s3://my bucket/a"}, "input", "`my bucket` cannot be the name of a bucket"),
        ({"action": "put", "url": "folder/", "content": "x"}, "input", "begins or ends with `/`"),
        ({"action": "copy", "url": "a.txt", "to": "s3://bucket//a"}, "input", "begins or ends with `/`"),
        ({"action": "put", "url": "a//b.txt", "content": "x"}, "input", "empty path segment"),
        ({"action": "get", "url": "../b.txt"}, "input", "names no object"),
        ({"action": "put", "url": "a.txt", "source": "none.txt"}, "not_found", "there is no file"),
        ({"action": "get", "url": "a", "auth": "name"}, "credential", "`name` is not there"),
        ({"action": "get", "url": "a", "auth": {"access_key_id": "x"}}, "credential", "both"),
        ({"action": "get", "url": "a", "auth": {"type": "bearer"}}, "credential", "nothing to sign in"),
    ],
)
def test_what_cannot_be_done_is_an_error(
    bucket: Bucket, inputs: dict[str, Any], kind: str, words: str
) -> None:
    actual, message = bucket.error(**inputs)
    assert actual == kind, message
    assert words in message
    assert "\n" not in message


@pytest.mark.parametrize("inputs", [{"action": "get"}, {"action": "put", "content": "x"}, {"action": "list"}])
def test_a_wrong_key_is_no_permission(bucket: Bucket, inputs: dict[str, Any]) -> None:
    auth = {**bucket.server.auth, "secret_access_key": "wrong"}
    kind, message = bucket.error(url="a.txt", auth=auth, **inputs)
    assert kind == "permission"
    assert "wrong" not in message


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("endpoint", "127.0.0.1:9000", "`endpoint` does not begin with `http://`"),
        ("endpoint", "http://my host:9000", "a space or a line break in the credential's `endpoint`"),
        ("access_key_id", "AKID\n", "`access_key_id`"),
        ("region", "eu west", "`region`"),
    ],
)
def test_a_credential_that_cannot_be_used_is_told(
    bucket: Bucket, capfd: pytest.CaptureFixture[str], field: str, value: str, words: str
) -> None:
    kind, message = bucket.error(action="get", url="a", auth={**bucket.server.auth, field: value})
    assert kind == "credential"
    assert words in message
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({"AWS_METADATA_ENDPOINT": "http://127.0.0.1:1"}, "nothing to sign in to S3 with: give `auth`"),
        ({"AWS_ACCESS_KEY_ID": "x"}, "nothing to sign in to S3 with: give `auth`"),
        (
            {"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "y", "AWS_ENDPOINT": "no address"},
            "see AWS_ENDPOINT",
        ),
    ],
)
def test_an_environment_that_does_not_say_enough_is_told(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], words: str
) -> None:
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    kind, message = bucket.error(action="get", url="a", auth=None)
    assert kind == "credential"
    assert words in message


def test_a_server_that_is_not_there_can_be_tried_again(bucket: Bucket) -> None:
    outcome = bucket.call(
        action="get", url="a", auth={**bucket.server.auth, "endpoint": "http://127.0.0.1:1"}
    )
    assert outcome.error is not None
    assert (outcome.error.kind, outcome.error.retryable) == ("connection", True)


@pytest.fixture
def silent() -> Iterator[str]:
    """The address of a server that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


def test_a_server_that_says_nothing_is_waited_for_as_long_as_it_may_take(bucket: Bucket, silent: str) -> None:
    outcome = bucket.call(action="get", url="a", auth={**bucket.server.auth, "endpoint": silent}, timeout=0.2)
    assert outcome.error is not None
    assert (outcome.error.kind, outcome.error.retryable) == ("timeout", True)


def test_credentials_are_known_by_their_usual_names() -> None:
    spelt = {
        "aws_access_key_id": "a",
        "aws_secret_access_key": "b",
        "aws_session_token": "c",
        "region_name": "d",
        "endpoint_url": "http://e",
        "kind": "s3",
    }
    assert s3_client_config(spelt) == {
        "access_key_id": "a",
        "secret_access_key": "b",
        "session_token": "c",
        "region": "d",
        "endpoint": "http://e",
    }
    assert s3_client_config({"access_key": "a", "secret_key": "b"}).keys() == {
        "access_key_id",
        "secret_access_key",
    }
    with pytest.raises(ToolError):
        s3_client_config("name")


def test_the_server_of_the_tests_ends_with_its_parent(tmp_path: Path) -> None:
    code = (
        "from bench.s3_server import s3_server\n"
        "with s3_server() as server:\n"
        "    print(server.process.pid, *server.ports, flush=True)\n"
        "    import signal; signal.pause()\n"
    )
    variables = {**os.environ, "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        server, *ports = map(int, parent.stdout.readline().split())
        handle = os.pidfd_open(server)
        parent.kill()
    assert select.select([handle], [], [], 60)[0]
    os.close(handle)
    remove_sockets(ports)
