"""How a request signs in: `auth` as a mapping."""

import base64
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias, assert_never

import msgspec
from msgspec import Struct

from noetl.model.outcome import ToolError


class BearerAuth(Struct, frozen=True, kw_only=True, tag_field="type", tag="bearer"):
    """Sent as `Authorization: Bearer`."""

    token: str


class BasicAuth(Struct, frozen=True, kw_only=True, tag_field="type", tag="basic"):
    """Sent as `Authorization: Basic`."""

    username: str
    password: str


class ApiKeyAuth(Struct, frozen=True, kw_only=True, tag_field="type", tag="api_key"):
    """Sent in a header, or in the query if that is named."""

    value: str
    header: str | None = None
    query: str | None = None


class OAuth2Auth(Struct, frozen=True, kw_only=True, tag_field="type", tag="oauth2"):
    """Sent as `Authorization: Bearer`; the worker has had the token for the client's credentials."""

    access_token: str


HttpAuth: TypeAlias = BearerAuth | BasicAuth | ApiKeyAuth | OAuth2Auth

_ALIASES: dict[str, dict[str, str]] = {
    "bearer": {"value": "token"},
    "basic": {"user": "username"},
    "api_key": {"key": "value"},
    "oauth2": {},
}
"""By type: what fields are called, too, with their names here."""

_FIELDS: dict[str, tuple[str, ...]] = {
    str(auth.__struct_config__.tag): auth.__struct_fields__
    for auth in (BearerAuth, BasicAuth, ApiKeyAuth, OAuth2Auth)
}
_FIELDS["oauth2"] += (
    "audience", "client_auth", "client_id", "client_secret", "scope", "token_url", "value",
)  # fmt: skip
"""What `auth` may hold, by type; with the rest of `oauth2` the worker has got the token."""


class Signature(NamedTuple):
    """What signs a request: one header or one query parameter, by name and value."""

    header: tuple[str, str] | None = None
    query: tuple[str, str] | None = None


def signature_of(auth: str | Mapping[str, Any] | None) -> Signature:
    """What `auth` asks for. ToolError of kind `credential` if it cannot be had from a mapping."""
    if auth is None:
        return Signature()
    if isinstance(auth, str):
        raise ToolError(
            "credential",
            f"there is no credential `{auth}` here: give `auth` as a mapping, such as "
            "`{type: bearer, token: …}`",
        )
    credential = _typed_auth(auth)
    match credential:
        case BearerAuth():
            return Signature(header=("Authorization", f"Bearer {credential.token}"))
        case OAuth2Auth():
            return Signature(header=("Authorization", f"Bearer {credential.access_token}"))
        case BasicAuth():
            pair = f"{credential.username}:{credential.password}".encode()
            return Signature(header=("Authorization", f"Basic {base64.b64encode(pair).decode()}"))
        case ApiKeyAuth(header=str(), query=str()):
            raise ToolError("credential", "`auth` has a `header` and a `query`: an API key goes into one")
        case ApiKeyAuth(query=None):
            return Signature(header=(credential.header or "X-API-Key", credential.value))
        case ApiKeyAuth():
            return Signature(query=(credential.query or "", credential.value))
        case _:
            assert_never(credential)


def _typed_auth(auth: Mapping[str, Any]) -> HttpAuth:
    """The mapping, typed. Of a keychain entry only what signs in is looked at."""
    entry = dict(auth)
    kind = entry.pop("kind", None)
    written = "type" in entry
    entry.setdefault("type", kind if kind in _ALIASES or kind is None else _guess_type(entry))
    names = _ALIASES.get(entry["type"])
    if not written and entry["type"] == "":
        raise ToolError("credential", "the credential has no `token`, `value` or `password` to sign in with")
    if names is None:
        kinds = ", ".join(f"`{name}`" for name in _ALIASES)
        raise ToolError("credential", f"`auth.type` must be one of {kinds}")
    if written and (unknown := entry.keys() - {"type", *names, *_FIELDS[entry["type"]]}):
        message = f"`auth` of type `{entry['type']}` has no field `{min(unknown)}`"
        raise ToolError("credential", message)
    for alias, name in names.items():
        if alias in entry:
            entry.setdefault(name, entry[alias])
    try:
        return msgspec.convert(entry, BearerAuth | BasicAuth | ApiKeyAuth | OAuth2Auth)
    except msgspec.ValidationError as error:
        raise ToolError("credential", f"`auth` is no credential of type `{entry['type']}`: {error}") from None


def _guess_type(entry: Mapping[str, Any]) -> str:
    """How a credential signs in whose kind is about where it came from, such as `env`."""
    if "password" in entry:
        return "basic"
    return "bearer" if {"token", "value"} & entry.keys() else ""
