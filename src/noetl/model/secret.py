"""What stands for a secret in the log: where its value comes from, never what it is.

A whole value is `{"$noetl": "secret", "name": …, "path": […], …}`. A text with secrets in it has `parts`: its
own words, and numbers in place of secrets; `secrets` says what each number means, with the `form` it had.
"""

import base64
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeGuard
from urllib.parse import quote, quote_plus

import msgspec
from msgspec import Struct, structs

from noetl.model.reference import MARKER, SecretMarker, StoredReference, may_hold_marker, unescape

MASK = "***"
"""What a person sees in place of a secret."""
SECRET_KEY_PREFIX = "secret:"  # noqa: S105 - how a key begins, no password
"""How the keys of secrets begin, among those of stored values."""


class SecretOrigin(Struct, frozen=True, omit_defaults=True):
    """Where a secret can be had again.

    `playbook` is the hash of the document whose keychain declares `name`; `provider` is where an undeclared
    name was looked up; what a task gave is known only in memory, by the id of the `execution` and a number.
    `path` leads to the value inside the credential.
    """

    name: str
    path: tuple[str | int, ...] = ()
    playbook: str = ""
    provider: str = ""
    execution: str = ""
    number: int = 0

    @property
    def key(self) -> str:
        """Under which its value is asked for."""
        return SECRET_KEY_PREFIX + msgspec.json.encode(self).decode()


def origin_of_key(key: str) -> SecretOrigin:
    """What a key asks for."""
    return msgspec.json.decode(key.removeprefix(SECRET_KEY_PREFIX), type=SecretOrigin)


SECRET_FORMS: dict[str, Callable[[str], str]] = {
    "": str,
    "json": lambda text: json.dumps(text)[1:-1],
    "json-utf8": lambda text: json.dumps(text, ensure_ascii=False)[1:-1],
    "url": lambda text: quote(text, safe=""),
    "url-path": quote,
    "form": quote_plus,
}
"""The ways a secret is written, each with how it is restored."""

_BASE64: dict[str, Callable[[bytes], bytes]] = {
    "base64": base64.b64encode,
    "base64url": base64.urlsafe_b64encode,
    "base64-bare": lambda data: base64.b64encode(data).rstrip(b"="),
    "base64url-bare": lambda data: base64.urlsafe_b64encode(data).rstrip(b"="),
}
"""The ways a text with secrets in it is packed."""

BASE64_FORMS = tuple(_BASE64)


def secret_marker(origin: SecretOrigin) -> SecretMarker:
    """What stands for a value that is a secret."""
    return SecretMarker({MARKER: "secret", **_origin_fields(origin)})


def _origin_fields(origin: SecretOrigin) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.to_builtins(origin)
    return {**fields, "path": list(origin.path)} if origin.path else fields


def secret_text_marker(parts: list[Any], origin: SecretOrigin | None = None) -> SecretMarker:
    """What stands for a text of these parts: texts, and what `secret_part` and the like give.

    If it cannot be restored from them, `origin` is where the whole can be had.
    """
    numbers: dict[str, int] = {}
    secrets: list[Any] = []
    numbered: list[str | int] = []
    for piece in parts:
        if isinstance(piece, str):
            numbered.append(piece)
            continue
        # A secret that occurs again gets the number that it has; a mapping is no key, its text is.
        number = numbers.setdefault(repr(piece), len(secrets))
        if number == len(secrets):
            secrets.append(piece)
        numbered.append(number)
    whole_origin = _origin_fields(origin) if origin is not None else {}
    return SecretMarker({MARKER: "secret", "parts": numbered, "secrets": secrets, **whole_origin})


def secret_part(origin: SecretOrigin, *, form: str = "", line: int | None = None) -> dict[str, Any]:
    """A secret inside a text; `line` is which of its lines it is."""
    fields = _origin_fields(origin)
    if form:
        fields["form"] = form
    if line is not None:
        fields["line"] = line
    return fields


def encoded_part(form: str, parts: list[Any]) -> dict[str, Any]:
    """A text with secrets in it that was encoded as a whole."""
    return {"form": form, "parts": parts}


def lost_part() -> dict[str, Any]:
    """A secret inside a text that cannot be put there again."""
    return {"lost": True}


def is_secret(value: object) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict) and value.get(MARKER) == "secret"


def secrets_in(value: Any) -> Iterator[dict[str, Any]]:
    """Everything in a value that stands for a secret, itself included."""
    if is_secret(value):
        yield value
    elif may_hold_marker(value):
        for item in value.values() if isinstance(value, dict) else value:
            yield from secrets_in(item)


def origins_in(value: Any) -> set[SecretOrigin]:
    """Where everything in a value that stands for a secret comes from, whether or not it can be restored."""
    return {origin for marker in secrets_in(value) for origin in _origins_of(marker)}


def _origins_of(marker: Mapping[str, Any]) -> Iterator[SecretOrigin]:
    if "name" in marker:
        yield structs.replace(_origin(marker), path=())
    for piece in (*marker.get("secrets", ()), *marker.get("parts", ())):
        if isinstance(piece, dict):
            yield from _origins_of(piece)


class SecretLost(Exception):
    """What stands here cannot be restored."""


def secret_keys(marker: Mapping[str, Any]) -> set[str]:
    """The keys of the values that are needed to put a secret in its place. Raises SecretLost."""
    if "parts" not in marker or "number" in marker:
        return {_origin(marker).key}
    keys: set[str] = set()
    for piece in marker["secrets"] if "secrets" in marker else marker["parts"]:
        if isinstance(piece, dict):
            if piece.get("lost"):
                raise SecretLost
            keys |= secret_keys(piece)
    return keys


def restore_secret(marker: Mapping[str, Any], values: Mapping[str, Any]) -> Any:
    """The value again. Raises KeyError where one is not given, and SecretLost."""
    if "parts" not in marker or "number" in marker:
        return values[_origin(marker).key]
    restored = [_restore_piece(piece, values) for piece in marker["secrets"]]
    return "".join(piece if isinstance(piece, str) else restored[piece] for piece in marker["parts"])


def mask_secret(marker: Mapping[str, Any]) -> str:
    """As a person sees it."""
    if "parts" not in marker:
        return MASK
    return "".join(piece if isinstance(piece, str) else MASK for piece in marker["parts"])


def printable_value(value: Any) -> Any:
    """A value of the log as it is printed: the user's own data, with `***` for what stands for secrets."""
    return hide_secrets(unescape(value))


def hide_secrets(value: Any) -> Any:
    """The same for a value that is the user's own data already, but for secrets and stored objects."""
    return _hide_secrets(value) if may_hold_marker(value) else value


def _hide_secrets(value: Any) -> Any:
    if isinstance(value, SecretMarker):
        return mask_secret(value)
    if isinstance(value, StoredReference):
        return value
    if isinstance(value, dict):
        return {key: _hide_secrets(item) for key, item in value.items()}
    return [_hide_secrets(item) for item in value] if isinstance(value, list) else value


def _restore_piece(piece: Any, values: Mapping[str, Any]) -> str:
    if isinstance(piece, str):
        return piece
    if piece.get("lost"):
        raise SecretLost
    if "parts" in piece:
        inside = "".join(_restore_piece(inner, values) for inner in piece["parts"])
        return _BASE64[piece["form"]](inside.encode()).decode()
    text = secret_text(values[_origin(piece).key])
    if "line" in piece:
        lines = text.splitlines()
        if piece["line"] >= len(lines):
            raise SecretLost
        text = lines[piece["line"]]
    return SECRET_FORMS[piece.get("form", "")](text)


def form_pairs(secret: str, stand_in: str) -> Iterator[tuple[str, str]]:
    """The stand-in and the secret in every form that one is recognised in, each pair alike."""
    for form in SECRET_FORMS.values():
        yield form(stand_in), form(secret)
    for pack in _BASE64.values():
        yield pack(stand_in.encode()).decode(), pack(secret.encode()).decode()


def secret_text(value: Any) -> str:
    """A secret as it stands inside a text."""
    return value if isinstance(value, str) else json.dumps(value)


def _origin(marker: Mapping[str, Any]) -> SecretOrigin:
    return msgspec.convert(marker, SecretOrigin)
