"""A credential as DuckDB takes it: a secret, and a database that is attached with it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from noetl.model.outcome import ToolError
from noetl.tools.duckdb_text import quoted_name, quoted_text

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


def attaching(auth: Mapping[str, Any], folder: Path) -> list[str]:
    """The statements that make a credential known, and attach its database under its `alias`.

    Without one the alias is the kind. ToolError of kind `credential` if it is for nothing that DuckDB
    can attach.
    """
    kind = str(auth.get("type") or auth.get("kind") or "").removesuffix("_credential").lower()
    alias = quoted_name(str(auth.get("alias") or kind))
    if kind in _FILES:
        path = _first(auth, _PATH)
        if path is None:
            raise ToolError("credential", f"the `{kind}` credential names no file: give it `database`")
        options = f" (TYPE {kind})" if kind != "duckdb" else _encryption(auth)
        return [f"ATTACH IF NOT EXISTS {quoted_text(str(folder / str(path)))} AS {alias}{options}"]
    if kind not in _SECRETS:
        known = ", ".join(f"`{one}`" for one in (*_SECRETS, *_FILES))
        message = (
            f"a credential of kind `{kind}` cannot be attached" if kind else "the credential has no `type`"
        )
        raise ToolError("credential", f"{message}: DuckDB takes {known}")
    given = {name: _first(auth, keys) for name, keys in _SECRETS[kind].items()}
    fields = "".join(
        f", {name} {quoted_text(str(value))}" for name, value in given.items() if value is not None
    )
    secret = f"CREATE OR REPLACE TEMPORARY SECRET {alias} (TYPE {kind}{fields})"
    if kind == "s3":
        return [secret]
    return [secret, f"ATTACH IF NOT EXISTS '' AS {alias} (TYPE {kind}, SECRET {alias})"]


def _encryption(auth: Mapping[str, Any]) -> str:
    key = auth.get("encryption_key")
    return f" (ENCRYPTION_KEY {quoted_text(str(key))})" if key is not None else ""


def _first(auth: Mapping[str, Any], keys: tuple[str, ...]) -> Any:
    return next((auth[key] for key in keys if auth.get(key) is not None), None)
