"""Which server a PostgreSQL task talks to."""

from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import Conninfo

from noetl.model.outcome import ToolError
from noetl.tools.host.input_rules import name_phrase
from noetl.tools.postgres.kind import PostgresInputs

_WHOLE = ("dsn", "url", "connection_string", "value")
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
        return _parsed(
            inputs.dsn, ToolError("input", "`dsn` is no connection string: write `postgresql://…`")
        )
    if not isinstance(inputs.auth, dict):
        raise ToolError("credential", f"the credential `{inputs.auth}` is not known here")
    return _credential(inputs.auth)


def _credential(auth: dict[str, Any]) -> str:
    for key in _WHOLE:
        if isinstance(whole := auth.get(key), str) and whole:
            refusal = ToolError("credential", f"`{key}` of the credential is no PostgreSQL connection string")
            return _parsed(whole, refusal)
    known = {option.keyword.decode() for option in Conninfo.get_defaults()}
    found: dict[str, str] = {}
    for key, value in auth.items():
        option = _SPELLINGS.get(key, key)
        if key in _ABOUT or value is None:
            continue
        if option not in known or isinstance(value, dict | list):
            raise ToolError("credential", f"`{key}` in the credential means nothing to PostgreSQL")
        if found.setdefault(option, str(value)) != str(value):
            raise ToolError("credential", f"the credential has two values for `{option}`")
    if not found.keys() & {"host", "hostaddr", "service"}:
        raise ToolError(
            "credential", f"the credential has no `host`, and no {name_phrase(_WHOLE[:2], 'or')} either"
        )
    return make_conninfo(**{"application_name": "noetl", **found})


def _parsed(text: str, refusal: ToolError) -> str:
    try:
        given = {name: str(value) for name, value in conninfo_to_dict(text).items()}
        return make_conninfo(**{"application_name": "noetl", **given})
    except psycopg.ProgrammingError:  # its message may hold the password
        raise refusal from None
