"""Jobs for the writer: everything that is written beside appends."""

from collections.abc import Sequence

import apsw
from msgspec.structs import astuple, replace

from noetl.ports.catalog import ApiToken, AuditEntry, CatalogEntry
from noetl.ports.credentials import SealedCredential
from noetl.ports.store import Effects, ExecutionUnknown, InboxMessage, Snapshot
from noetl.stores.checksums import checksum_of_document, checksum_of_snapshot
from noetl.stores.sqlite.queries import WRITE, insert_effects, insert_rows
from noetl.stores.sqlite.reader import (
    find_identity,
    list_credential_rows,
    list_running_versions,
    read_catalog_entry,
)

_CHUNK_BYTES = 1 << 20
_ROW_TABLES = ("timer", "ready", "lease")
_TABLES_OF_EXECUTION = ("event", "start", "inbox", "snapshot", "outbox", *_ROW_TABLES, "execution")


def put_snapshot(connection: apsw.Connection, execution_id: str, snapshot: Snapshot) -> None:
    identity = find_identity(connection, execution_id)
    if identity is None:
        raise ExecutionUnknown(f"there is no execution {execution_id}")
    x, version = identity
    if snapshot.seq > version:
        raise ValueError(f"{execution_id}: a snapshot at {snapshot.seq}, but the version is {version}")
    connection.execute(WRITE["put_snapshot"], (x, *snapshot, checksum_of_snapshot(*snapshot)))
    connection.execute(WRITE["thin_snapshots"], (x,))


def put_rows(connection: apsw.Connection, execution_id: str, version: int, rows: Effects) -> bool:
    identity = find_identity(connection, execution_id)
    if identity is None or identity[1] != version:
        return False
    x = identity[0]
    for table in _ROW_TABLES:
        connection.execute(WRITE[f"delete_{table}"], (x,))
    insert_effects(connection, [(x, replace(rows, outbox={}))])
    connection.execute(WRITE["set_served"], (bool(rows.served), x))
    return True


def put_playbook(connection: apsw.Connection, playbook_hash: str, document: bytes) -> None:
    connection.execute(
        WRITE["put_playbook"], (playbook_hash, document, checksum_of_document(playbook_hash, document))
    )


def put_blob(connection: apsw.Connection, name: str, data: bytes) -> None:
    """Piece by piece: in one statement SQLite would have several copies of it in memory."""
    connection.execute(WRITE["put_blob"], (name, len(data)))
    with connection.blob_open("main", "blob", "data", connection.last_insert_rowid(), writeable=True) as blob:
        for start in range(0, len(data), _CHUNK_BYTES):
            blob.write(data[start : start + _CHUNK_BYTES])


def delete_blobs(connection: apsw.Connection, names: str) -> None:
    connection.execute(WRITE["delete_blobs"], (names,))
    connection.execute("PRAGMA incremental_vacuum").fetchall()


def put_inbox_message(connection: apsw.Connection, execution_id: str, body: bytes) -> InboxMessage:
    number = connection.execute(WRITE["send"], (body, execution_id)).get
    if number is None:
        raise ExecutionUnknown(f"there is no execution {execution_id}")
    return InboxMessage(number, execution_id, body)


def delete_inbox_messages(connection: apsw.Connection, ids: str) -> None:
    connection.execute(WRITE["take"], (ids,))


def delete_outbox_messages(connection: apsw.Connection, ids: str) -> None:
    connection.execute(WRITE["sent"], (ids,))


def delete_execution_rows(connection: apsw.Connection, execution_id: str) -> bool:
    identity = find_identity(connection, execution_id)
    if identity is None:
        return False
    last = connection.execute(WRITE["last_position"]).get
    for table in _TABLES_OF_EXECUTION:
        connection.execute(WRITE[f"delete_{table}"], (identity[0],))
    # The last position must stay taken: a reader of the feed would miss what came there again.
    connection.execute(WRITE["keep_position"], (last,))
    connection.execute(WRITE["forget_positions"], (last,))
    # Gives the free pages back to the file system; it does so row by row, hence `fetchall`.
    connection.execute("PRAGMA incremental_vacuum").fetchall()
    return True


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


def put_catalog_entry(connection: apsw.Connection, entry: CatalogEntry) -> CatalogEntry:
    newest = read_catalog_entry(connection, entry.path, 0)
    if newest is not None and newest.hash == entry.hash:
        return newest
    number = connection.execute(WRITE["next_catalog_number"], (entry.path,)).get
    numbered = replace(entry, version=number)
    connection.execute(WRITE["put_catalog_entry"], astuple(numbered))
    return numbered


def keep_catalog_entries(
    connection: apsw.Connection, path: str, number: int, entries: Sequence[CatalogEntry]
) -> None:
    for entry in entries:
        connection.execute(WRITE["keep_catalog_entry"], astuple(entry))
    connection.execute(WRITE["keep_catalog_number"], (path, number))


def delete_catalog_entries(connection: apsw.Connection, path: str, version: int) -> list[str]:
    running = list_running_versions(connection, path, version)
    if not running:
        connection.execute(WRITE["delete_catalog_entries"], (path, version))
    return running


def put_api_token(connection: apsw.Connection, token: ApiToken) -> bool:
    return bool(connection.execute(WRITE["put_api_token"], token).fetchall())


def revoke_api_token(connection: apsw.Connection, name: str, at: int) -> bool:
    return bool(connection.execute(WRITE["revoke_api_token"], (name, at)).fetchall())


def put_audit(connection: apsw.Connection, entries: Sequence[AuditEntry]) -> None:
    insert_rows(connection, "put_audit", [entry[:-1] for entry in entries])
