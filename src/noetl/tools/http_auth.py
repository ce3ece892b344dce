"""How a request signs in: `auth` as a mapping."""

import base64
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias, assert_never

import msgspec
from msgspec import Struct

from noetl.model.outcome import ToolError


class Bearer(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="type", tag="bearer"):
    """Sent as `Authorization: Bearer`."""

    token: str


class Basic(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="type", tag="basic"):
    """Sent as `Authorization: Basic`."""

    username: str
    password: str


class ApiKey(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="type", tag="api_key"):
    """Sent in a header, or in the query if that is named."""

    value: str
    header: str = "X-API-Key"
    query: str | None = None


Auth: TypeAlias = Bearer | Basic | ApiKey


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
    given = _read(auth)
    match given:
        case Bearer():
            return Signature(header=("Authorization", f"Bearer {given.token}"))
        case Basic():
            pair = f"{given.username}:{given.password}".encode()
            return Signature(header=("Authorization", f"Basic {base64.b64encode(pair).decode()}"))
        case ApiKey(query=None):
            return Signature(header=(given.header, given.value))
        case ApiKey():
            return Signature(query=(given.query or "", given.value))
        case _:
            assert_never(given)


def _read(auth: Mapping[str, Any]) -> Auth:
    """The mapping, typed; keychain entries say `kind` for `type`, and `value` for a single value."""
    entry = dict(auth)
    if "kind" in entry:
        entry.setdefault("type", entry.pop("kind"))
    if entry.get("type") == "bearer" and "value" in entry:
        entry.setdefault("token", entry.pop("value"))
    if entry.get("type") not in ("bearer", "basic", "api_key"):
        raise ToolError("credential", "`auth.type` must be `bearer`, `basic` or `api_key`")
    try:
        return msgspec.convert(entry, Bearer | Basic | ApiKey)
    except msgspec.ValidationError as error:
        raise ToolError("credential", f"`auth` is no credential of type `{entry['type']}`: {error}") from None
