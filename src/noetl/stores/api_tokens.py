"""Tokens for the API of a server: made, named by their hash, valid or not."""

import hashlib
import secrets
from typing import Any

from noetl.model.timestamp import iso_time, now_micros, optional_time
from noetl.ports.admin_api import CreatedToken, TokenRequest
from noetl.ports.catalog import AccessStore, ApiToken

PREFIX = "noetl_"
"""How tokens begin, so that who finds one somewhere knows what it is."""
_SECOND = 1_000_000


def token_hash(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()


def is_valid_token(token: ApiToken, now: int) -> bool:
    return not token.revoked_at and (not token.expires_at or now < token.expires_at)


async def make_token(store: AccessStore, request: TokenRequest, by: str) -> CreatedToken | None:
    """A new token; None if the name is taken. Raises StoreError."""
    # 256 random bits: what cannot be guessed needs no slow hash.
    token, now = PREFIX + secrets.token_urlsafe(32), now_micros()
    expires_at = now + request.expires_in * _SECOND if request.expires_in else 0
    stored = ApiToken(request.name, token_hash(token), request.role, now, by, expires_at, 0)
    if not await store.put_api_token(stored):
        return None
    return CreatedToken(**token_facts(stored), token=token)


def token_facts(token: ApiToken) -> dict[str, Any]:
    """The fields of a `TokenItem`."""
    return {
        "name": token.name,
        "role": token.role,
        "created_at": iso_time(token.created_at),
        "created_by": token.created_by,
        "expires_at": optional_time(token.expires_at),
        "revoked_at": optional_time(token.revoked_at),
        "valid": is_valid_token(token, now_micros()),
    }
