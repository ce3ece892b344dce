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

TIMEOUT_SECONDS = 30.0
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
    public_url = mask_password(url)
    headers = {"Accept": "application/json"}
    form = {"grant_type": "client_credentials", **_scope_parameters(fields)}
    client, secret = str(fields["client_id"]), str(fields["client_secret"])
    if fields.get("client_auth") == "body":
        form.update(client_id=client, client_secret=secret)
    else:
        # Encoded as a form before base64: so RFC 6749 §2.3.1 wants it.
        pair = f"{quote_plus(client)}:{quote_plus(secret)}".encode()
        headers["Authorization"] = f"Basic {base64.b64encode(pair).decode()}"
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS), aiohttp.ClientSession(headers=headers) as session:
            # A redirect would take the client's secret to whatever host it names.
            response = await session.post(url, data=form, allow_redirects=False)
            status, answer_fields = response.status, await _json_mapping(response)
    except (aiohttp.ClientError, ValueError) as error:
        reason = _mask_secret(mask_password(str(error)) or type(error).__name__, secret)
        message = f"no token from {public_url}: {reason}"
        raise CredentialError(message, retryable=not isinstance(error, aiohttp.InvalidURL)) from None
    except TimeoutError:
        raise CredentialError(
            f"no token from {public_url} within {TIMEOUT_SECONDS:g} s", retryable=True
        ) from None
    if status != 200:
        reason = ": ".join(
            str(answer_fields[name]) for name in ("error", "error_description") if answer_fields.get(name)
        )
        message = f"no token from {public_url}: it answers {status}" + (f", {reason}" if reason else "")
        raise CredentialError(_mask_secret(message, secret), retryable=status == 429 or status >= 500)
    return _access_token(answer_fields, public_url)


async def _json_mapping(response: aiohttp.ClientResponse) -> dict[str, Any]:
    """What the answer says; nothing if that is no JSON mapping."""
    try:
        decoded = await response.json(content_type=None)
    except ValueError:
        return {}
    return decoded if isinstance(decoded, dict) else {}


def _scope_parameters(fields: Mapping[str, Any]) -> dict[str, str]:
    scope, audience = fields.get("scope"), fields.get("audience")
    parameters = {}
    if scope:
        parameters["scope"] = " ".join(scope) if isinstance(scope, list) else str(scope)
    if audience:
        parameters["audience"] = str(audience)
    return parameters


def _access_token(answer_fields: Mapping[str, Any], url: str) -> AccessToken:
    text = answer_fields.get("access_token")
    if not isinstance(text, str) or not text:
        raise CredentialError(f"no token from {url}: its answer has no `access_token`")
    try:
        lifetime = float(answer_fields.get("expires_in") or DEFAULT_LIFETIME)
    except (TypeError, ValueError):
        lifetime = DEFAULT_LIFETIME
    return AccessToken(text, max(lifetime - min(30.0, lifetime / 10), 0.0))


def _mask_secret(message: str, secret: str) -> str:
    masker = Masker()
    masker.add(secret, SecretOrigin("client_secret"))
    return masker.mask_text(message)
