"""Identity tokens of Google, from a real HTTP server that checks what is signed."""

import asyncio
import base64
import json
import time
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from noetl.credentials.credential import Credential
from noetl.credentials.providers import CredentialRequest, Providers
from noetl.ports.credentials import CredentialError
from tests.credentials.credential_servers import serve_application

AUDIENCE = "https://orders.example.com"


@cache
def account_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def pem() -> str:
    form = serialization.PrivateFormat.PKCS8
    return (
        account_key().private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()).decode()
    )


def part(values: Mapping[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(values).encode()).decode().rstrip("=")


def token(**claims: Any) -> str:
    return f"{part({'alg': 'none'})}.{part(claims)}.c2lnbmF0dXJl"


def decoded(text: str) -> Any:
    return json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))


class GoogleServer:
    """The token endpoint, and the metadata server of a machine."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.expiry: dict[str, Any] = {"exp": time.time() + 3600}

    async def exchange(self, request: web.Request) -> web.Response:
        form = await request.post()
        header, claims, signature = str(form["assertion"]).split(".")
        signed = base64.urlsafe_b64decode(signature + "=" * (-len(signature) % 4))
        try:
            account_key().public_key().verify(
                signed, f"{header}.{claims}".encode(), padding.PKCS1v15(), hashes.SHA256()
            )
        except InvalidSignature:
            return web.json_response(
                {"error": "invalid_grant", "error_description": "bad signature"}, status=400
            )
        claimed = decoded(claims)
        self.asked.append({"header": decoded(header), "grant": form["grant_type"], **claimed})
        if claimed["aud"] != str(request.url) or not claimed["iat"] <= time.time() <= claimed["exp"]:
            return web.json_response({"error": "invalid_grant"}, status=400)
        return web.json_response({"id_token": token(aud=claimed["target_audience"], **self.expiry)})

    async def identity(self, request: web.Request) -> web.Response:
        if request.headers.get("Metadata-Flavor") != "Google":
            return web.Response(status=403)
        self.asked.append(dict(request.query))
        return web.Response(text=token(aud=request.query["audience"], **self.expiry) + "\n")

    def application(self) -> web.Application:
        application = web.Application()
        application.router.add_post("/token", self.exchange)
        account = "/computeMetadata/v1/instance/service-accounts/default/identity"
        application.router.add_get(account, self.identity)
        return application


def resolve(
    server: GoogleServer,
    fields: dict[str, Any],
    *,
    key: dict[str, str] | None = None,
    environment: Mapping[str, str] = {},
    folder: Path = Path(),
) -> Credential:
    """The credential of an entry with these fields; `{key}` in one is the text of the account's key."""

    async def work() -> Credential:
        async with serve_application(server.application()) as url:
            account = {
                "client_email": "etl@example.iam",
                "private_key": pem(),
                "private_key_id": "k1",
                "token_uri": f"{url}/token",
                **(key or {}),
            }
            text = json.dumps(account)
            if folder != Path():
                (folder / "key.json").write_text(text)
            filled = {name: value.replace("{key}", text) for name, value in fields.items()}
            host = url.removeprefix("http://")
            known = {name: value.format(key=text, host=host) for name, value in environment.items()}
            request = CredentialRequest("api", "google_id_token", filled, str(folder))
            return await Providers(None, known).resolve(request)

    return asyncio.run(work())


@pytest.mark.parametrize(
    ("fields", "environment"),
    [
        ({"key": "{key}"}, {}),
        ({"path": "key.json"}, {}),
        ({"env": "ACCOUNT"}, {"ACCOUNT": "{key}"}),
        ({}, {"GOOGLE_APPLICATION_CREDENTIALS": "key.json"}),
    ],
)
def test_the_key_of_a_service_account_signs_for_a_token(
    tmp_path: Path, fields: dict[str, str], environment: dict[str, str]
) -> None:
    server = GoogleServer()
    credential = resolve(server, {"audience": AUDIENCE, **fields}, environment=environment, folder=tmp_path)
    (question,) = server.asked
    assert question["header"] == {"alg": "RS256", "typ": "JWT", "kid": "k1"}
    assert question["grant"] == "urn:ietf:params:oauth:grant-type:jwt-bearer"
    assert (question["iss"], question["target_audience"]) == ("etl@example.iam", AUDIENCE)
    assert decoded(str(credential.fields["token"]).split(".")[1])["aud"] == AUDIENCE
    assert credential.fields["value"] == credential.fields["token"]
    assert credential.lifetime is not None
    assert 3500 < credential.lifetime < 3600
    assert [path for path, _ in credential.secrets] == [("token",), ("value",)]


def test_a_machine_of_google_has_an_account_of_its_own() -> None:
    server = GoogleServer()
    credential = resolve(server, {"audience": AUDIENCE}, environment={"GCE_METADATA_HOST": "{host}"})
    assert server.asked == [{"audience": AUDIENCE, "format": "full"}]
    assert not str(credential.fields["token"]).endswith("\n")


def test_a_token_that_says_nothing_of_its_end_lasts_less_than_five_minutes() -> None:
    server = GoogleServer()
    server.expiry = {}
    credential = resolve(server, {"audience": AUDIENCE, "key": "{key}"})
    assert credential.lifetime == 270


def other_pem() -> str:
    form = serialization.PrivateFormat.PKCS8
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()).decode()


@pytest.mark.parametrize(
    ("fields", "key", "message"),
    [
        ({"key": "{key}"}, {}, "it has no `audience`"),
        ({"audience": AUDIENCE, "key": "no JSON s3cr3t"}, {}, "the key is none of a service account"),
        ({"audience": AUDIENCE, "key": "{key}"}, {"private_key": "s3cr3t"}, "is no RSA key in PEM"),
        (
            {"audience": AUDIENCE, "key": "{key}"},
            {"token_uri": "http://127.0.0.1:9/t"},
            "no token from http://127.0.0.1:9/t",
        ),
        ({"audience": AUDIENCE, "key": "{key}"}, {"private_key": ""}, "is no RSA key in PEM"),
        ({"audience": AUDIENCE, "path": "absent.json"}, {}, "absent.json cannot be read"),
    ],
)
def test_what_is_wrong_is_said_without_the_key(
    fields: dict[str, str], key: dict[str, str], message: str
) -> None:
    with pytest.raises(CredentialError) as caught:
        resolve(GoogleServer(), fields, key=key)
    assert message in str(caught.value)
    assert "s3cr3t" not in str(caught.value)


def test_a_key_that_the_server_does_not_know_is_refused_for_good() -> None:
    with pytest.raises(CredentialError, match="it answers 400, invalid_grant: bad signature") as caught:
        resolve(GoogleServer(), {"audience": AUDIENCE, "key": "{key}"}, key={"private_key": other_pem()})
    assert not caught.value.retryable


def test_without_a_key_and_without_a_machine_of_google_the_error_says_what_to_give() -> None:
    environment = {"GCE_METADATA_HOST": "127.0.0.1:9"}
    with pytest.raises(CredentialError, match="there is no account of Google Cloud here") as caught:
        resolve(GoogleServer(), {"audience": AUDIENCE}, environment=environment)
    assert "the key of a service account" in caught.value.hint
