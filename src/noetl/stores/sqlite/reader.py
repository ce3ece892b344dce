"""Questions to a connection. Each exhausts its cursor, so that no old state is held."""

import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import apsw
import msgspec

from noetl.model.run_rows import LeasedRun, ReadyRun
from noetl.ports.catalog import ApiToken, AuditEntry, CatalogEntry, CatalogPage
from noetl.ports.credentials import SealedCredential
from noetl.ports.store import (
    NO_EFFECTS,
    Effects,
    ExecutionPage,
    ExecutionQuery,
    ExecutionRecord,
    FeedEntry,
    InboxMessage,
    LeaseRow,
    OutboxMessage,
    ReadyRow,
    Row,
    Snapshot,
    StoreDamaged,
    Timer,
)
from noetl.stores.checksums import StoredRow, checksum_of_document, checksum_of_snapshot, row_faults
from noetl.stores.sql_files import choose_lines, line_conditions
from noetl.stores.sqlite.queries import READ, json_text

DAMAGED_HINT = "restore the store from a copy; `noetl store check` says what else is wrong"
_NEWEST = (1 << 63) - 1
_FILTERS = line_conditions(READ["executions"])
"""The fields of a query that have a line of their own in the statement."""


def read_rows(connection: apsw.Connection, execution_id: str, after: int, limit: int) -> list[Row]:
    """Raises StoreDamaged if they, or what they were written with, are not what was written."""
    until = min(after + limit, _NEWEST)
    bindings = {"execution_id": execution_id, "after": after, "until": until, "newest": _NEWEST}
    try:
        stored = [*stored_rows(connection.execute(READ["rows"], bindings))]
        before = stored.pop(0) if stored and stored[0].row.seq <= after and stored[0].row.last else None
        checked = before is not None and before.checksum is not None
        fault = next(row_faults(stored, before.row.seq if before else 0, checked=checked), "")
    except (TypeError, struct.error):  # SQLite does not look whether a column still holds what it should
        fault = f"an event after {after} has columns of other types than were written"
    if fault:
        raise StoreDamaged(f"{execution_id}: {fault}", DAMAGED_HINT)
    return [row for row, _, _ in stored if after < row.seq <= until]


def stored_rows(rows: Iterable[Any]) -> Iterator[StoredRow]:
    return (
        StoredRow(Row(seq, ts, kind, version, body, enc & 1 == 1), enc, checksum)
        for seq, ts, kind, version, body, enc, checksum in rows
    )


def count_unchecked_appends(connection: apsw.Connection) -> int:
    count: int = connection.execute(READ["unchecked_appends"]).get
    return count


def read_feed(connection: apsw.Connection, after: int, limit: int) -> list[FeedEntry]:
    return [
        FeedEntry(pos, execution_id, Row(seq, ts, kind, version, body, enc & 1 == 1))
        for pos, execution_id, seq, ts, kind, version, body, enc in connection.execute(
            READ["feed"], (after, limit)
        )
    ]


def read_feed_end(connection: apsw.Connection) -> int:
    position: int = connection.execute(READ["feed_end"]).get
    return position


def read_execution(connection: apsw.Connection, execution_id: str) -> ExecutionRecord | None:
    row = _first_row(connection, "execution", execution_id)
    return _execution_record(row) if row else None


def list_executions(connection: apsw.Connection, query: ExecutionQuery) -> ExecutionPage:
    filters = {name for name in _FILTERS if getattr(query, name)}
    bindings: dict[str, Any] = {
        "execution_id": query.execution_id,
        "before": _cursor_position(query.cursor),
        "status": json_text(query.status),
        "path": query.path,
        "parent": query.parent,
        "since": query.since,
        "until": query.until,
        "playbook": query.playbook,
        "error_kind": query.error_kind,
        "text": query.text.lower(),
        "labels": json_text(query.labels),
        "limit": query.limit + 1,  # one more than wanted says whether there is a next page
    }
    rows = [*connection.execute(choose_lines(READ["executions"], filters), bindings)]
    page_rows = rows[: query.limit]
    has_more = len(rows) > len(page_rows) and page_rows
    return ExecutionPage(
        [_execution_record(row) for row in page_rows], str(page_rows[-1][0]) if has_more else ""
    )


def list_ended(connection: apsw.Connection, before: int, limit: int) -> list[str]:
    return [execution_id for (execution_id,) in connection.execute(READ["ended"], (before, limit))]


def _cursor_position(cursor: str) -> int:
    if not cursor:
        return _NEWEST
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) < 20):
        raise ValueError(f"`{cursor}` is not a cursor")
    return min(int(cursor), _NEWEST)


def _execution_record(row: tuple[Any, ...]) -> ExecutionRecord:
    columns = dict(zip(ExecutionRecord.__struct_fields__, row[1:], strict=True))
    labels, served = msgspec.json.decode(columns["labels"]), bool(columns["served"])
    return ExecutionRecord(**{**columns, "labels": labels, "served": served})


def list_timers(connection: apsw.Connection, until: int | None, limit: int) -> list[Timer]:
    bindings = (_NEWEST if until is None else until, limit)
    return [Timer(*row) for row in connection.execute(READ["timers"], bindings)]


def list_outbox(connection: apsw.Connection, after: int, limit: int) -> list[OutboxMessage]:
    return [OutboxMessage(*row) for row in connection.execute(READ["outbox"], (after, limit))]


def list_ready(connection: apsw.Connection, after: int, limit: int) -> list[ReadyRow]:
    rows = connection.execute(READ["ready"], (after, limit))
    return [ReadyRow(number, execution_id, key, _ready_run(*run)) for number, execution_id, key, *run in rows]


def list_leases(connection: apsw.Connection) -> list[LeaseRow]:
    rows = connection.execute(READ["leases"])
    return [LeaseRow(execution_id, key, LeasedRun(*run)) for execution_id, key, *run in rows]


def read_keyed_rows(connection: apsw.Connection, execution_id: str) -> Effects:
    """The rows of one execution that have keys."""
    identity = find_identity(connection, execution_id)
    if identity is None:
        return NO_EFFECTS
    bindings = (identity[0],)
    return Effects(
        timers=dict(connection.execute(READ["timers_of"], bindings)),
        outbox=dict(connection.execute(READ["messages_of"], bindings)),
        ready={key: _ready_run(*run) for key, *run in connection.execute(READ["ready_of"], bindings)},
        leases={key: LeasedRun(*run) for key, *run in connection.execute(READ["leases_of"], bindings)},
        served=bool(connection.execute(READ["served"], bindings).get),
    )


def _ready_run(pool: str, kinds: str, priority: int) -> ReadyRun:
    return ReadyRun(pool, tuple(kinds.split(",")) if kinds else (), priority)


def list_inbox(connection: apsw.Connection, execution_ids: Sequence[str] | None) -> list[InboxMessage]:
    """Those to these executions, or all if no ids are given."""
    # It is asked for all executions of a process whenever anything was written, and nearly always there is
    # nothing: to look each of them up would cost the more, the more there are.
    if not connection.execute(READ["has_inbox"]).get:
        return []
    if execution_ids is None:
        return [InboxMessage(*row) for row in connection.execute(READ["whole_inbox"])]
    return [InboxMessage(*row) for row in connection.execute(READ["inbox"], (json_text(execution_ids),))]


def read_snapshot(
    connection: apsw.Connection, execution_id: str, form: int, at: int | None
) -> Snapshot | None:
    """Not one that is damaged: the one before, or the events, tell the same."""
    bindings = (execution_id, form, _NEWEST if at is None else at)
    rows: list[Any] = connection.execute(READ["snapshot"], bindings).fetchall()
    for seq, state_format, body, checksum in rows:
        if checksum == checksum_of_snapshot(seq, state_format, body):
            return Snapshot(seq, state_format, body)
    return None


def read_playbook_document(connection: apsw.Connection, playbook_hash: str) -> bytes | None:
    row = _first_row(connection, "playbook", playbook_hash)
    if row is None:
        return None
    document, checksum = row
    if checksum not in (None, checksum_of_document(playbook_hash, document)):
        raise StoreDamaged(f"the document {playbook_hash} is not what was written", DAMAGED_HINT)
    content: bytes = document
    return content


def read_blob(connection: apsw.Connection, name: str, start: int, end: int | None) -> bytes | None:
    """Only the pages that hold these bytes are read."""
    # In one transaction: else the row could be replaced between finding it and opening it.
    content: bytes | None = None
    with connection:
        if row := _first_row(connection, "blob", name):
            with connection.blob_open("main", "blob", "data", row[0], writeable=False) as data:
                start = min(start, data.length())
                data.seek(start)
                available = data.length() - start
                content = data.read(available if end is None else max(0, min(end - start, available)))
    return content


def list_playbook_hashes(connection: apsw.Connection) -> list[str]:
    return [name for (name,) in connection.execute(READ["playbooks"])]


def read_start_key(connection: apsw.Connection, execution_id: str) -> str:
    key: str | None = connection.execute(READ["start_key"], (execution_id,)).get
    return key or ""


def list_blobs(connection: apsw.Connection, prefix: str) -> list[str]:
    return [name for (name,) in connection.execute(READ["blobs"], (prefix, prefix + "\U0010ffff"))]


def list_blob_sizes(connection: apsw.Connection, prefix: str) -> list[tuple[str, int]]:
    rows: list[Any] = connection.execute(READ["blob_sizes"], (prefix, prefix + "\U0010ffff")).fetchall()
    return rows


def list_credential_rows(connection: apsw.Connection) -> list[SealedCredential]:
    rows: list[Any] = connection.execute(READ["credentials"]).fetchall()
    return [SealedCredential(*row) for row in rows]


def read_credential_row(connection: apsw.Connection, name: str) -> SealedCredential | None:
    rows: list[Any] = connection.execute(READ["credential"], (name,)).fetchall()
    return SealedCredential(*rows[0]) if rows else None


def read_catalog_entry(
    connection: apsw.Connection, path: str, version: int, at: int | None = None
) -> CatalogEntry | None:
    if version:
        row = _first_row(connection, "catalog_entry", path, version)
    elif at is None:  # what each start asks: by the index, however many versions there are
        row = _first_row(connection, "newest_catalog_entry", path)
    else:
        row = _first_row(connection, "catalog_entry_at", path, at)
    return _catalog_entry(row) if row else None


def list_catalog_entries(connection: apsw.Connection, prefix: str, after: str, limit: int) -> CatalogPage:
    rows: list[Any] = connection.execute(READ["catalog_entries"], (after, prefix, limit + 1)).fetchall()
    entries = [_catalog_entry(row) for row in rows[:limit]]
    return CatalogPage(entries, entries[-1].path if entries and len(rows) > limit else "")


def list_catalog_versions(connection: apsw.Connection, path: str) -> list[CatalogEntry]:
    rows: list[Any] = connection.execute(READ["catalog_versions"], (path,)).fetchall()
    return [_catalog_entry(row) for row in rows]


def list_running_versions(connection: apsw.Connection, path: str, version: int) -> list[str]:
    """Executions that run one of these versions."""
    return [execution_id for (execution_id,) in connection.execute(READ["running_versions"], (path, version))]


def _catalog_entry(row: tuple[Any, ...]) -> CatalogEntry:
    return CatalogEntry(**dict(zip(CatalogEntry.__struct_fields__, row, strict=True)))


def read_api_token(connection: apsw.Connection, token_hash: str) -> ApiToken | None:
    row = _first_row(connection, "api_token", token_hash)
    return ApiToken(*row) if row else None


def list_api_tokens(connection: apsw.Connection) -> list[ApiToken]:
    rows: list[Any] = connection.execute(READ["api_tokens"]).fetchall()
    return [ApiToken(*row) for row in rows]


def list_all_api_tokens(connection: apsw.Connection) -> list[ApiToken]:
    rows: list[Any] = connection.execute(READ["api_token_history"]).fetchall()
    return [ApiToken(*row) for row in rows]


def list_catalog_numbers(connection: apsw.Connection) -> dict[str, int]:
    numbers: list[Any] = connection.execute(READ["catalog_numbers"]).fetchall()
    return dict(numbers)


def list_audit(connection: apsw.Connection, before: int, limit: int) -> list[AuditEntry]:
    rows: list[Any] = connection.execute(READ["audit"], (before, limit)).fetchall()
    return [AuditEntry(*row) for row in rows]


def find_identity(connection: apsw.Connection, execution_id: str) -> tuple[int, int] | None:
    """The number and the version of an execution."""
    identity: tuple[int, int] | None = _first_row(connection, "identity", execution_id)
    return identity


def _first_row(connection: apsw.Connection, name: str, *bindings: str | int) -> Any:
    rows = connection.execute(READ[name], bindings).fetchall()
    return rows[0] if rows else None
