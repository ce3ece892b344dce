"""The embedded store: one SQLite file, or memory."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

import apsw

from noetl.ports.catalog import ApiToken, AuditEntry, CatalogEntry, CatalogPage
from noetl.ports.credentials import SealedCredential
from noetl.ports.store import (
    EVERYTHING,
    Append,
    Derive,
    Effects,
    ExecutionPage,
    ExecutionQuery,
    ExecutionRecord,
    FeedEntry,
    InboxMessage,
    Inconsistency,
    LeaseRow,
    OutboxMessage,
    ReadyRow,
    Row,
    Snapshot,
    StoreClosed,
    Timer,
    Verdict,
)
from noetl.stores.append_rows import validate_append
from noetl.stores.sqlite import consistency, reader, write_jobs
from noetl.stores.sqlite.connection import (
    MEMORY,
    ErrorTranslation,
    ReadOnlyConnection,
    may_write_file,
    open_reader,
    open_writer,
)
from noetl.stores.sqlite.queries import json_text
from noetl.stores.sqlite.search_thread import SEARCH_SECONDS, SearchThread
from noetl.stores.sqlite.writer import Inline, SqliteWriter

P = ParamSpec("P")
T = TypeVar("T")

POLL_SECONDS = 0.05
"""How often `changes` looks at a counter in shared memory: 6 µs each time."""
IDLE_POLL_SECONDS = 0.2
"""The same after a while in which nothing came."""


class SqliteStore:
    """See `noetl.ports.store.Store`, and `SealedStore` for credentials. Make one with `at` or `in_memory`.

    Reads are answered in the loop's own thread: they take no locks, and their number of rows is limited. Of a
    server, lists have a thread of their own.
    """

    def __init__(
        self,
        filename: str,
        *,
        inline: Inline,
        patience: float,
        max_pages: int = 0,
        read_only: ReadOnlyConnection | None = None,
        search_seconds: float = SEARCH_SECONDS,
    ) -> None:
        connection = read_only.connection if read_only else open_writer(filename)
        if max_pages:
            connection.pragma("max_page_count", max_pages)
        self._filename = filename
        self._read_only = read_only
        # Memory has one connection: another would open another database.
        self._reader = connection if read_only or filename == MEMORY else open_reader(filename)
        self._writer = SqliteWriter(connection, filename, inline=inline, patience=patience)
        # Where the loop must not stand still, what may read many rows is read elsewhere.
        self._search = (
            SearchThread(filename, search_seconds) if inline in ("nothing", "quick commits") else None
        )
        self._closed = False

    @classmethod
    def at(
        cls,
        path: Path,
        *,
        inline: Inline = "commits",
        patience: float = 30.0,
        max_pages: int = 0,
        search_seconds: float = SEARCH_SECONDS,
    ) -> "SqliteStore":
        """The store in this file, made if there is none; its folder must exist.

        A server, whose loop must not stand still, says `inline="quick commits"`. `patience` is how many
        seconds another process may hold the file before StoreBusy, `search_seconds` how long a list may take
        there before StoreSlow. `max_pages`, of 8 KiB, limits its size.
        Raises StoreUnusable, StoreBusy.
        """
        return cls(
            str(path), inline=inline, patience=patience, max_pages=max_pages, search_seconds=search_seconds
        )

    @classmethod
    def to_read(cls, path: Path) -> "SqliteStore":
        """The store in this file, which must be there, also where it may not be written.

        There, whatever writes raises StoreUnusable. Raises StoreUnusable, StoreBusy.
        """
        filename = str(path)
        if may_write_file(filename):
            return cls.at(path)
        return cls(filename, inline="everything", patience=0, read_only=ReadOnlyConnection(filename))

    @classmethod
    def in_memory(cls, *, max_pages: int = 0) -> "SqliteStore":
        """A store of its own that ends with this object."""
        return cls(MEMORY, inline="everything", patience=0, max_pages=max_pages)

    async def commit(self, appends: Sequence[Append]) -> list[Verdict]:
        for append in appends:
            validate_append(append)
        return await self._writer.commit(appends) if appends else []

    async def read(self, execution_id: str, *, after: int = 0, limit: int = 1_000) -> list[Row]:
        return self._query(reader.read_rows, execution_id, after, limit)

    async def feed(self, *, after: int = 0, limit: int = 1_000) -> list[FeedEntry]:
        return self._query(reader.read_feed, after, limit)

    async def feed_end(self) -> int:
        return self._query(reader.read_feed_end)

    async def changes(self) -> AsyncIterator[None]:
        last_version, wait = None, POLL_SECONDS
        while not self._closed:
            # Polled, because SQLite tells no other process of a commit.
            if (version := self._query(apsw.Connection.pragma, "data_version")) != last_version:
                last_version, wait = version, POLL_SECONDS
                yield
            await asyncio.sleep(wait)
            # The longer nothing comes, the seldomer it is asked: else this is what an idle server does most.
            wait = min(wait * 1.1, IDLE_POLL_SECONDS)

    async def execution(self, execution_id: str) -> ExecutionRecord | None:
        return self._query(reader.read_execution, execution_id)

    async def start_key(self, execution_id: str) -> str:
        return self._query(reader.read_start_key, execution_id)

    async def executions(self, query: ExecutionQuery = EVERYTHING) -> ExecutionPage:
        return await self._list(reader.list_executions, query)

    async def timers(self, *, until: int | None = None, limit: int = 1_000) -> list[Timer]:
        return self._query(reader.list_timers, until, limit)

    async def ready(self, *, after: int = 0, limit: int = 1_000) -> list[ReadyRow]:
        return self._query(reader.list_ready, after, limit)

    async def leases(self) -> list[LeaseRow]:
        return self._query(reader.list_leases)

    async def rows_of(self, execution_id: str) -> Effects:
        return self._query(reader.read_keyed_rows, execution_id)

    async def put_rows(self, execution_id: str, version: int, rows: Effects) -> bool:
        return await self._writer.run_job(
            lambda connection: write_jobs.put_rows(connection, execution_id, version, rows)
        )

    async def outbox(self, *, after: int = 0, limit: int = 1_000) -> list[OutboxMessage]:
        return self._query(reader.list_outbox, after, limit)

    async def sent(self, messages: Sequence[OutboxMessage]) -> None:
        ids = json_text([message.id for message in messages])
        await self._writer.run_job(lambda connection: write_jobs.delete_outbox_messages(connection, ids))

    async def put_snapshot(self, execution_id: str, snapshot: Snapshot) -> None:
        await self._writer.run_job(
            lambda connection: write_jobs.put_snapshot(connection, execution_id, snapshot)
        )

    async def snapshot(
        self, execution_id: str, *, state_format: int, at: int | None = None
    ) -> Snapshot | None:
        return self._query(reader.read_snapshot, execution_id, state_format, at)

    async def put_playbook(self, playbook_hash: str, document: bytes) -> None:
        await self._writer.run_job(
            lambda connection: write_jobs.put_playbook(connection, playbook_hash, document)
        )

    async def playbook(self, playbook_hash: str) -> bytes | None:
        return self._query(reader.read_playbook_document, playbook_hash)

    async def playbooks(self) -> list[str]:
        return self._query(reader.list_playbook_hashes)

    async def credentials(self) -> list[SealedCredential]:
        return self._query(reader.list_credential_rows)

    async def credential(self, name: str) -> SealedCredential | None:
        return self._query(reader.read_credential_row, name)

    async def put_credential(self, row: SealedCredential) -> bool:
        return await self._writer.run_job(lambda connection: write_jobs.put_credential_row(connection, row))

    async def delete_credential(self, name: str) -> bool:
        return await self._writer.run_job(
            lambda connection: write_jobs.delete_credential_row(connection, name)
        )

    async def rewrap_credentials(
        self, before: Sequence[SealedCredential], after: Sequence[SealedCredential]
    ) -> bool:
        return await self._writer.run_job(
            lambda connection: write_jobs.rewrap_credential_rows(connection, before, after)
        )

    async def put_catalog_entry(self, entry: CatalogEntry) -> CatalogEntry:
        return await self._writer.run_job(lambda connection: write_jobs.put_catalog_entry(connection, entry))

    async def catalog_entry(
        self, path: str, version: int = 0, *, at: int | None = None
    ) -> CatalogEntry | None:
        return self._query(reader.read_catalog_entry, path, version, at)

    async def catalog_entries(self, *, prefix: str = "", after: str = "", limit: int = 100) -> CatalogPage:
        return await self._list(reader.list_catalog_entries, prefix, after, limit)

    async def catalog_versions(self, path: str) -> list[CatalogEntry]:
        return self._query(reader.list_catalog_versions, path)

    async def catalog_numbers(self) -> dict[str, int]:
        return self._query(reader.list_catalog_numbers)

    async def keep_catalog_entries(self, path: str, number: int, entries: Sequence[CatalogEntry]) -> None:
        await self._writer.run_job(
            lambda connection: write_jobs.keep_catalog_entries(connection, path, number, entries)
        )

    async def delete_catalog_entries(self, path: str, version: int = 0) -> list[str]:
        return await self._writer.run_job(
            lambda connection: write_jobs.delete_catalog_entries(connection, path, version)
        )

    async def put_api_token(self, token: ApiToken) -> bool:
        return await self._writer.run_job(lambda connection: write_jobs.put_api_token(connection, token))

    async def api_token(self, token_hash: str) -> ApiToken | None:
        return self._query(reader.read_api_token, token_hash)

    async def api_tokens(self) -> list[ApiToken]:
        return self._query(reader.list_api_tokens)

    async def api_token_history(self) -> list[ApiToken]:
        return self._query(reader.list_all_api_tokens)

    async def revoke_api_token(self, name: str, at: int) -> bool:
        return await self._writer.run_job(
            lambda connection: write_jobs.revoke_api_token(connection, name, at)
        )

    async def put_audit(self, entries: Sequence[AuditEntry]) -> None:
        await self._writer.run_job(lambda connection: write_jobs.put_audit(connection, entries))

    async def audit(self, *, before: int = 0, limit: int = 100) -> list[AuditEntry]:
        return await self._list(reader.list_audit, before, limit)

    async def put_blob(self, name: str, data: bytes) -> None:
        await self._writer.run_job(lambda connection: write_jobs.put_blob(connection, name, data))

    async def blob(self, name: str, start: int = 0, end: int | None = None) -> bytes | None:
        return self._query(reader.read_blob, name, start, end)

    async def blobs(self, prefix: str) -> list[str]:
        return self._query(reader.list_blobs, prefix)

    async def blob_sizes(self, prefix: str) -> list[tuple[str, int]]:
        return self._query(reader.list_blob_sizes, prefix)

    async def delete_blobs(self, names: Sequence[str]) -> None:
        names_json = json_text(names)
        await self._writer.run_job(lambda connection: write_jobs.delete_blobs(connection, names_json))

    async def send(self, execution_id: str, body: bytes) -> InboxMessage:
        return await self._writer.run_job(
            lambda connection: write_jobs.put_inbox_message(connection, execution_id, body)
        )

    async def inbox(self, execution_ids: Sequence[str] | None) -> list[InboxMessage]:
        return self._query(reader.list_inbox, execution_ids)

    async def take(self, messages: Sequence[InboxMessage]) -> None:
        ids = json_text([message.id for message in messages])
        await self._writer.run_job(lambda connection: write_jobs.delete_inbox_messages(connection, ids))

    async def delete(self, execution_id: str) -> bool:
        return await self._writer.run_job(
            lambda connection: write_jobs.delete_execution_rows(connection, execution_id)
        )

    async def ended(self, *, before: int, limit: int = 100) -> list[str]:
        return self._query(reader.list_ended, before, limit)

    async def reclaim(self) -> int:
        self._raise_if_closed()
        return 0  # to delete gives the pages back

    async def check(self, derive: Derive | None = None) -> list[Inconsistency]:
        self._raise_if_closed()
        if self._filename == MEMORY:
            return consistency.check_consistency(self._reader, derive)
        return await asyncio.to_thread(self._check_in_thread, derive)

    def _check_in_thread(self, derive: Derive | None) -> list[Inconsistency]:
        # A connection of its own: reads of the loop go on beside it, and it sees one moment of the store.
        read_only = ReadOnlyConnection(self._filename) if self._read_only else None
        connection = read_only.connection if read_only else open_reader(self._filename)
        try:
            with ErrorTranslation(self._filename):
                inconsistencies = consistency.check_consistency(connection, derive)
            if read_only:
                read_only.check()
            return inconsistencies
        finally:
            connection.close()

    async def unchecked_appends(self) -> int:
        return self._query(reader.count_unchecked_appends)

    async def rebuild(self, derive: Derive) -> int:
        count = 0
        for execution_id in self._query(consistency.list_execution_ids):
            count += await self._writer.run_job(
                partial(consistency.rebuild_execution, execution_id=execution_id, derive=derive)
            )
        return count

    @property
    def queued_bytes(self) -> int:
        """What waits to be written, roughly: a server refuses new work before callers must wait."""
        return self._writer.queued_bytes

    async def close(self) -> None:
        self._closed = True
        if self._search is not None:
            await self._search.close()
        await self._writer.close()
        self._reader.close()

    async def _list(
        self, read: Callable[Concatenate[apsw.Connection, P], T], *args: P.args, **named: P.kwargs
    ) -> T:
        if self._search is None:
            return self._query(read, *args, **named)
        self._raise_if_closed()
        return await self._search.ask(read, *args, **named)

    def _query(
        self, read: Callable[Concatenate[apsw.Connection, P], T], *args: P.args, **named: P.kwargs
    ) -> T:
        self._raise_if_closed()
        try:
            with ErrorTranslation(self._filename):
                return read(self._reader, *args, **named)
        finally:
            # Also when it failed: what is half old and half new looks like damage.
            if self._read_only:
                self._read_only.check()

    def _raise_if_closed(self) -> None:
        if self._closed:
            raise StoreClosed(f"{self._filename} is closed")
