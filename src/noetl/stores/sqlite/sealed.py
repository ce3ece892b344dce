"""Credentials as rows, which only who has their key can read."""

from collections.abc import Sequence
from typing import Any

import apsw

from noetl.ports.credentials import Sealed
from noetl.stores.sqlite.queries import READ, WRITE


def credentials(connection: apsw.Connection) -> list[Sealed]:
    rows: list[Any] = connection.execute(READ["credentials"]).fetchall()
    return [Sealed(*row) for row in rows]


def credential(connection: apsw.Connection, name: str) -> Sealed | None:
    found: list[Any] = connection.execute(READ["credential"], (name,)).fetchall()
    return Sealed(*found[0]) if found else None


def put(connection: apsw.Connection, row: Sealed) -> bool:
    return bool(connection.execute(WRITE["put_credential"], row).fetchall())


def delete(connection: apsw.Connection, name: str) -> bool:
    return bool(connection.execute(WRITE["delete_credential"], (name,)).fetchall())


def rewrap(connection: apsw.Connection, before: Sequence[Sealed], after: Sequence[Sealed]) -> bool:
    if credentials(connection) != list(before):
        return False
    for row in after:
        connection.execute(WRITE["rewrap_credential"], (row.name, row.key_id, row.wrapped_key))
    return True
