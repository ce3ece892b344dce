"""Identity tokens of Google: for a service account by its key, or for that of the machine."""

import asyncio
import base64
import binascii
import time
from collections.abc import Mapping
from typing import Any

import aiohttp
import msgspec

from noetl.credentials.oauth2 import DEFAULT_LIFETIME, TIMEOUT_SECONDS, AccessToken
from noetl.ports.credentials import CredentialError

TOKEN_URI = "https://oauth2.googleapis.com/token"  # noqa: S105 - an address
METADATA_HOST = "metadata.google.internal"
_IDENTITY = "computeMetadata/v1/instance/service-accounts/default/identity"
_GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_ASSERTION_SECONDS = 600
"""Seconds for which the signed request for a token may be used: an hour is the most that is taken."""


class ServiceAccountKey(msgspec.Struct, frozen=True):
    """The parts of a service account's key file that a token is asked for with."""

    client_email: str
    private_key: str
    private_key_id: str = ""
    token_uri: str = TOKEN_URI


def service_account_key(key: object) -> ServiceAccountKey:
    """The key in a mapping, or in the text of its file. Raises CredentialError."""
    try:
        return (
            msgspec.json.decode(key, type=ServiceAccountKey)
            if isinstance(key, str)
            else msgspec.convert(key, ServiceAccountKey)
        )
    except (msgspec.DecodeError, msgspec.ValidationError):  # their messages may quote the key
        message = "the key is none of a service account: it has no `client_email` and `private_key`"
        raise CredentialError(message, "give the JSON file that Google made") from None


async def fetch_account_token(key: ServiceAccountKey, audience: str) -> AccessToken:
    """An identity token of the account for whoever is called `audience`. Raises CredentialError."""
    form = {"grant_type": _GRANT, "assertion": _signed_assertion(key, audience)}
    headers = {"Accept": "application/json"}
    # A redirect would take the assertion, which is as good as a token, to whatever host it names.
    status, text = await _text_of("POST", key.token_uri, headers, data=form)
    try:
        answer = msgspec.json.decode(text)
    except msgspec.DecodeError:
        answer = None
    fields = answer if isinstance(answer, dict) else {}
    if status != 200:
        reasons = [str(fields[name]) for name in ("error", "error_description") if fields.get(name)]
        raise _refusal(key.token_uri, status, ": ".join(reasons))
    return _identity_token(fields.get("id_token"), key.token_uri)


async def fetch_machine_token(audience: str, environment: Mapping[str, str]) -> AccessToken:
    """An identity token of the account of the machine that this runs on. Raises CredentialError."""
    host = environment.get("GCE_METADATA_HOST") or METADATA_HOST
    url = f"http://{host}/{_IDENTITY}"
    headers = {"Metadata-Flavor": "Google"}
    try:
        status, text = await _text_of("GET", url, headers, params={"audience": audience, "format": "full"})
    except CredentialError:
        message = "there is no account of Google Cloud here"
        hint = "give the key of a service account, or run it on a machine that has one"
        raise CredentialError(message, hint, retryable=True) from None
    if status != 200:
        raise _refusal(url, status, text.strip().partition("\n")[0][:200])
    return _identity_token(text.strip(), url)


async def _text_of(method: str, url: str, headers: dict[str, str], **options: Any) -> tuple[int, str]:
    try:
        async with (
            asyncio.timeout(TIMEOUT_SECONDS),
            aiohttp.ClientSession(headers=headers) as session,
            session.request(method, url, allow_redirects=False, **options) as response,
        ):
            return response.status, await response.text()
    except (aiohttp.ClientError, ValueError) as error:
        message = f"no token from {url}: {type(error).__name__}"
        raise CredentialError(message, retryable=not isinstance(error, aiohttp.InvalidURL)) from None
    except TimeoutError:
        message = f"no token from {url} within {TIMEOUT_SECONDS:g} s"
        raise CredentialError(message, retryable=True) from None


def _refusal(url: str, status: int, reason: str) -> CredentialError:
    message = f"no token from {url}: it answers {status}" + (f", {reason}" if reason else "")
    return CredentialError(message, retryable=status == 429 or status >= 500)


def _signed_assertion(key: ServiceAccountKey, audience: str) -> str:
    """What the account says of itself, signed with its key (RFC 7523)."""
    from cryptography.hazmat.primitives import hashes  # noqa: PLC0415 - few playbooks need it
    from cryptography.hazmat.primitives.asymmetric import padding, rsa  # noqa: PLC0415 - as above
    from cryptography.hazmat.primitives.serialization import load_pem_private_key  # noqa: PLC0415 - as above

    try:
        private_key = load_pem_private_key(key.private_key.encode(), password=None)
    except (ValueError, TypeError):
        private_key = None
    if not isinstance(private_key, rsa.RSAPrivateKey):
        raise CredentialError("`private_key` of the service account is no RSA key in PEM")
    now = int(time.time())
    header = {"alg": "RS256", "typ": "JWT", **({"kid": key.private_key_id} if key.private_key_id else {})}
    claims = {
        "iss": key.client_email,
        "sub": key.client_email,
        "aud": key.token_uri,
        "iat": now,
        "exp": now + _ASSERTION_SECONDS,
        "target_audience": audience,
    }
    signed = f"{_encode(header)}.{_encode(claims)}"
    signature = private_key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256())
    return f"{signed}.{base64.urlsafe_b64encode(signature).decode().rstrip('=')}"


def _encode(part: Mapping[str, Any]) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(part)).decode().rstrip("=")


def _identity_token(text: object, url: str) -> AccessToken:
    if not isinstance(text, str) or text.count(".") != 2:
        raise CredentialError(f"no token from {url}: its answer has none")
    lifetime = _remaining_seconds(text.split(".")[1])
    return AccessToken(text, max(lifetime - min(30.0, lifetime / 10), 0.0))


def _remaining_seconds(claims_part: str) -> float:
    """How long a token lasts, by what stands in it. It is not verified: whoever gets it does that."""
    try:
        claims = msgspec.json.decode(base64.urlsafe_b64decode(claims_part + "=" * (-len(claims_part) % 4)))
        return max(float(claims["exp"]) - time.time(), 0.0)
    except (binascii.Error, msgspec.DecodeError, KeyError, TypeError, ValueError):
        return DEFAULT_LIFETIME
