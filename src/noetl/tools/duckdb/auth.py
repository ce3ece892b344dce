"""A credential as DuckDB takes it: a secret, and a database that is attached with it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from noetl.model.outcome import ToolError
from noetl.tools.duckdb.text import quote_literal
from noetl.tools.sql.target_table import quote_identifier

_SERVER = {
    "HOST": ("host", "db_host"),
    "PORT": ("port", "db_port"),
    "USER": ("user", "username", "db_user"),
    "PASSWORD": ("password", "db_password"),
    "DATABASE": ("database", "dbname", "db_name"),
}
_BUCKET = {
    "KEY_ID": ("access_key_id", "key_id", "aws_access_key_id"),
    "SECRET": ("secret_access_key", "secret", "aws_secret_access_key"),
    "SESSION_TOKEN": ("session_token", "aws_session_token"),
    "REGION": ("region", "aws_region"),
    "ENDPOINT": ("endpoint",),
    "URL_STYLE": ("url_style",),
}
_SECRETS = {"postgres": _SERVER, "mysql": _SERVER, "s3": _BUCKET}
_FILES = ("sqlite", "duckdb")
_PATH = ("database", "path", "file")
_CONNECTION_STRINGS = ("dsn", "url", "connection_string")


class Attachment(NamedTuple):
    """A database to attach as `name`: the statement that makes its secret, and what ATTACH says of it."""

    name: str
    secret: str | None
    target: str | None


def attachment_of(auth: Mapping[str, Any], folder: Path) -> Attachment:
    """What a credential attaches: under its `alias`, or else its kind. Buckets only have a secret.

    ToolError of kind `credential` if it is for nothing that DuckDB can attach, or does not say what.
    """
    kind = str(auth.get("type") or auth.get("kind") or "").removesuffix("_credential").lower()
    name = str(auth.get("alias") or kind)
    alias = quote_identifier(name)
    if kind in _FILES:
        path = _first(auth, _PATH)
        if path is None:
            raise ToolError("credential", f"the `{kind}` credential names no file: give it `database`")
        options = f" (TYPE {kind})" if kind != "duckdb" else _encryption(auth)
        return Attachment(name, None, f"{quote_literal(str(folder / str(path)))} AS {alias}{options}")
    if kind not in _SECRETS:
        known = ", ".join(f"`{name}`" for name in (*_SECRETS, *_FILES))
        message = (
            f"a credential of kind `{kind}` cannot be attached" if kind else "the credential has no `type`"
        )
        raise ToolError("credential", f"{message}: DuckDB takes {known}")
    if kind == "postgres" and (dsn := _first(auth, _CONNECTION_STRINGS)) is not None:
        return Attachment(name, None, f"{quote_literal(str(dsn))} AS {alias} (TYPE {kind})")
    parts = {option: _first(auth, keys) for option, keys in _SECRETS[kind].items()}
    fields = "".join(
        f", {option} {quote_literal(str(value))}" for option, value in parts.items() if value is not None
    )
    secret = f"CREATE OR REPLACE TEMPORARY SECRET {alias} (TYPE {kind}{fields})"
    if kind == "s3":
        return Attachment(name, secret, None)
    if parts["HOST"] is None:
        raise ToolError("credential", f"the `{kind}` credential names no server: give it `host`")
    return Attachment(name, secret, f"'' AS {alias} (TYPE {kind}, SECRET {alias})")


def _encryption(auth: Mapping[str, Any]) -> str:
    key = auth.get("encryption_key")
    return f" (ENCRYPTION_KEY {quote_literal(str(key))})" if key is not None else ""


def _first(auth: Mapping[str, Any], keys: tuple[str, ...]) -> Any:
    return next((auth[key] for key in keys if auth.get(key) is not None), None)
