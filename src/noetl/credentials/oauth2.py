"""Tokens for client credentials (RFC 6749 §4.4)."""

import asyncio
import base64
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote_plus

import aiohttp
from msgspec import Struct

from noetl.credentials.credential import mask_password
from noetl.credentials.masker import Masker
from noetl.model.secret import SecretOrigin
from noetl.ports.credentials import CredentialError

PATIENCE = 30.0
"""Seconds in which a token must be had."""
DEFAULT_LIFETIME = 300.0
"""Seconds that a token is good for if the server does not say."""


class AccessToken(Struct, frozen=True):
    """`lasts` is how many seconds it may be used: a little less than the server says."""

    text: str
    lifetime: float


async def fetch_access_token(fields: Mapping[str, Any]) -> AccessToken:
    """A new token for `token_url`, `client_id`, `client_secret`, `scope` and `audience`.

    Raises CredentialError.
    """
    url = str(fields["token_url"])
    told = mask_password(url)
    headers = {"Accept": "application/json"}
    form = {"grant_type": "client_credentials", **_asked(fields)}
    client, secret = str(fields["client_id"]), str(fields["client_secret"])
    if fields.get("client_auth") == "body":
        form.update(client_id=client, client_secret=secret)
    else:
        pair = f"{quote_plus(client)}:{quote_plus(secret)}".encode()
        headers["Authorization"] = f"Basic {base64.b64encode(pair).decode()}"
    try:
        async with asyncio.timeout(PATIENCE), aiohttp.ClientSession(headers=headers) as session:
            answer = await session.post(url, data=form, allow_redirects=False)
            status, said = answer.status, await _json(answer)
    except (aiohttp.ClientError, ValueError) as error:
        message = (
            f"no token from {told}: {_hidden(mask_password(str(error)) or type(error).__name__, secret)}"
        )
        raise CredentialError(message, retryable=not isinstance(error, aiohttp.InvalidURL)) from None
    except TimeoutError:
        raise CredentialError(f"no token from {told} within {PATIENCE:g} s", retryable=True) from None
    if status != 200:
        reason = ": ".join(str(said[name]) for name in ("error", "error_description") if said.get(name))
        message = f"no token from {told}: it answers {status}" + (f", {reason}" if reason else "")
        raise CredentialError(_hidden(message, secret), retryable=status == 429 or status >= 500)
    return _token(said, told)


async def _json(answer: aiohttp.ClientResponse) -> dict[str, Any]:
    """What the answer says; nothing if that is no JSON mapping."""
    try:
        said = await answer.json(content_type=None)
    except ValueError:
        return {}
    return said if isinstance(said, dict) else {}


def _asked(fields: Mapping[str, Any]) -> dict[str, str]:
    scope, audience = fields.get("scope"), fields.get("audience")
    asked = {}
    if scope:
        asked["scope"] = " ".join(scope) if isinstance(scope, list) else str(scope)
    if audience:
        asked["audience"] = str(audience)
    return asked


def _token(said: Mapping[str, Any], url: str) -> AccessToken:
    text = said.get("access_token")
    if not isinstance(text, str) or not text:
        raise CredentialError(f"no token from {url}: its answer has no `access_token`")
    try:
        lifetime = float(said.get("expires_in") or DEFAULT_LIFETIME)
    except (TypeError, ValueError):
        lifetime = DEFAULT_LIFETIME
    return AccessToken(text, max(lifetime - min(30.0, lifetime / 10), 0.0))


def _hidden(message: str, secret: str) -> str:
    masker = Masker()
    masker.add(secret, SecretOrigin("client_secret"))
    return masker.mask_text(message)
