"""Which server a PostgreSQL task talks to."""

from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import Conninfo

from noetl.model.outcome import ToolError
from noetl.tools.host.input_rules import name_phrase
from noetl.tools.postgres.kind import PostgresInputs

_CONNECTION_STRINGS = ("dsn", "url", "connection_string", "value")
_SPELLINGS = {
    "db_host": "host",
    "hostname": "host",
    "db_port": "port",
    "username": "user",
    "db_user": "user",
    "db_password": "password",
    "database": "dbname",
    "db_name": "dbname",
    "db": "dbname",
}
_ABOUT = {"kind", "type", "name", "description", "provider"}
"""What a credential says of itself."""


def conninfo_of(inputs: PostgresInputs) -> str:
    """The connection string. ToolError of kind `input` or `credential` if there is none."""
    if inputs.dsn is not None:
        return _with_application_name(
            inputs.dsn, ToolError("input", "`dsn` is no connection string: write `postgresql://…`")
        )
    if not isinstance(inputs.auth, dict):
        raise ToolError("credential", f"the credential `{inputs.auth}` is not known here")
    return _conninfo_from_credential(inputs.auth)


def _conninfo_from_credential(auth: dict[str, Any]) -> str:
    for key in _CONNECTION_STRINGS:
        if isinstance(text := auth.get(key), str) and text:
            refusal = ToolError("credential", f"`{key}` of the credential is no PostgreSQL connection string")
            return _with_application_name(text, refusal)
    known = {option.keyword.decode() for option in Conninfo.get_defaults()}
    options: dict[str, str] = {}
    for key, value in auth.items():
        option = _SPELLINGS.get(key, key)
        if key in _ABOUT or value is None:
            continue
        if option not in known or isinstance(value, dict | list):
            raise ToolError("credential", f"`{key}` in the credential means nothing to PostgreSQL")
        if options.setdefault(option, str(value)) != str(value):
            raise ToolError("credential", f"the credential has two values for `{option}`")
    if not options.keys() & {"host", "hostaddr", "service"}:
        raise ToolError(
            "credential",
            f"the credential has no `host`, and no {name_phrase(_CONNECTION_STRINGS[:2], 'or')} either",
        )
    return make_conninfo(**{"application_name": "noetl", **options})


def _with_application_name(text: str, refusal: ToolError) -> str:
    try:
        options = {name: str(value) for name, value in conninfo_to_dict(text).items()}
        return make_conninfo(**{"application_name": "noetl", **options})
    except psycopg.ProgrammingError:  # its message may hold the password
        raise refusal from None
