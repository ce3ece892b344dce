"""Which server a MySQL task talks to, and how it signs in."""

import ssl
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

from noetl.model.outcome import ToolError
from noetl.tools.host.input_rules import name_phrase
from noetl.tools.mysql.kind import MysqlInputs

PORT = 3306
_ADDRESSES = ("dsn", "url", "connection_string", "value")
_SCHEMES = ("mysql", "mariadb")
_SPELLINGS = {
    "db_host": "host",
    "hostname": "host",
    "db_port": "port",
    "username": "user",
    "db_user": "user",
    "db_password": "password",
    "passwd": "password",
    "db": "database",
    "dbname": "database",
    "db_name": "database",
    "socket": "unix_socket",
}
_OPTIONS = frozenset(
    {"host", "port", "user", "password", "database", "unix_socket"}
    | {"ssl_mode", "ssl_ca", "ssl_cert", "ssl_key"}
)
_ABOUT = {"kind", "type", "name", "description", "provider"}
"""What a credential says of itself."""
_SSL_MODES = ("DISABLED", "REQUIRED", "VERIFY_CA", "VERIFY_IDENTITY")


class MysqlTarget(NamedTuple):
    """A server, a user, and the database that is used first."""

    host: str
    port: int
    unix_socket: str | None
    user: str
    password: str
    database: str | None
    ssl_mode: str
    ssl_ca: str | None
    ssl_cert: str | None
    ssl_key: str | None

    def tls(self) -> ssl.SSLContext | None:
        """How to encrypt; None: not at all. ToolError of kind `credential` if a file cannot be used."""
        if self.ssl_mode == "DISABLED":
            return None
        try:
            context = ssl.create_default_context(cafile=self.ssl_ca)
            context.check_hostname = self.ssl_mode == "VERIFY_IDENTITY"
            if self.ssl_mode == "REQUIRED":
                context.verify_mode = ssl.CERT_NONE
            if self.ssl_cert is not None:
                context.load_cert_chain(self.ssl_cert, self.ssl_key)
        except (OSError, ValueError) as error:  # SSLError is one of the first
            message = f"the certificates of the credential cannot be used: {error}"
            raise ToolError("credential", message) from None
        return context


def mysql_target(inputs: MysqlInputs) -> MysqlTarget:
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
    refusal = ToolError(kind, f"{name} is no address of a MySQL server: write `mysql://user@host/database`")
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise refusal from None
    if parts.scheme.partition("+")[0] not in _SCHEMES:
        raise refusal
    fields: dict[str, Any] = dict(parse_qsl(parts.query, keep_blank_values=True))
    values = {
        "host": parts.hostname,
        "port": port,
        "user": unquote(parts.username) if parts.username else None,
        "password": unquote(parts.password) if parts.password else None,
        "database": unquote(parts.path.removeprefix("/")) or None,
    }
    return {**fields, **{key: value for key, value in values.items() if value is not None}}


def _target(fields: Mapping[str, Any], kind: Any) -> MysqlTarget:
    options: dict[str, str] = {}
    for key, value in fields.items():
        option = _SPELLINGS.get(key, key)
        if key in _ABOUT or value is None:
            continue
        if option not in _OPTIONS or isinstance(value, dict | list):
            raise ToolError(kind, f"`{key}` in the credential means nothing to the mysql tool")
        if options.setdefault(option, str(value)) != str(value):
            raise ToolError(kind, f"the credential has two values for `{option}`")
    if not options.keys() & {"host", "unix_socket"}:
        addresses = name_phrase(_ADDRESSES[:2], "or")
        raise ToolError(kind, f"the credential has no `host`, and no {addresses} either")
    if not options.get("port", "0").isdecimal():
        raise ToolError(kind, "`port` in the credential is no number")
    default = "VERIFY_IDENTITY" if "ssl_ca" in options else "DISABLED"
    mode = options.get("ssl_mode", default).upper().replace("-", "_")
    if mode not in _SSL_MODES:
        raise ToolError(kind, f"`ssl_mode` in the credential is none of {name_phrase(_SSL_MODES, 'and')}")
    return MysqlTarget(
        host=options.get("host", "localhost"),
        port=int(options.get("port", "0")) or PORT,
        unix_socket=options.get("unix_socket"),
        user=options.get("user", "root"),
        password=options.get("password", ""),
        database=options.get("database"),
        ssl_mode=mode,
        ssl_ca=options.get("ssl_ca"),
        ssl_cert=options.get("ssl_cert"),
        ssl_key=options.get("ssl_key"),
    )
