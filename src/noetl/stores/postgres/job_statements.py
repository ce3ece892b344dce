"""Everything that is written beside appends. Each job is a transaction of its own."""

from collections.abc import Sequence
from typing import Any

from msgspec.structs import asdict, replace

from noetl.ports.catalog import ApiToken, AuditEntry, CatalogEntry
from noetl.ports.credentials import SealedCredential
from noetl.ports.store import FACTS, Effects, ExecutionUnknown, InboxMessage, Snapshot
from noetl.stores.append_rows import KEYED_COLUMNS, full_fact_columns
from noetl.stores.checksums import checksum_of_document, checksum_of_snapshot
from noetl.stores.postgres.database_connections import Connection
from noetl.stores.postgres.queries import WRITE, number_parameters
from noetl.stores.postgres.reader import PostgresReader
from noetl.stores.postgres.stored_text import storable_text

_ROW_TABLES = ("timer", "ready", "lease")
_TABLES_OF_EXECUTION = ("event", "inbox", "snapshot", "outbox", *_ROW_TABLES, "execution")
_PUT_COLUMNS = {
    "timers": ("keys", "due"),
    "outbox": ("keys", "bodies"),
    "ready": ("keys", "pools", "kinds", "priorities"),
    "leases": ("keys", "sessions", "fences"),
}


class PostgresJobs:
    """Writes on one connection, inside of a transaction."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._reader = PostgresReader(connection)

    async def put_snapshot(self, execution_id: str, snapshot: Snapshot) -> None:
        version = await self._lock(execution_id)
        if version is None:
            raise ExecutionUnknown(f"there is no execution {execution_id}")
        if snapshot.seq > version:
            raise ValueError(f"{execution_id}: a snapshot at {snapshot.seq}, but the version is {version}")
        checksum = checksum_of_snapshot(*snapshot)
        await self.run("put_snapshot", execution_id=execution_id, checksum=checksum, **snapshot._asdict())
        await self.run("thin_snapshots", execution_id=execution_id)

    async def put_rows(self, execution_id: str, version: int, rows: Effects) -> bool:
        if await self._lock(execution_id) != version:
            return False
        for table in _ROW_TABLES:
            await self.run(f"delete_{table}", execution_id=execution_id)
        await self._put_keyed(execution_id, replace(rows, outbox={}))
        await self.run("set_served", execution_id=execution_id, served=bool(rows.served))
        return True

    async def rewrite(self, execution_id: str, facts: Effects, changes: Effects) -> None:
        """Writes facts anew, and applies what differs in timers and messages."""
        columns = dict(zip(FACTS, full_fact_columns(facts), strict=True))
        await self.run("rewrite", execution_id=execution_id, **columns)
        for name in ("timers", "outbox"):
            gone = [key for key, value in getattr(changes, name).items() if value is None]
            await self.run(f"drop_{name}", execution_id=execution_id, keys=gone)
        await self._put_keyed(execution_id, changes)

    async def forget_snapshots(self, execution_id: str, seqs: Sequence[int]) -> None:
        await self.run("forget_snapshot", execution_id=execution_id, seqs=[*seqs])

    async def put_playbook(self, playbook_hash: str, document: bytes) -> None:
        checksum = checksum_of_document(playbook_hash, document)
        await self.run("put_playbook", hash=playbook_hash, document=document, checksum=checksum)

    async def put_blob(self, name: str, data: bytes) -> None:
        await self.run("put_blob", name=name, data=data)

    async def delete_blobs(self, names: Sequence[str]) -> None:
        await self.run("delete_blobs", names=[*names])

    async def send(self, execution_id: str, body: bytes) -> InboxMessage:
        rows = await self.run("send", execution_id=execution_id, body=body)
        if not rows:
            raise ExecutionUnknown(f"there is no execution {execution_id}")
        return InboxMessage(rows[0]["id"], execution_id, body)

    async def take(self, messages: Sequence[int]) -> None:
        await self.run("take", ids=[*messages])

    async def sent(self, messages: Sequence[int]) -> None:
        await self.run("sent", ids=[*messages])

    async def delete_execution(self, execution_id: str) -> bool:
        if await self._lock(execution_id) is None:
            return False
        for table in _TABLES_OF_EXECUTION:
            await self.run(f"delete_{table}", execution_id=execution_id)
        return True

    async def put_credential(self, row: SealedCredential) -> bool:
        await self.run("lock_credentials")
        return bool(await self.run("put_credential", **row._asdict()))

    async def delete_credential(self, name: str) -> bool:
        return bool(await self.run("delete_credential", name=name))

    async def rewrap_credentials(
        self, before: Sequence[SealedCredential], after: Sequence[SealedCredential]
    ) -> bool:
        await self.run("lock_credentials")
        if await self._reader.credentials() != list(before):
            return False
        await self.run(
            "rewrap_credentials",
            names=[row.name for row in after],
            key_ids=[row.key_id for row in after],
            wrapped_keys=[row.wrapped_key for row in after],
        )
        return True

    async def put_catalog_entry(self, entry: CatalogEntry) -> CatalogEntry:
        await self.run("lock_path", path=entry.path)
        newest = await self._reader.catalog_entry(entry.path, 0)
        if newest is not None and newest.hash == entry.hash:
            return newest
        rows = await self.run("next_catalog_number", path=entry.path)
        numbered = replace(entry, version=rows[0]["version"])
        await self.run("put_catalog_entry", **asdict(numbered))
        return numbered

    async def keep_catalog_entries(self, path: str, number: int, entries: Sequence[CatalogEntry]) -> None:
        await self.run("lock_path", path=path)
        for entry in entries:
            await self.run("keep_catalog_entry", **asdict(entry))
        await self.run("keep_catalog_number", path=path, version=number)

    async def delete_catalog_entries(self, path: str, version: int) -> list[str]:
        running = await self._reader.running_versions(path, version)
        if not running:
            await self.run("delete_catalog_entries", path=path, version=version)
        return running

    async def put_api_token(self, token: ApiToken) -> bool:
        await self.run("lock_tokens")
        return bool(await self.run("put_api_token", **token._asdict()))

    async def revoke_api_token(self, name: str, at: int) -> bool:
        return bool(await self.run("revoke_api_token", name=name, at=at))

    async def put_audit(self, entries: Sequence[AuditEntry]) -> None:
        names = ("at", "by", "roles", "actions", "targets", "addresses", "statuses")
        columns = zip(*(map(storable_text, entry[:-1]) for entry in entries), strict=True)
        if entries:
            await self.run("put_audit", **dict(zip(names, map(list, columns), strict=True)))

    async def _lock(self, execution_id: str) -> int | None:
        """The version of an execution, which stays so until the transaction ends; None if there is none."""
        rows = await self.run("lock_execution", execution_id=execution_id)
        return rows[0]["version"] if rows else None

    async def _put_keyed(self, execution_id: str, effects: Effects) -> None:
        for name, columns in KEYED_COLUMNS.items():
            values = getattr(effects, name).items()
            rows = [(key, *columns(value)) for key, value in values if value is not None]
            if rows:
                arrays = map(list, zip(*rows, strict=True))
                arguments: dict[str, Any] = dict(zip(_PUT_COLUMNS[name], arrays, strict=True))
                await self.run(f"put_{name}", execution_id=execution_id, **arguments)

    async def run(self, name: str, /, **values: Any) -> list[Any]:
        """The rows that the statement with this name gives."""
        query = number_parameters(WRITE[name])
        arguments = map(storable_text, query.arguments(values))
        rows: list[Any] = await self.connection.fetch(query.text, *arguments)
        return rows
