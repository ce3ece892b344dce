"""A credential as playbooks see it, which parts of it are secret, and values in it by the way to them."""

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from msgspec import Struct, structs

from noetl.credentials.masker import leaves
from noetl.model.json import Json
from noetl.model.secret import MASK, SecretOrigin, secret_marker

FieldPath = tuple[str | int, ...]

DATABASE_SPELLINGS = {
    "db_host": "host",
    "db_port": "port",
    "db_user": "user",
    "db_password": "password",
    "db_name": "database",
}
"""Spellings of connections found in the wild, with those that tools know."""

_PUBLIC_FIELDS = frozenset(
    {
        "account", "application_name", "audience", "authenticator", "base_url", "bucket", "client_auth",
        "client_id", "database", "db", "dbname", "dialect", "domain", "driver", "endpoint", "header", "host",
        "hostname", "kind",
        "name", "options", "path", "port", "project", "protocol", "provider", "query", "region", "role",
        "schema", "scope", "service", "socket", "ssl_ca", "ssl_cert", "ssl_mode", "sslmode", "tenant",
        "tenant_id", "timeout", "token_url", "type",
        "unix_socket", "url", "user", "username", "version", "warehouse",
    }
)  # fmt: skip
"""Fields that are no secrets. What is not named here is one."""

_PASSWORD_IN_TEXT = re.compile(
    r"""(?:^|[\s;?&])(?:password|pwd)\s*=\s*(?:('(?:\\.|[^'])*'|"(?:\\.|[^"])*")|([^\s;]+))""", re.IGNORECASE
)


class Credential(Struct, frozen=True):
    """What `keychain.NAME` gives. `lasts` is how many seconds it may be used, None if it does not say."""

    name: str
    kind: str
    fields: dict[str, Json]
    lifetime: float | None = None
    derived: tuple[Json, ...] = ()
    """Values in it that were made of other secrets: they are secret whatever their field is called."""

    @property
    def auth_fields(self) -> dict[str, Json]:
        """What a tool gets as `auth`: every field under the one name that tools know."""
        plain = {name: value for name, value in self.fields.items() if name not in DATABASE_SPELLINGS}
        return {**plain, "kind": self.kind}

    @property
    def secrets(self) -> Iterator[tuple[FieldPath, Any]]:
        """Its secret values, with the way to each."""
        return secrets_of(self.fields, self.derived)


def secrets_of(fields: Mapping[str, Any], derived: tuple[Json, ...] = ()) -> Iterator[tuple[FieldPath, Any]]:
    """The secret values of a credential, with the way to each. A password in a URL counts by itself, too.

    What is in `derived` is secret in any field.
    """
    for name, value in fields.items():
        public = name.lower().removeprefix("db_").removeprefix("sf_") in _PUBLIC_FIELDS
        for path, leaf in leaves(value, (name,)):
            inner = isinstance(path[-1], str) and path[-1].lower() in _PUBLIC_FIELDS
            if (not public and (len(path) == 1 or not inner)) or leaf in derived:
                yield path, leaf
            if isinstance(leaf, str) and (password := _password_in(leaf)):
                yield (*path, "password"), password


def mask_password(url: str) -> str:
    """The URL as it may be told."""
    password = _password_in(url)
    return url.replace(password, MASK).replace(quote(password, safe=""), MASK) if password else url


def _password_in(text: str) -> str:
    """That of a URL, or of a connection string with `password=…`."""
    if "://" in text:
        try:
            if password := urlsplit(text).password:
                return unquote(password)
        except ValueError:
            return ""
    if not (match := _PASSWORD_IN_TEXT.search(text)):
        return ""
    quoted, plain = match.groups()
    if plain is None:
        return re.sub(r"\\(.)", r"\1", quoted[1:-1])
    return unquote(plain.partition("&")[0]) if "://" in text else plain


def mark_fields(credential: Credential, origin: SecretOrigin, *, public: bool = False) -> dict[str, Any]:
    """The fields with what stands for each value; with `public`, only for those that are secret."""
    secret_paths = {path for path, _ in credential.secrets} if public else None
    marked: Any = dict(credential.fields)
    for path, _ in leaves(credential.fields):
        if path and (secret_paths is None or path in secret_paths):
            marked = replace_at_field_path(marked, path, secret_marker(structs.replace(origin, path=path)))
    result: dict[str, Any] = marked
    return result


def credential_field(fields: Mapping[str, Any], path: FieldPath) -> Any:
    """What a secret of a credential is, or another field of it. Raises KeyError if there is none any more."""
    secret = dict(secrets_of(fields)).get(path)
    return value_at_field_path(fields, path) if secret is None else secret


def value_at_field_path(value: Any, path: FieldPath) -> Any:
    """Raises KeyError if there is no such path."""
    for key in path:
        try:
            value = value[key]
        except (IndexError, TypeError):
            raise KeyError(key) from None
    return value


def replace_at_field_path(value: Any, path: FieldPath, new: Any) -> Any:
    """A copy with something else at this path; the same where there is no such path."""
    if not path:
        return new
    if isinstance(value, list):
        return [
            replace_at_field_path(item, path[1:], new) if index == path[0] else item
            for index, item in enumerate(value)
        ]
    if isinstance(value, dict):
        return {
            key: replace_at_field_path(item, path[1:], new) if key == path[0] else item
            for key, item in value.items()
        }
    return value
