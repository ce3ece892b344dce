"""The store that several servers share: a schema of a PostgreSQL database."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import TypeVar

import asyncpg

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
    StoreError,
    StoreSlow,
    Timer,
    Verdict,
)
from noetl.stores.append_rows import validate_append
from noetl.stores.postgres.address import DatabaseAddress
from noetl.stores.postgres.consistency import PostgresCheck
from noetl.stores.postgres.database_connections import Connection, PostgresConnection, PostgresReaders
from noetl.stores.postgres.database_schema import PostgresSchema
from noetl.stores.postgres.doorbell import Doorbell
from noetl.stores.postgres.partitions import EventPartitions
from noetl.stores.postgres.queries import READ
from noetl.stores.postgres.reader import PostgresReader
from noetl.stores.postgres.server_rows import PostgresSharedRows
from noetl.stores.postgres.writer import PostgresWriter

T = TypeVar("T")

READERS = 3
"""Connections for reads of single executions."""
SEARCH_SECONDS = 2.0


class PostgresStore:
    """See `noetl.ports.store.Store`, and `SealedStore` for credentials.

    Connections are opened when they are needed, so an address that is wrong is found by the first call.
    `patience` is for how many seconds a write waits for a database that went away, `search_seconds` how long
    a list may take before StoreSlow.
    """

    def __init__(
        self, address: DatabaseAddress, *, patience: float = 30.0, search_seconds: float = SEARCH_SECONDS
    ) -> None:
        self._label = address.label
        self._schema = schema = PostgresSchema(address)
        self._doorbell = Doorbell(address, schema)
        self._writer = PostgresWriter(
            PostgresConnection(address, schema.prepare),
            schema,
            address.label,
            patience=patience,
            on_written=self._doorbell.ring,
        )
        readers = [PostgresConnection(address, schema.prepare) for _ in range(READERS)]
        self._readers = PostgresReaders(readers, schema.failure)
        limit = {"statement_timeout": f"{max(1, round(search_seconds * 1000))}ms"}
        self._search_seconds = search_seconds
        self._search = PostgresReaders([PostgresConnection(address, schema.prepare, limit)], schema.failure)
        # What looks at everything may take long, and sees one moment of the store.
        no_limit = {"statement_timeout": "0", "idle_in_transaction_session_timeout": "0"}
        self._checks = PostgresReaders(
            [PostgresConnection(address, schema.prepare, no_limit)], schema.failure
        )
        self.shared = PostgresSharedRows(self._writer, self._read)
        self._closed = False

    async def commit(self, appends: Sequence[Append]) -> list[Verdict]:
        for append in appends:
            validate_append(append)
        return await self._writer.commit(appends) if appends else []

    async def read(self, execution_id: str, *, after: int = 0, limit: int = 1_000) -> list[Row]:
        return await self._read(lambda reader: reader.rows(execution_id, after, limit))

    async def feed(self, *, after: int = 0, limit: int = 1_000) -> list[FeedEntry]:
        return await self._read(lambda reader: reader.feed(after, limit))

    async def feed_end(self) -> int:
        return await self._read(lambda reader: reader.feed_end())

    def changes(self) -> AsyncIterator[frozenset[str] | None]:
        return self._doorbell.hear()

    async def execution(self, execution_id: str) -> ExecutionRecord | None:
        return await self._read(lambda reader: reader.execution(execution_id))

    async def start_key(self, execution_id: str) -> str:
        return await self._read(lambda reader: reader.start_key(execution_id))

    async def executions(self, query: ExecutionQuery = EVERYTHING) -> ExecutionPage:
        return await self._list(lambda reader: reader.executions(query))

    async def timers(self, *, until: int | None = None, limit: int = 1_000) -> list[Timer]:
        return await self._read(lambda reader: reader.timers(until, limit))

    async def ready(self, *, after: int = 0, limit: int = 1_000) -> list[ReadyRow]:
        return await self._read(lambda reader: reader.ready(after, limit))

    async def leases(self) -> list[LeaseRow]:
        return await self._read(lambda reader: reader.leases())

    async def rows_of(self, execution_id: str) -> Effects:
        return await self._read(lambda reader: reader.keyed_rows(execution_id))

    async def put_rows(self, execution_id: str, version: int, rows: Effects) -> bool:
        return await self._writer.run_job(lambda jobs: jobs.put_rows(execution_id, version, rows))

    async def outbox(self, *, after: int = 0, limit: int = 1_000) -> list[OutboxMessage]:
        return await self._read(lambda reader: reader.outbox(after, limit))

    async def sent(self, messages: Sequence[OutboxMessage]) -> None:
        await self._writer.run_job(lambda jobs: jobs.sent([message.id for message in messages]))

    async def put_snapshot(self, execution_id: str, snapshot: Snapshot) -> None:
        await self._writer.run_job(lambda jobs: jobs.put_snapshot(execution_id, snapshot))

    async def snapshot(
        self, execution_id: str, *, state_format: int, at: int | None = None
    ) -> Snapshot | None:
        return await self._read(lambda reader: reader.snapshot(execution_id, state_format, at))

    async def put_playbook(self, playbook_hash: str, document: bytes) -> None:
        await self._writer.run_job(lambda jobs: jobs.put_playbook(playbook_hash, document))

    async def playbook(self, playbook_hash: str) -> bytes | None:
        return await self._read(lambda reader: reader.playbook(playbook_hash))

    async def playbooks(self) -> list[str]:
        return await self._read(lambda reader: reader.playbooks())

    async def credentials(self) -> list[SealedCredential]:
        return await self._read(lambda reader: reader.credentials())

    async def credential(self, name: str) -> SealedCredential | None:
        return await self._read(lambda reader: reader.credential(name))

    async def put_credential(self, row: SealedCredential) -> bool:
        return await self._writer.run_job(lambda jobs: jobs.put_credential(row))

    async def delete_credential(self, name: str) -> bool:
        return await self._writer.run_job(lambda jobs: jobs.delete_credential(name))

    async def rewrap_credentials(
        self, before: Sequence[SealedCredential], after: Sequence[SealedCredential]
    ) -> bool:
        return await self._writer.run_job(lambda jobs: jobs.rewrap_credentials(before, after))

    async def put_catalog_entry(self, entry: CatalogEntry) -> CatalogEntry:
        return await self._writer.run_job(lambda jobs: jobs.put_catalog_entry(entry))

    async def catalog_entry(
        self, path: str, version: int = 0, *, at: int | None = None
    ) -> CatalogEntry | None:
        return await self._read(lambda reader: reader.catalog_entry(path, version, at))

    async def catalog_entries(self, *, prefix: str = "", after: str = "", limit: int = 100) -> CatalogPage:
        return await self._list(lambda reader: reader.catalog_entries(prefix, after, limit))

    async def catalog_versions(self, path: str) -> list[CatalogEntry]:
        return await self._read(lambda reader: reader.catalog_versions(path))

    async def catalog_numbers(self) -> dict[str, int]:
        return await self._read(lambda reader: reader.catalog_numbers())

    async def keep_catalog_entries(self, path: str, number: int, entries: Sequence[CatalogEntry]) -> None:
        await self._writer.run_job(lambda jobs: jobs.keep_catalog_entries(path, number, entries))

    async def delete_catalog_entries(self, path: str, version: int = 0) -> list[str]:
        return await self._writer.run_job(lambda jobs: jobs.delete_catalog_entries(path, version))

    async def put_api_token(self, token: ApiToken) -> bool:
        return await self._writer.run_job(lambda jobs: jobs.put_api_token(token))

    async def api_token(self, token_hash: str) -> ApiToken | None:
        return await self._read(lambda reader: reader.api_token(token_hash))

    async def api_tokens(self) -> list[ApiToken]:
        return await self._read(lambda reader: reader.api_tokens())

    async def api_token_history(self) -> list[ApiToken]:
        return await self._read(lambda reader: reader.api_token_history())

    async def revoke_api_token(self, name: str, at: int) -> bool:
        return await self._writer.run_job(lambda jobs: jobs.revoke_api_token(name, at))

    async def put_audit(self, entries: Sequence[AuditEntry]) -> None:
        await self._writer.run_job(lambda jobs: jobs.put_audit(entries))

    async def audit(self, *, before: int = 0, limit: int = 100) -> list[AuditEntry]:
        return await self._list(lambda reader: reader.audit(before, limit))

    async def put_blob(self, name: str, data: bytes) -> None:
        await self._writer.run_job(lambda jobs: jobs.put_blob(name, data))

    async def blob(self, name: str, start: int = 0, end: int | None = None) -> bytes | None:
        return await self._read(lambda reader: reader.blob(name, start, end))

    async def blobs(self, prefix: str) -> list[str]:
        return await self._read(lambda reader: reader.blobs(prefix))

    async def blob_sizes(self, prefix: str) -> list[tuple[str, int]]:
        return await self._read(lambda reader: reader.blob_sizes(prefix))

    async def delete_blobs(self, names: Sequence[str]) -> None:
        await self._writer.run_job(lambda jobs: jobs.delete_blobs(names))

    async def send(self, execution_id: str, body: bytes) -> InboxMessage:
        return await self._writer.run_job(lambda jobs: jobs.send(execution_id, body))

    async def inbox(self, execution_ids: Sequence[str] | None) -> list[InboxMessage]:
        return await self._read(lambda reader: reader.inbox(execution_ids))

    async def take(self, messages: Sequence[InboxMessage]) -> None:
        await self._writer.run_job(lambda jobs: jobs.take([message.id for message in messages]))

    async def delete(self, execution_id: str) -> bool:
        return await self._writer.run_job(lambda jobs: jobs.delete_execution(execution_id))

    async def ended(self, *, before: int, limit: int = 100) -> list[str]:
        return await self._read(lambda reader: reader.ended(before, limit))

    async def check(self, derive: Derive | None = None) -> list[Inconsistency]:
        self._raise_if_closed()

        async def look(connection: Connection) -> list[Inconsistency]:
            async with connection.transaction(isolation="repeatable_read", readonly=True):
                return await PostgresCheck(connection).find(derive)

        return await self._checks.ask(look)

    async def unchecked_appends(self) -> int:
        return await self._read(lambda reader: reader.unchecked_appends())

    async def rebuild(self, derive: Derive) -> int:
        self._raise_if_closed()
        count = 0
        for execution_id in await self._checks.ask(
            lambda connection: PostgresCheck(connection).execution_ids()
        ):
            count += await self._writer.run_job(
                lambda jobs: PostgresCheck(jobs.connection).rebuild(execution_id, derive)  # noqa: B023 - awaited at once
            )
        return count

    async def reclaim(self) -> int:
        """Of the weeks in which no execution is left: how many partitions went."""
        self._raise_if_closed()

        async def drop(connection: Connection) -> int:
            return await EventPartitions(connection).drop_unused(await connection.fetchval(READ["clock"]))

        return await self._checks.ask(drop)

    @property
    def queued_bytes(self) -> int:
        """What waits to be written, roughly: a server refuses new work before callers must wait."""
        return self._writer.queued_bytes

    @property
    def repeated_commits(self) -> int:
        """Commits that were asked again because of a deadlock or the like."""
        return self._writer.repeated

    async def close(self) -> None:
        self._closed = True
        await self._writer.close()
        await self._doorbell.close()
        for readers in (self._readers, self._search, self._checks):
            await readers.close()

    async def _read(self, read: Callable[[PostgresReader], Awaitable[T]]) -> T:
        self._raise_if_closed()
        return await self._readers.ask(
            lambda connection: read(PostgresReader(connection, self._schema.shift))
        )

    async def _list(self, read: Callable[[PostgresReader], Awaitable[T]]) -> T:
        self._raise_if_closed()
        try:
            # Whoever waits for his turn waits no longer than for an answer.
            async with asyncio.timeout(self._search_seconds + SEARCH_SECONDS):
                return await self._search.ask(
                    lambda connection: read(PostgresReader(connection, self._schema.shift))
                )
        except (TimeoutError, StoreError) as error:
            if isinstance(error, TimeoutError) or isinstance(error.__cause__, asyncpg.QueryCanceledError):
                message = f"the search took longer than {self._search_seconds:g} s and was given up"
                hint = "narrow it: a path, a status, or a shorter time (since, until)"
                raise StoreSlow(message, hint) from None
            raise

    def _raise_if_closed(self) -> None:
        if self._closed:
            raise StoreClosed(f"{self._label} is closed")
