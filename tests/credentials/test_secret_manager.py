"""Secrets of servers that speak as the secret managers of clouds do."""

import asyncio
import base64
from collections.abc import Callable
from typing import Any, TypeAlias

import pytest
from aiohttp import web

from noetl.credentials.providers import CredentialRequest, Providers
from noetl.credentials.secret_manager import aws_signature
from noetl.ports.credentials import CredentialError
from tests.credentials.credential_servers import serve_application

ACCOUNT = ("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")
SECRETS: dict[str, str | bytes] = {
    "app": '{"user": "ada", "password": "s3cr3t"}',
    "plain": "just text",
    "bytes": b"\xff\xfe",
}

Environment: TypeAlias = Callable[[str], dict[str, str]]


class Clouds:
    """Both secret managers, and the server that tells machines of Google who they are."""

    def __init__(self) -> None:
        self.status = 200
        self.asked: list[dict[str, str]] = []

    async def token(self, request: web.Request) -> web.Response:
        assert request.headers["Metadata-Flavor"] == "Google"
        return web.json_response({"access_token": "of-the-machine", "expires_in": 100})

    async def gcp(self, request: web.Request) -> web.Response:
        self.asked.append({"authorization": request.headers["Authorization"], **request.match_info})
        secret = SECRETS.get(request.match_info["secret"])
        if secret is None or self.status != 200:
            error = {"error": {"code": 404, "message": "Secret not found"}}
            return web.json_response(error, status=404 if self.status == 200 else self.status)
        data = base64.b64encode(secret.encode() if isinstance(secret, str) else secret).decode()
        return web.json_response({"payload": {"data": data}})

    async def aws(self, request: web.Request) -> web.Response:
        body = await request.read()
        signed = request.headers["Authorization"]
        names = signed.partition("SignedHeaders=")[2].partition(",")[0].split(";")
        headers = {name: request.headers[name] for name in names}
        if aws_signature("POST", headers, body, "eu-north-1/secretsmanager", ACCOUNT) != signed:
            return web.json_response({"__type": "InvalidSignatureException"}, status=400)
        body_fields = await request.json()
        self.asked.append(
            {**body_fields, "target": request.headers["X-Amz-Target"], "signed": ";".join(names)}
        )
        secret = SECRETS.get(body_fields["SecretId"])
        if secret is None:
            return web.json_response({"__type": "ResourceNotFoundException"}, status=400)
        if isinstance(secret, bytes):
            return web.json_response({"SecretBinary": base64.b64encode(secret).decode()})
        return web.json_response({"SecretString": secret})

    def application(self) -> web.Application:
        application = web.Application()
        route = "/v1/projects/{project}/secrets/{secret}/versions/{version}:access"
        application.router.add_get(route, self.gcp)
        application.router.add_get("/computeMetadata/v1/instance/service-accounts/default/token", self.token)
        application.router.add_post("/", self.aws)
        return application


def gcp(url: str) -> dict[str, str]:
    overrides = {"CLOUDSDK_API_ENDPOINT_OVERRIDES_SECRETMANAGER": f"{url}/"}
    return {"GOOGLE_OAUTH_ACCESS_TOKEN": "mine", "GOOGLE_CLOUD_PROJECT": "shop", **overrides}


def machine(url: str) -> dict[str, str]:
    return {**gcp(url), "GOOGLE_OAUTH_ACCESS_TOKEN": "", "GCE_METADATA_HOST": url.removeprefix("http://")}


def aws(url: str) -> dict[str, str]:
    key, secret = ACCOUNT
    account = {"AWS_ACCESS_KEY_ID": key, "AWS_SECRET_ACCESS_KEY": secret, "AWS_SESSION_TOKEN": "session"}
    return {"AWS_REGION": "eu-north-1", "AWS_ENDPOINT_URL": url, **account}


def ask(clouds: Clouds, environment: Environment, name: str = "app", **fields: Any) -> dict[str, Any]:
    async def resolve() -> dict[str, Any]:
        async with serve_application(clouds.application()) as url:
            request = CredentialRequest(name, "secret_manager", fields)
            return (await Providers(None, environment(url)).resolve(request)).fields

    return asyncio.run(resolve())


@pytest.mark.parametrize(("provider", "environment"), [("gcp", gcp), ("gcp", machine), ("aws", aws)])
def test_a_secret_is_read(provider: str, environment: Environment) -> None:
    clouds = Clouds()
    fields = ask(clouds, environment, provider=provider)
    assert fields == {"user": "ada", "password": "s3cr3t", "value": SECRETS["app"]}
    plain = ask(clouds, environment, provider=provider, secret="plain")
    assert plain == {"value": "just text"}


def test_google_is_asked_for_a_version_of_a_project() -> None:
    clouds = Clouds()
    ask(clouds, gcp, provider="gcp")
    ask(clouds, machine, provider="gcp", project="other", version=3)
    assert clouds.asked == [
        {"authorization": "Bearer mine", "project": "shop", "secret": "app", "version": "latest"},
        {"authorization": "Bearer of-the-machine", "project": "other", "secret": "app", "version": "3"},
    ]


def test_aws_is_asked_with_a_signature() -> None:
    clouds = Clouds()
    ask(clouds, aws, provider="aws", version="v7")
    (request,) = clouds.asked
    assert (request["SecretId"], request["VersionId"]) == ("app", "v7")
    assert request["target"] == "secretsmanager.GetSecretValue"
    assert request["signed"] == "content-type;host;x-amz-date;x-amz-security-token;x-amz-target"


@pytest.mark.parametrize(("provider", "environment"), [("gcp", gcp), ("gcp", machine), ("aws", aws)])
def test_no_redirect_is_followed(provider: str, environment: Environment) -> None:
    hosts: list[str] = []

    async def elsewhere(request: web.Request) -> web.Response:
        hosts.append(request.host)
        return web.Response(status=307, headers={"Location": f"http://localhost:{request.url.port}/other"})

    class Redirecting(Clouds):
        def application(self) -> web.Application:
            application = web.Application()
            application.router.add_route("*", "/{tail:.*}", elsewhere)
            return application

    with pytest.raises(CredentialError, match="it answers 307"):
        ask(Redirecting(), environment, provider=provider)
    assert len(hosts) == 1


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("GET", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
        ("POST", "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"),
    ],
)
def test_a_signature_is_that_of_the_published_examples(method: str, expected: str) -> None:
    headers = {"host": "example.amazonaws.com", "x-amz-date": "20150830T123600Z"}
    signed = aws_signature(method, headers, b"", "us-east-1/service", ACCOUNT)
    assert signed.endswith(f"SignedHeaders=host;x-amz-date, Signature={expected}")


@pytest.mark.parametrize(
    ("environment", "fields", "message", "retryable"),
    [
        (gcp, {"provider": "gcp", "secret": "absent"}, "it answers 404, Secret not found", False),
        (gcp, {"provider": "gcp", "secret": "bytes"}, "holds no text", False),
        (aws, {"provider": "aws", "secret": "absent"}, "it answers 400, ResourceNotFoundException", False),
        (aws, {"provider": "aws", "secret": "bytes"}, "`bytes` holds no text", False),
        (lambda _: {}, {"provider": "aws"}, "there is no region of AWS", False),
        (lambda _: {"AWS_REGION": "eu-north-1"}, {"provider": "aws"}, "there is no key of AWS", False),
        (lambda _: {}, {"provider": "gcp"}, "there is no `project`", False),
        (
            lambda _: {"GOOGLE_CLOUD_PROJECT": "shop", "GCE_METADATA_HOST": "127.0.0.1:9"},
            {"provider": "gcp"},
            "there is no account of Google Cloud here",
            False,
        ),
        (
            lambda url: {**aws(url), "AWS_ENDPOINT_URL": "http://127.0.0.1:9"},
            {"provider": "aws"},
            "reached",
            True,
        ),
    ],
)
def test_what_cannot_be_read_is_told(
    environment: Environment, fields: dict[str, Any], message: str, retryable: bool
) -> None:
    with pytest.raises(CredentialError, match=message) as caught:
        ask(Clouds(), environment, **fields)
    assert caught.value.retryable == retryable


def test_a_server_that_is_down_may_be_asked_again() -> None:
    clouds = Clouds()
    clouds.status = 503
    with pytest.raises(CredentialError, match="it answers 503") as caught:
        ask(clouds, gcp, provider="gcp")
    assert caught.value.retryable
