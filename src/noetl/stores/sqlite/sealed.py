"""Credentials as rows, which only who has their key can read."""

from collections.abc import Sequence
from typing import Any

import apsw

from noetl.ports.credentials import SealedCredential
from noetl.stores.sqlite.queries import READ, WRITE


def list_credential_rows(connection: apsw.Connection) -> list[SealedCredential]:
    rows: list[Any] = connection.execute(READ["credentials"]).fetchall()
    return [SealedCredential(*row) for row in rows]


def read_credential_row(connection: apsw.Connection, name: str) -> SealedCredential | None:
    found: list[Any] = connection.execute(READ["credential"], (name,)).fetchall()
    return SealedCredential(*found[0]) if found else None


def put_credential_row(connection: apsw.Connection, row: SealedCredential) -> bool:
    return bool(connection.execute(WRITE["put_credential"], row).fetchall())


def delete_credential_row(connection: apsw.Connection, name: str) -> bool:
    return bool(connection.execute(WRITE["delete_credential"], (name,)).fetchall())


def rewrap_credential_rows(
    connection: apsw.Connection, before: Sequence[SealedCredential], after: Sequence[SealedCredential]
) -> bool:
    if list_credential_rows(connection) != list(before):
        return False
    for row in after:
        connection.execute(WRITE["rewrap_credential"], (row.name, row.key_id, row.wrapped_key))
    return True
