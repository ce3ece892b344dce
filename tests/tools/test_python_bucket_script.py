"""Scripts of `python` tasks that are kept in buckets: on a server that speaks S3, and one that Google's client asks."""

import asyncio
import json
from base64 import urlsafe_b64decode
from typing import Any

import obstore
import pytest
from aiohttp import web
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from obstore.store import S3Store

from bench.s3_server import S3Server
from noetl.model.json import Json
from noetl.model.outcome import Outcome
from noetl.tools.python.kind import KIND
from noetl.tools.python.tool import PythonTool
from tests.tools.http_calls import Handler, serving
from tests.tools.python_calls import call, kind_and_message

CODE = "def main(a):\n    return 10 / a\n"


def ran(script: Any, *, a: int = 4, timeout: float = 30) -> Outcome:
    async def scenario() -> Outcome:
        tool = PythonTool()
        try:
            return await tool.run(call(script=script, args={"a": a}, timeout=timeout))
        finally:
            await tool.close()

    return asyncio.run(scenario())


@pytest.fixture(scope="module")
def bucket(s3: S3Server) -> S3Server:
    store = S3Store(s3.bucket, config=s3.auth, client_options={"allow_http": True})  # type: ignore[arg-type]  # known keys
    obstore.put(store, "jobs/half of.py", CODE.encode())
    obstore.put(store, "jobs/latin.py", b"x = '\xe4'")
    obstore.put(store, "jobs/long.py", b"#" * ((16 << 20) + 1))
    return s3


def test_a_script_is_fetched_from_s3(bucket: S3Server) -> None:
    script = {"uri": f"s3://{bucket.bucket}/jobs/half of.py", "source": {"type": "s3", "auth": bucket.auth}}
    assert ran(script).result == 2.5
    assert 'File "half of.py", line 2, in main' in ran(script, a=0).helpers["py"]["traceback"]
    keys: Json = {"access_key_id": bucket.access_key_id, "secret_access_key": bucket.secret_access_key}
    location: dict[str, Json] = {"bucket": bucket.bucket, "endpoint": bucket.endpoint, "region": "us-east-1"}
    assert ran({"uri": "jobs/half of.py", "source": {"type": "s3", "auth": keys, **location}}).result == 2.5


def test_the_environment_may_have_the_keys_of_a_bucket(
    bucket: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in bucket.environment.items():
        monkeypatch.setenv(name, value)
    source: Json = {"type": "s3", "endpoint": bucket.endpoint}
    assert ran({"uri": f"s3://{bucket.bucket}/jobs/half of.py", "source": source}).result == 2.5


@pytest.mark.parametrize(
    ("uri", "kind", "message"),
    [
        (
            "s3://BUCKET/none.py",
            "not_found",
            "the script cannot be fetched: there is no s3://noetl-tests/none.py",
        ),
        ("s3://BUCKET/jobs/latin.py", "input", "the script `latin.py` is not UTF-8"),
        ("s3://BUCKET/jobs/long.py", "limit", "the script `long.py` has more than 16,777,216 bytes"),
        ("s3://BUCKET", "input", "names no object in a bucket"),
        ("jobs/half of.py", "input", "names no object in a bucket"),
    ],
)
def test_a_script_that_s3_does_not_have_is_told(bucket: S3Server, uri: str, kind: str, message: str) -> None:
    source: Json = {"type": "s3", "auth": bucket.auth}
    error = kind_and_message(ran({"uri": uri.replace("BUCKET", bucket.bucket), "source": source}))
    assert (error[0], message in error[1]) == (kind, True), error


def from_gcs(
    handler: Handler, source: dict[str, Any], uri: str = "gs://team/jobs/half of.py", **options: Any
) -> Outcome:
    async def scenario() -> Outcome:
        tool = PythonTool()
        async with serving(handler) as server:
            script: Json = {"uri": uri, "source": {"type": "gcs", "endpoint": server.url, **source}}
            try:
                return await tool.run(call(script=script, args={"a": 4}, **options))
            finally:
                await tool.close()

    return asyncio.run(scenario())


def guarded(is_allowed: Any, body: bytes = CODE.encode()) -> Handler:
    """Has one object, for those who may read it."""

    async def answer(request: web.Request) -> web.Response:
        if not is_allowed(request.headers.get("Authorization", "")):
            raise web.HTTPForbidden
        if request.path != "/team/jobs/half of.py":
            raise web.HTTPNotFound
        return web.Response(
            body=body, headers={"ETag": '"1"', "Last-Modified": "Wed, 18 Nov 2026 10:00:00 GMT"}
        )

    return answer


@pytest.mark.parametrize("field", ["access_token", "token", "value"])
def test_a_script_is_fetched_from_google_with_a_token(field: str) -> None:
    handler = guarded(lambda header: header == "Bearer t-1")
    assert from_gcs(handler, {"auth": {field: "t-1"}}).result == 2.5
    assert from_gcs(handler, {"auth": {field: "t-1"}, "bucket": "team"}, "jobs/half of.py").result == 2.5
    error = kind_and_message(from_gcs(handler, {"auth": {field: "t-2"}}))
    assert error == (
        "permission",
        "the script cannot be fetched: the credential does not allow this on gs://team/jobs/half of.py",
    )


def test_a_service_account_signs_what_it_asks_google() -> None:
    private = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = private.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()
    key = {"client_email": "job@team.example", "private_key": pem, "private_key_id": "k-7"}

    def is_signed(header: str) -> bool:
        signed, _, signature = header.removeprefix("Bearer ").rpartition(".")
        raw_signature = urlsafe_b64decode(f"{signature}==")
        private.public_key().verify(raw_signature, signed.encode(), padding.PKCS1v15(), hashes.SHA256())
        head, claims = (json.loads(urlsafe_b64decode(f"{part}==")) for part in signed.split("."))
        return (head["alg"], head["kid"], claims["iss"]) == ("RS256", "k-7", "job@team.example")

    for auth in (key, {"service_account_json": json.dumps(key)}, {"credentials": key}):
        assert from_gcs(guarded(is_signed), {"auth": auth}).result == 2.5


async def _hang(_request: web.Request) -> web.Response:
    await asyncio.Event().wait()
    raise AssertionError


@pytest.mark.parametrize(
    ("handler", "source", "uri", "kind", "message"),
    [
        (
            guarded(bool),
            {"auth": {"token": "t"}},
            "gs://team/none.py",
            "not_found",
            "there is no gs://team/none.py",
        ),
        (guarded(bool), {"auth": {"token": "t"}}, "gs://team", "input", "names no object in a bucket"),
        (guarded(bool, b"x = '\xe4'"), {"auth": {"token": "t"}}, "", "input", "`half of.py` is not UTF-8"),
        (
            guarded(bool, b"#" * (17 << 20)),
            {"auth": {"token": "t"}},
            "",
            "limit",
            "more than 16,777,216 bytes",
        ),
        (guarded(bool), {"auth": {"token": "t\n"}}, "", "credential", "a space or a line break"),
        (guarded(bool), {"auth": {"user": "a"}}, "", "credential", "nothing to sign in to Google"),
        (guarded(bool), {"auth": {"key": "no key"}}, "", "credential", "no key of a service account"),
        (guarded(bool), {"auth": "nobody"}, "", "credential", "the credential `nobody` is not there"),
        (
            guarded(bool),
            {"auth": {"token": "t"}, "endpoint": "host"},
            "",
            "credential",
            "does not begin with `http://`",
        ),
        (
            guarded(bool),
            {"auth": {"token": "t"}, "endpoint": "http://127.0.0.1:1"},
            "",
            "connection",
            "gs://team/jobs/half of.py: ",
        ),
        (_hang, {"auth": {"token": "t"}, "timeout": 0.05}, "", "timeout", "it was not done within 0.05 s"),
    ],
)
def test_a_script_that_google_does_not_have_is_told(
    handler: Handler, source: dict[str, Any], uri: str, kind: str, message: str
) -> None:
    error = kind_and_message(from_gcs(handler, source, uri or "gs://team/jobs/half of.py"))
    assert (error[0], message in error[1]) == (kind, True), error


@pytest.mark.parametrize("source_type", ["s3", "gcs"])
def test_a_script_in_a_bucket_needs_its_name(source_type: str) -> None:
    assert KIND.check is not None
    (fault,) = KIND.check({"script": {"source": {"type": source_type, "endpoint": "http://host"}}}, {})
    assert fault.message == "the script has no `uri`"
