"""The URL of a store in PostgreSQL."""

import re
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from msgspec import Struct

from noetl.model.store_url import without_password
from noetl.ports.store import StoreUrlWrong

DEFAULT_SCHEMA = "noetl"
_SCHEMA = re.compile(r"[a-z_][a-z0-9_]{0,62}")
_PORT = re.compile(r":([^:\]]*)$")
_HINT = "postgresql://USER:PASSWORD@HOST:5432/DATABASE, and ?schema=NAME for another schema than `noetl`"


class DatabaseAddress(Struct, frozen=True):
    """Where the database is, as its driver wants it, and the schema in it. `label` is for people."""

    dsn: str
    schema: str
    label: str

    @classmethod
    def parse(cls, url: str) -> "DatabaseAddress":
        """Raises StoreUrlWrong."""
        try:
            parts = urlsplit(url)
        except ValueError as error:
            raise StoreUrlWrong(f"{without_password(url)}: {error}", _HINT) from None
        # Several hosts, of which one is the primary: `HOST:PORT,HOST:PORT`.
        for host in parts.netloc.rpartition("@")[2].split(","):
            if (port := _PORT.search(host)) is not None and not port[1].isdecimal():
                raise StoreUrlWrong(f"{without_password(url)}: `{port[1]}` is no port", _HINT)
        options = parse_qsl(parts.query, keep_blank_values=True)
        schema = dict(options).get("schema", DEFAULT_SCHEMA)
        if not _SCHEMA.fullmatch(schema) or schema.startswith("pg_"):
            message = f"`{schema}` cannot be the schema of a store"
            raise StoreUrlWrong(message, "small letters, digits and `_`, not beginning with `pg_`")
        query = urlencode([(name, value) for name, value in options if name != "schema"])
        return cls(urlunsplit(parts._replace(query=query)), schema, without_password(url))
