"""Tokens for client credentials, from a real token endpoint."""

import asyncio
import base64
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from aiohttp import web

from noetl.credentials.oauth2 import DEFAULT_LIFETIME
from noetl.credentials.providers import CredentialRequest, Providers
from noetl.credentials.resolver import CredentialResolver
from noetl.ports.credentials import CredentialError
from tests.credentials.credential_servers import Tokens, serve_application

SECRET = "s3cr3t&x"


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def play(
    tokens: Tokens,
    work: Callable[[CredentialResolver, CredentialRequest, Clock], Awaitable[Any]],
    **fields: Any,
) -> Any:
    async def resolve_tokens() -> Any:
        clock = Clock()
        async with serve_application(tokens.application()) as url:
            resolver = CredentialResolver(Providers(None, {}), clock)
            all_fields = {"token_url": f"{url}/token", "client_id": "ada", "client_secret": SECRET, **fields}
            try:
                return await work(resolver, CredentialRequest("api", "oauth2", all_fields), clock)
            finally:
                await resolver.close()

    return asyncio.run(resolve_tokens())


async def token_of(resolver: CredentialResolver, request: CredentialRequest, _: Clock) -> Any:
    return (await resolver.resolve(request)).fields["access_token"]


def test_the_client_signs_in_with_a_header_and_asks_for_what_it_needs() -> None:
    tokens = Tokens()
    assert play(tokens, token_of, scope=["read", "write"], audience="shop") == "token-number-1"
    pair = base64.b64encode(b"ada:s3cr3t%26x").decode()
    assert tokens.asked == [
        {
            "grant_type": "client_credentials",
            "scope": "read write",
            "audience": "shop",
            "authorization": f"Basic {pair}",
        }
    ]


def test_the_client_may_sign_in_in_the_body() -> None:
    tokens = Tokens()
    play(tokens, token_of, client_auth="body")
    (request,) = tokens.asked
    assert (request["client_id"], request["client_secret"], request["authorization"]) == ("ada", SECRET, "")


@pytest.mark.parametrize(
    ("expires_in", "lifetime"),
    [(100, 90), (3600, 3570), ("100", 90), (None, DEFAULT_LIFETIME - 30), ("soon", DEFAULT_LIFETIME - 30)],
)
def test_a_token_is_used_until_shortly_before_it_expires(expires_in: Any, lifetime: float) -> None:
    tokens = Tokens(expires_in=expires_in)

    async def work(resolver: CredentialResolver, request: CredentialRequest, clock: Clock) -> list[str]:
        tokens_in_order = [await token_of(resolver, request, clock)]
        for step in (lifetime - 1, 2):
            clock.now += step
            tokens_in_order.append(await token_of(resolver, request, clock))
        return tokens_in_order

    assert play(tokens, work) == ["token-number-1", "token-number-1", "token-number-2"]


def test_many_who_want_one_share_one_request() -> None:
    tokens = Tokens()

    async def work(resolver: CredentialResolver, request: CredentialRequest, clock: Clock) -> list[str]:
        tokens.gate.clear()
        waiting = [asyncio.ensure_future(token_of(resolver, request, clock)) for _ in range(50)]
        while not tokens.asked:
            await asyncio.sleep(0)
        waiting[0].cancel()
        tokens.gate.set()
        return list(await asyncio.gather(*waiting[1:]))

    assert set(play(tokens, work)) == {"token-number-1"}
    assert len(tokens.asked) == 1


def test_a_token_that_was_refused_is_not_used_again() -> None:
    async def work(resolver: CredentialResolver, request: CredentialRequest, clock: Clock) -> list[str]:
        first = await token_of(resolver, request, clock)
        resolver.invalidate(request)
        return [first, await token_of(resolver, request, clock)]

    assert play(Tokens(), work) == ["token-number-1", "token-number-2"]


@pytest.mark.parametrize(
    ("answer", "message", "retryable"),
    [
        (lambda: web.json_response({"error": "invalid_client", "error_description": f"{SECRET} is wrong"}, status=401),
         r"it answers 401, invalid_client: \*\*\* is wrong", False),
        (lambda: web.Response(text="<html>", status=503), "it answers 503$", True),
        (lambda: web.Response(status=429), "it answers 429", True),
        (lambda: web.Response(status=302, headers={"Location": "/other"}), "it answers 302", False),
        (lambda: web.json_response({"token": "x"}), "its answer has no `access_token`", False),
        (lambda: web.json_response([1]), "its answer has no `access_token`", False),
    ],
)  # fmt: skip
def test_an_endpoint_that_gives_no_token_is_told(
    answer: Callable[[], web.Response], message: str, retryable: bool
) -> None:
    tokens = Tokens()

    async def work(resolver: CredentialResolver, request: CredentialRequest, clock: Clock) -> Any:
        tokens.answers = [answer()]
        with pytest.raises(CredentialError, match=message) as caught:
            await resolver.resolve(request)
        assert caught.value.retryable == retryable
        return await token_of(resolver, request, clock)

    assert play(tokens, work) == "token-number-2"


@pytest.mark.parametrize(
    ("url", "retryable"), [("http://127.0.0.1:9/token", True), ("http://", False), ("no address", False)]
)
def test_an_endpoint_that_is_not_there_is_told(url: str, retryable: bool) -> None:
    async def work(resolver: CredentialResolver, request: CredentialRequest, _: Clock) -> CredentialError:
        with pytest.raises(CredentialError, match="no token from") as caught:
            await resolver.resolve(request)
        return caught.value

    assert play(Tokens(), work, token_url=url).retryable == retryable


def test_the_password_of_an_address_is_not_told() -> None:
    async def work(resolver: CredentialResolver, request: CredentialRequest, _: Clock) -> str:
        with pytest.raises(CredentialError) as caught:
            await resolver.resolve(request)
        return str(caught.value)

    url = "http://ada:hidden%2Fone@127.0.0.1:9/token"
    assert play(Tokens(), work, token_url=url).startswith("no token from http://ada:***@127.0.0.1:9/token: ")
