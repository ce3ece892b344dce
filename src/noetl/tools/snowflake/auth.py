"""Which Snowflake account a task talks to, and how it signs in."""

from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

from noetl.model.outcome import ToolError
from noetl.tools.host.input_rules import name_phrase
from noetl.tools.snowflake.kind import SnowflakeInputs

_ADDRESSES = ("dsn", "url", "connection_string", "value")
_SPELLINGS = {
    "username": "user",
    "db_user": "user",
    "db_password": "password",
    "db_name": "database",
    "dbname": "database",
    "db_host": "host",
    "hostname": "host",
    "db_port": "port",
    "private_key_passphrase": "private_key_password",
    "private_key_file_pwd": "private_key_password",
}
_OPTIONS = frozenset(
    {"account", "user", "password", "database", "schema", "warehouse", "role", "host", "port", "protocol"}
    | {"authenticator", "token", "passcode", "private_key", "private_key_file", "private_key_password"}
    | {"oauth_client_id", "oauth_client_secret", "oauth_token_request_url", "oauth_scope"}
)
_ABOUT = {"kind", "type", "name", "description", "provider"}
"""What a credential says of itself."""


class SnowflakeTarget(NamedTuple):
    """What the driver connects with, in the order of the names."""

    options: tuple[tuple[str, str], ...]


def snowflake_target(inputs: SnowflakeInputs) -> SnowflakeTarget:
    """ToolError of kind `input` or `credential` if there is none."""
    if inputs.dsn is not None:
        return _target(_fields_of_address(inputs.dsn, "`dsn`", "input"), "input")
    if not isinstance(inputs.auth, dict):
        raise ToolError("credential", f"the credential `{inputs.auth}` is not known here")
    for key in _ADDRESSES:
        if isinstance(text := inputs.auth.get(key), str) and text:
            fields = _fields_of_address(text, f"`{key}` of the credential", "credential")
            rest = {name: value for name, value in inputs.auth.items() if name not in _ADDRESSES}
            return _target({**fields, **rest}, "credential")
    return _target(inputs.auth, "credential")


def _fields_of_address(text: str, name: str, kind: Any) -> dict[str, Any]:
    """What an address says. Its parts are never quoted in messages: one is the password."""
    example = "snowflake://user@account/database/schema"
    refusal = ToolError(kind, f"{name} is no address of a Snowflake account: write `{example}`")
    parts = urlsplit(text)
    # Not `hostname`, which is in lower case: that is how an account is told from a host with a port.
    account = parts.netloc.rpartition("@")[2]
    path = parts.path.strip("/").split("/")
    if parts.scheme != "snowflake" or not account or ":" in account or len(path) > 2:
        raise refusal
    fields: dict[str, Any] = dict(parse_qsl(parts.query, keep_blank_values=True))
    values = {
        "account": unquote(account),
        "user": unquote(parts.username) if parts.username else None,
        "password": unquote(parts.password) if parts.password else None,
        "database": unquote(path[0]) or None,
        "schema": unquote(path[1]) if len(path) == 2 else None,
    }
    return {**fields, **{key: value for key, value in values.items() if value is not None}}


def _target(fields: Mapping[str, Any], kind: Any) -> SnowflakeTarget:
    options: dict[str, str] = {}
    for key, value in fields.items():
        plain = key.removeprefix("sf_")
        option = _SPELLINGS.get(plain, plain)
        if key in _ABOUT or value is None:
            continue
        if option not in _OPTIONS or isinstance(value, dict | list):
            raise ToolError(kind, f"`{key}` in the credential means nothing to the snowflake tool")
        if options.setdefault(option, str(value)) != str(value):
            raise ToolError(kind, f"the credential has two values for `{option}`")
    if "account" not in options:
        addresses = name_phrase(_ADDRESSES[:2], "or")
        raise ToolError(kind, f"the credential has no `account`, and no {addresses} either")
    if not options.get("port", "0").isdecimal():
        raise ToolError(kind, "`port` in the credential is no number")
    if "authenticator" not in options and options.keys() & {"private_key", "private_key_file"}:
        options["authenticator"] = "SNOWFLAKE_JWT"
    return SnowflakeTarget(tuple(sorted(options.items())))
