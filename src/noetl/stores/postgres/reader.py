"""Questions to a connection."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

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
from noetl.stores.postgres.database_connections import Connection
from noetl.stores.postgres.failures import DAMAGED_HINT
from noetl.stores.postgres.queries import READ, number_parameters
from noetl.stores.postgres.stored_text import storable_text, text_as_written
from noetl.stores.sql_files import choose_lines, line_conditions

_NEWEST = (1 << 63) - 1
_LAST_SEQ = (1 << 31) - 1
_PLACES = 24
"""Bits of a position in the feed for the place in its transaction: more rows are not in one statement."""
_FILTERS = line_conditions(READ["executions"])
"""The fields of a query that have a line of their own in the statement."""


class PostgresReader:
    """Reads on one connection. `shift` is that of the schema."""

    def __init__(self, connection: Connection, shift: int = 0) -> None:
        self._connection = connection
        self._shift = shift

    async def rows(self, execution_id: str, after: int, limit: int) -> list[Row]:
        """Raises StoreDamaged if they, or what they were written with, are not what was written."""
        after, until = min(after, _LAST_SEQ), min(after + limit, _LAST_SEQ)
        rows = await self._fetch("rows", execution_id=execution_id, after=after, until=until)
        stored = [*stored_events(rows)]
        before = stored.pop(0) if stored and stored[0].row.seq <= after and stored[0].row.last else None
        checked = before is not None and before.checksum is not None
        fault = next(row_faults(stored, before.row.seq if before else 0, checked=checked), "")
        if fault:
            raise StoreDamaged(f"{execution_id}: {fault}", DAMAGED_HINT)
        return [row for row, _, _ in stored if after < row.seq <= until]

    async def unchecked_appends(self) -> int:
        return int(await self._fetch_value("unchecked_appends") or 0)

    async def feed(self, after: int, limit: int) -> list[FeedEntry]:
        xact, pos = after >> _PLACES, after & (1 << _PLACES) - 1
        rows = await self._fetch("feed", xact=xact, pos=pos, shift=self._shift, limit=limit)
        return [
            FeedEntry(
                row["xact"] << _PLACES | row["pos"],
                row["execution_id"],
                Row(row["seq"], row["ts"], row["kind"], row["v"], row["body"], row["enc"] & 1 == 1),
            )
            for row in rows
        ]

    async def feed_end(self) -> int:
        rows = await self._fetch("feed_end", shift=self._shift)
        return rows[0]["xact"] << _PLACES | rows[0]["pos"] if rows else 0

    async def execution(self, execution_id: str) -> ExecutionRecord | None:
        rows = await self._fetch("execution", execution_id=execution_id)
        return _execution_record(rows[0]) if rows else None

    async def executions(self, query: ExecutionQuery) -> ExecutionPage:
        filters = {name for name in _FILTERS if getattr(query, name)}
        statement = number_parameters(choose_lines(READ["executions"], filters))
        values = {
            **msgspec.structs.asdict(query),
            "before": _cursor_position(query.cursor),
            "status": [*query.status],
            "text": query.text.lower(),
            "labels": [*_label_pieces(query)],
            "limit": query.limit + 1,  # one more than wanted says whether there is a next page
        }
        arguments = [_storable(value) for value in statement.arguments(values)]
        rows = await self._connection.fetch(statement.text, *arguments)
        page_rows = rows[: query.limit]
        has_more = len(rows) > len(page_rows) and page_rows
        return ExecutionPage(
            [_execution_record(row) for row in page_rows], str(page_rows[-1]["x"]) if has_more else ""
        )

    async def ended(self, before: int, limit: int) -> list[str]:
        return [row["id"] for row in await self._fetch("ended", before=before, limit=limit)]

    async def timers(self, until: int | None, limit: int) -> list[Timer]:
        rows = await self._fetch("timers", until=_NEWEST if until is None else until, limit=limit)
        return [Timer(*row) for row in rows]

    async def outbox(self, after: int, limit: int) -> list[OutboxMessage]:
        return [OutboxMessage(*row) for row in await self._fetch("outbox", after=after, limit=limit)]

    async def ready(self, after: int, limit: int) -> list[ReadyRow]:
        rows = await self._fetch("ready", after=after, limit=limit)
        return [ready_row(row) for row in rows]

    async def leases(self) -> list[LeaseRow]:
        return [_lease_row(row) for row in await self._fetch("leases")]

    async def leases_of(self, sessions: Sequence[str]) -> list[LeaseRow]:
        return [_lease_row(row) for row in await self._fetch("leases_of", sessions=[*sessions])]

    async def versions(self, execution_ids: Sequence[str]) -> dict[str, int]:
        rows = await self._fetch("versions", execution_ids=[*execution_ids])
        return {row["id"]: row["version"] for row in rows}

    async def keyed_rows(self, execution_id: str) -> Effects:
        """The rows of one execution that have keys."""
        rows: dict[str, dict[str, Any]] = {}
        for row in await self._fetch("keyed_rows", execution_id=execution_id):
            rows.setdefault(row["place"], {})[row["key"]] = row
        if "served" not in rows:
            return NO_EFFECTS
        return Effects(
            timers={key: row["number"] for key, row in rows.get("timers", {}).items()},
            outbox={key: row["body"] for key, row in rows.get("outbox", {}).items()},
            ready={
                key: _ready_run(row["first"], row["second"], row["number"])
                for key, row in rows.get("ready", {}).items()
            },
            leases={
                key: LeasedRun(row["first"], row["number"]) for key, row in rows.get("leases", {}).items()
            },
            served=bool(rows["served"][""]["number"]),
        )

    async def inbox(self, execution_ids: Sequence[str] | None) -> list[InboxMessage]:
        """Those to these executions, or all if no ids are given."""
        conditions = () if execution_ids is None else ("execution_ids",)
        statement = number_parameters(choose_lines(READ["inbox"], conditions))
        arguments = statement.arguments({"execution_ids": _storable([*(execution_ids or ())])})
        return [InboxMessage(*row) for row in await self._connection.fetch(statement.text, *arguments)]

    async def snapshot(self, execution_id: str, state_format: int, at: int | None) -> Snapshot | None:
        """Not one that is damaged: the one before, or the events, tell the same."""
        newest = _LAST_SEQ if at is None else min(at, _LAST_SEQ)
        rows = await self._fetch("snapshot", execution_id=execution_id, format=state_format, at=newest)
        for seq, form, body, checksum in rows:
            if checksum == checksum_of_snapshot(seq, form, body):
                return Snapshot(seq, form, body)
        return None

    async def playbook(self, playbook_hash: str) -> bytes | None:
        rows = await self._fetch("playbook", hash=playbook_hash)
        if not rows:
            return None
        document: bytes = rows[0]["document"]
        if rows[0]["checksum"] != checksum_of_document(playbook_hash, document):
            raise StoreDamaged(f"the document {playbook_hash} is not what was written", DAMAGED_HINT)
        return document

    async def playbooks(self) -> list[str]:
        return [row["hash"] for row in await self._fetch("playbooks")]

    async def start_key(self, execution_id: str) -> str:
        return str(text_as_written(await self._fetch_value("start_key", execution_id=execution_id) or ""))

    async def blob(self, name: str, start: int, end: int | None) -> bytes | None:
        """Only what holds these bytes is read."""
        start = min(start, _LAST_SEQ - 1)
        length = _LAST_SEQ - start if end is None else max(0, min(end, _LAST_SEQ) - start)
        content: bytes | None = await self._fetch_value("blob", name=name, start=start, length=length)
        return content

    async def blobs(self, prefix: str) -> list[str]:
        return [row["name"] for row in await self._fetch("blobs", prefix=prefix)]

    async def blob_sizes(self, prefix: str) -> list[tuple[str, int]]:
        return [(row["name"], row["size"]) for row in await self._fetch("blob_sizes", prefix=prefix)]

    async def credentials(self) -> list[SealedCredential]:
        return [SealedCredential(*map(text_as_written, row)) for row in await self._fetch("credentials")]

    async def credential(self, name: str) -> SealedCredential | None:
        rows = await self._fetch("credential", name=name)
        return SealedCredential(*map(text_as_written, rows[0])) if rows else None

    async def catalog_entry(self, path: str, version: int, at: int | None = None) -> CatalogEntry | None:
        at = _NEWEST if at is None else at
        rows = await self._fetch("catalog_entry", path=path, version=min(version, _LAST_SEQ), at=at)
        return _catalog_entry(rows[0]) if rows else None

    async def catalog_entries(self, prefix: str, after: str, limit: int) -> CatalogPage:
        rows = await self._fetch("catalog_entries", prefix=prefix, after=after, limit=limit + 1)
        entries = [_catalog_entry(row) for row in rows[:limit]]
        return CatalogPage(entries, entries[-1].path if entries and len(rows) > limit else "")

    async def catalog_versions(self, path: str) -> list[CatalogEntry]:
        return [_catalog_entry(row) for row in await self._fetch("catalog_versions", path=path)]

    async def catalog_numbers(self) -> dict[str, int]:
        return {row["path"]: row["version"] for row in await self._fetch("catalog_numbers")}

    async def running_versions(self, path: str, version: int) -> list[str]:
        """Executions that run one of these versions."""
        return [row["id"] for row in await self._fetch("running_versions", path=path, version=version)]

    async def api_token(self, token_hash: str) -> ApiToken | None:
        rows = await self._fetch("api_token", hash=token_hash)
        return ApiToken(*rows[0]) if rows else None

    async def api_tokens(self) -> list[ApiToken]:
        return [ApiToken(*row) for row in await self._fetch("api_tokens")]

    async def api_token_history(self) -> list[ApiToken]:
        return [ApiToken(*row) for row in await self._fetch("api_token_history")]

    async def audit(self, before: int, limit: int) -> list[AuditEntry]:
        return [
            AuditEntry(*map(text_as_written, row))
            for row in await self._fetch("audit", before=before, limit=limit)
        ]

    async def current(
        self, execution_ids: Sequence[str], start_keys: Sequence[str]
    ) -> tuple[dict[str, int], dict[str, str]]:
        """The versions of these executions, and which ones these keys have started."""
        rows = await self._fetch("current", ids=execution_ids, keys=start_keys)
        versions = {row["id"]: row["version"] for row in rows}
        return versions, {text_as_written(row["start_key"]): row["id"] for row in rows if row["start_key"]}

    async def _fetch(self, name: str, /, **values: Any) -> list[Any]:
        query = number_parameters(READ[name])
        arguments = [_storable(value) for value in query.arguments(values)]
        rows: list[Any] = await self._connection.fetch(query.text, *arguments)
        return rows

    async def _fetch_value(self, name: str, /, **values: Any) -> Any:
        rows = await self._fetch(name, **values)
        return rows[0][0] if rows else None


def stored_events(rows: Iterable[Any]) -> Iterator[StoredRow]:
    return (
        StoredRow(Row(seq, ts, kind, version, body, enc & 1 == 1), enc, checksum)
        for seq, ts, kind, version, body, enc, checksum in rows
    )


def _storable(value: Any) -> Any:
    return [*map(storable_text, value)] if isinstance(value, list) else storable_text(value)


def _label_pieces(query: ExecutionQuery) -> Iterator[str]:
    """What stands in the text of the labels if they are there.

    A comma before a quotation mark that begins a text is nowhere inside of one: there the mark is escaped.
    """
    for name, value in query.labels.items():
        yield f",{msgspec.json.encode(name).decode()}:{msgspec.json.encode(value).decode()}"


def _cursor_position(cursor: str) -> int:
    if not cursor:
        return _NEWEST
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) < 20):
        raise ValueError(f"`{cursor}` is not a cursor")
    return min(int(cursor), _NEWEST)


def _execution_record(row: Any) -> ExecutionRecord:
    names = (name for name in ExecutionRecord.__struct_fields__ if name not in ("execution_id", "labels"))
    labels = msgspec.json.decode(row["labels"])
    return ExecutionRecord(
        execution_id=row["id"], labels=labels, **{name: text_as_written(row[name]) for name in names}
    )


def ready_row(row: Any) -> ReadyRow:
    number, execution_id, key, *run = row
    return ReadyRow(number, execution_id, key, _ready_run(*run))


def _lease_row(row: Any) -> LeaseRow:
    execution_id, key, *run = row
    return LeaseRow(execution_id, key, LeasedRun(*run))


def _ready_run(pool: str, kinds: str, priority: int) -> ReadyRun:
    return ReadyRun(pool, tuple(kinds.split(",")) if kinds else (), priority)


def _catalog_entry(row: Any) -> CatalogEntry:
    return CatalogEntry(**dict(zip(CatalogEntry.__struct_fields__, row, strict=True)))
