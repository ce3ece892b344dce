"""Secrets of a server that speaks as Vault does."""

import asyncio
from typing import Any

import pytest
from aiohttp import web

from noetl.credentials.providers import CredentialRequest, Providers
from noetl.credentials.resolver import FRESH_SECONDS, CredentialResolver
from noetl.ports.credentials import CredentialError
from tests.credentials.credential_servers import VaultServer, serve_application


def ask(vault: VaultServer, token: str = "root", **fields: Any) -> dict[str, Any]:  # noqa: S107 - no secret
    async def resolve() -> dict[str, Any]:
        async with serve_application(vault.application()) as url:
            providers = Providers(None, {"VAULT_ADDR": url, "VAULT_TOKEN": token})
            return (await providers.resolve(CredentialRequest("app", "vault", fields))).fields

    return asyncio.run(resolve())


@pytest.fixture
def vault() -> VaultServer:
    server = VaultServer()
    server.secrets["secret/app"] = [{"key": "old"}, {"key": "new", "user": "u"}]
    server.secrets["kv/deep/er"] = [{"pin": 123456}]
    return server


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, {"key": "new", "user": "u"}),
        ({"field": "key"}, {"value": "new"}),
        ({"version": 1}, {"key": "old"}),
        ({"mount": "kv", "path": "deep/er"}, {"pin": 123456}),
    ],
)
def test_a_secret_is_read(vault: VaultServer, fields: dict[str, Any], expected: dict[str, Any]) -> None:
    assert ask(vault, **fields) == expected


@pytest.mark.parametrize(
    ("token", "fields", "message", "retryable"),
    [
        ("other", {}, "VAULT_TOKEN may not read `secret/app` in Vault", False),
        ("root", {"path": "absent"}, "there is no `secret/absent` in Vault", False),
        ("root", {"version": 9}, "there is no `secret/app` in Vault", False),
        ("root", {"field": "absent"}, "has no field `absent`", False),
        ("root", {"url": "http://127.0.0.1:9"}, "cannot be reached: ConnectionError", True),
        (
            "root",
            {"url": "http://ada:hidden@127.0.0.1:9"},
            r"Vault at http://ada:\*\*\*@127.0.0.1:9 cannot",
            True,
        ),
    ],
)
def test_what_cannot_be_read_is_told(
    vault: VaultServer, token: str, fields: dict[str, Any], message: str, retryable: bool
) -> None:
    with pytest.raises(CredentialError, match=message) as caught:
        ask(vault, token, **fields)
    assert caught.value.retryable == retryable


def test_the_token_follows_a_redirect_on_the_same_host_alone(vault: VaultServer) -> None:
    async def elsewhere(request: web.Request) -> web.Response:
        here = f"127.0.0.1:{request.url.port}"
        hosts = {"near": here, "far": f"localhost:{request.url.port}", "port": "127.0.0.1:9"}
        url = f"http://{hosts[request.match_info['mount']]}/v1/secret/data/app"
        return web.Response(status=307, headers={"Location": url})

    class Standby(VaultServer):
        def application(self) -> web.Application:
            application = web.Application()
            application.router.add_get("/v1/{mount:near|far|port}/data/app", elsewhere)
            application.router.add_get("/v1/{mount:secret}/data/{path:.+}", self.read)
            return application

    standby = Standby()
    standby.secrets = vault.secrets
    assert ask(standby, mount="near") == {"key": "new", "user": "u"}
    assert standby.asked == 1
    for mount in ("far", "port"):
        with pytest.raises(
            CredentialError, match="redirects to another host, which does not get VAULT_TOKEN"
        ):
            ask(standby, mount=mount)
    assert standby.asked == 1


def test_a_sealed_vault_may_be_asked_again(vault: VaultServer) -> None:
    vault.sealed = True
    with pytest.raises(CredentialError, match=r"cannot be read now: .*Vault is sealed") as caught:
        ask(vault)
    assert caught.value.retryable


def test_an_older_value_is_used_while_the_server_does_not_answer(vault: VaultServer) -> None:
    now = 0.0

    async def resolve_repeatedly() -> list[Any]:
        nonlocal now
        values: list[Any] = []
        async with serve_application(vault.application()) as url:
            providers = Providers(None, {"VAULT_ADDR": url, "VAULT_TOKEN": "root"})
            resolver = CredentialResolver(providers, lambda: now)
            request = CredentialRequest("app", "vault", {"field": "key"})
            for sealed in (False, False, True, False):
                vault.sealed = sealed
                vault.secrets["secret/app"].append({"key": f"version {len(values)}"})
                values.append((await resolver.resolve(request)).fields["value"])
                now += FRESH_SECONDS / 2 + 1
        return values

    assert asyncio.run(resolve_repeatedly()) == ["version 0", "version 0", "version 0", "version 3"]
    assert vault.asked == 3
