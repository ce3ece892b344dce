"""Copies all that a store keeps into another one, of whatever kind; a second call goes on."""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from noetl.engine.archive.unfinished_copy import UNFINISHED_COPY, refuse_unfinished_copy
from noetl.engine.effects import effects_of
from noetl.engine.history.lookup import PAGE, decode_rows, row_pages
from noetl.ports.catalog import AuditEntry
from noetl.ports.store import (
    NO_EFFECTS,
    Append,
    Committed,
    Effects,
    ExecutionQuery,
    ExecutionRecord,
    KeyTaken,
    Row,
    Store,
    StoreError,
    merge_effects,
)

CopyListener: TypeAlias = Callable[[int, int], None]
"""Hears how many executions of how many are done."""
_KEYED = ("timers", "ready", "leases")


class StoresDiffer(StoreError):
    """Both stores have something by the same name, and it is not the same."""


class CopyReport(Struct):
    """What was added. `skipped` are the executions that were there already, as they are or further on."""

    executions: int = 0
    events: int = 0
    playbooks: int = 0
    catalog_versions: int = 0
    credentials: int = 0
    tokens: int = 0
    audit: int = 0
    commands: int = 0
    results: int = 0
    logs: int = 0
    skipped: int = 0


async def copy_store(source: Store, target: Store, label: str, on_progress: CopyListener) -> CopyReport:
    """Adds to `target` all of `source` that is not there; nobody may write to either meanwhile.

    What was copied is read back and compared, and what was there before, too. Leases come along:
    whoever takes up an execution voids them, as after a crash. Until the last execution is there `target` has
    a mark that names `label`, the source, and nobody goes on with it. Raises StoresDiffer, StoreError.
    """
    await refuse_unfinished_copy(source, label)
    return await _StoreCopy(source, target, label).run(on_progress)


async def read_execution_ids(store: Store, *, living: bool = False) -> list[str]:
    """All, or those that have not ended, in the order of their first appends: parents before children."""
    ids: list[str] = []
    status = ("running", "paused") if living else ()
    cursor, more = "", True
    while more:
        page = await store.executions(ExecutionQuery(status=status, cursor=cursor, limit=PAGE))
        ids += [record.execution_id for record in page.executions]
        cursor, more = page.next, bool(page.next)
    return ids[::-1]


class _StoreCopy:
    def __init__(self, source: Store, target: Store, label: str) -> None:
        self._source = source
        self._target = target
        self._label = label
        self._report = CopyReport()

    async def run(self, on_progress: CopyListener) -> CopyReport:
        # In this order, since no event may name a document or result that is not there.
        await self._copy_playbooks()
        await self._copy_blobs()
        await self._copy_catalog()
        await self._copy_credentials()
        await self._copy_tokens()
        ids = await read_execution_ids(self._source)
        if ids:
            await self._target.put_blob(UNFINISHED_COPY, self._label.encode())
        for done, execution_id in enumerate(ids):
            on_progress(done, len(ids))
            await asyncio.sleep(0)  # a file answers at once: else Ctrl-C would be heard at the end
            await self._copy_execution(execution_id)
        await self._copy_audit()
        await self._target.delete_blobs([UNFINISHED_COPY])
        on_progress(len(ids), len(ids))
        return self._report

    async def _copy_execution(self, execution_id: str) -> None:
        source, target = self._source, self._target
        record, there = await source.execution(execution_id), await target.execution(execution_id)
        if record is None:
            return  # deleted meanwhile
        version = there.version if there is not None else 0
        await self._require_same_rows(execution_id, 0, min(version, record.version))
        if there is not None:
            await self._require_same_start_key(execution_id)
        if version > record.version:
            self._report.skipped += 1
            return
        if version < record.version:
            await self._append(record, version)
            await self._require_same_rows(execution_id, version, record.version)
            self._report.executions += 1
            self._report.events += record.version - version
        else:
            self._report.skipped += 1
        await self._set_keyed_rows(record)
        await self._require_same_facts(record)
        await self._copy_commands(execution_id)

    async def _require_same_rows(self, execution_id: str, after: int, until: int) -> None:
        """Of the events above `after`, up to `until`; both stores compare their checksums when they read."""
        while after < until:
            limit = min(PAGE, until - after)
            rows = await self._source.read(execution_id, after=after, limit=limit)
            others = await self._target.read(execution_id, after=after, limit=limit)
            if rows != others or not rows:
                pairs = zip(rows, others, strict=False)
                same = next((at for at, (row, other) in enumerate(pairs) if row != other), None)
                seq = after + 1 + (min(len(rows), len(others)) if same is None else same)
                raise StoresDiffer(
                    f"execution {execution_id} differs from event {seq} on",
                    "it went on in both stores: copy into another one, or delete it where it is not wanted",
                )
            after = rows[-1].seq

    async def _require_same_start_key(self, execution_id: str) -> None:
        key, other = [await store.start_key(execution_id) for store in (self._source, self._target)]
        if key != other:
            raise StoresDiffer(f"execution {execution_id} differs from event 1 on: it has another start key")

    async def _append(self, record: ExecutionRecord, version: int) -> None:
        """Whole appends, as they were made, and many in one; what is derived comes with them."""
        execution_id = record.execution_id
        stale = await self._target.rows_of(execution_id)
        pending: list[Row] = []
        async for rows in row_pages(self._source, execution_id, after=version):
            pending += rows
            end = next((at for at in range(len(pending), 0, -1) if pending[at - 1].last), 0)
            if not end:
                continue
            complete, pending = pending[:end], pending[end:]
            effects = _effects_of_rows(execution_id, complete)
            if complete[-1].seq == record.version:
                wanted = await self._source.rows_of(execution_id)
                effects = merge_effects(effects, _keyed_changes(stale, wanted))
            effects = replace(effects, served=None if version else record.served)
            key = "" if version else await self._source.start_key(execution_id)
            append = Append(
                execution_id=execution_id,
                expected_version=version,
                rows=complete,
                effects=effects,
                start_key=key,
            )
            await self._commit(append)
            version = complete[-1].seq

    async def _commit(self, append: Append) -> None:
        (verdict,) = await self._target.commit([append])
        if isinstance(verdict, KeyTaken):
            message = f"execution {append.execution_id} differs from event 1 on: its start key"
            raise StoresDiffer(f"{message} `{append.start_key}` has begun {verdict.execution_id} there")
        if not isinstance(verdict, Committed):
            seq = min(verdict.version, append.expected_version) + 1
            message = f"execution {append.execution_id} differs from event {seq} on: somebody writes to it"
            raise StoresDiffer(message, "nobody may use the store that is copied into")

    async def _set_keyed_rows(self, record: ExecutionRecord) -> None:
        """Where the execution was there, its rows may be those of a server, and the others not, or older."""
        wanted = await self._source.rows_of(record.execution_id)
        stored = await self._target.rows_of(record.execution_id)
        if _keyed_rows(stored) != _keyed_rows(wanted):
            await self._target.put_rows(record.execution_id, record.version, wanted)

    async def _require_same_facts(self, record: ExecutionRecord) -> None:
        if await self._target.execution(record.execution_id) == record:
            return
        raise StoreError(
            f"what is known of execution {record.execution_id} does not follow from its events",
            "`noetl store check --rebuild` repairs that in the store that is copied",
        )

    async def _copy_commands(self, execution_id: str) -> None:
        messages = await self._source.inbox([execution_id])
        sent = Counter(message.body for message in await self._target.inbox([execution_id]))
        for message in messages:
            if sent[message.body]:
                sent[message.body] -= 1
            else:
                await self._target.send(execution_id, message.body)
                self._report.commands += 1

    async def _copy_playbooks(self) -> None:
        known = {*await self._target.playbooks()}
        for name in await self._source.playbooks():
            document = await self._source.playbook(name)
            if document is None:
                continue
            if name not in known:
                await self._target.put_playbook(name, document)
                self._report.playbooks += 1
            if await self._target.playbook(name) != document:
                raise StoresDiffer(f"the document {name} is another one there")

    async def _copy_blobs(self) -> None:
        known = {*await self._target.blobs("")}
        for name in await self._source.blobs(""):
            body = await self._source.blob(name)
            if body is None:
                continue
            if name not in known:
                await self._target.put_blob(name, body)
                self._report.results += 1
            if await self._target.blob(name) != body:
                raise StoresDiffer(f"the result {name} is another one there")

    async def _copy_catalog(self) -> None:
        numbers = await self._target.catalog_numbers()
        for path, number in (await self._source.catalog_numbers()).items():
            stored = {entry.version: entry for entry in await self._target.catalog_versions(path)}
            new = []
            for entry in reversed(await self._source.catalog_versions(path)):
                if entry.version not in stored:
                    new.append(entry)
                elif stored[entry.version] != entry:
                    message = f"version {entry.version} of the playbook `{path}` is another one there"
                    raise StoresDiffer(message, "copy into a store without it, or delete it there")
            if new or numbers.get(path, 0) < number:
                await self._target.keep_catalog_entries(path, number, new)
                self._report.catalog_versions += len(new)

    async def _copy_credentials(self) -> None:
        for row in await self._source.credentials():
            stored = await self._target.credential(row.name)
            if stored == row:
                continue
            if stored is not None:
                hint = "`noetl credential delete` takes away the one that is not wanted"
                raise StoresDiffer(f"the credential `{row.name}` is another one there", hint)
            if not await self._target.put_credential(row):
                hint = "`noetl credential rotate-key` gives the credentials of one store the key of the other"
                raise StoresDiffer("the credentials there are sealed with another key", hint)
            self._report.credentials += 1

    async def _copy_tokens(self) -> None:
        for token in await self._source.api_token_history():
            stored = await self._target.api_token(token.hash)
            if stored is None:
                if not await self._target.put_api_token(token):
                    hint = f"`noetl token revoke {token.name}` frees the name there"
                    raise StoresDiffer(f"the token `{token.name}` is another one there", hint)
                self._report.tokens += 1
            elif token.revoked_at and not stored.revoked_at:
                await self._target.revoke_api_token(token.name, token.revoked_at)

    async def _copy_audit(self) -> None:
        stored = Counter(await _read_audit(self._target))
        new = []
        for entry in await _read_audit(self._source):
            if stored[entry]:
                stored[entry] -= 1
            else:
                new.append(entry)
        for start in range(0, len(new), PAGE):
            await self._target.put_audit(new[start : start + PAGE])
        self._report.audit = len(new)


async def _read_audit(store: Store) -> list[AuditEntry]:
    """The oldest first, without their numbers, which each store gives itself."""
    entries: list[AuditEntry] = []
    while page := await store.audit(before=entries[-1].id if entries else 0, limit=PAGE):
        entries += page
    return [entry._replace(id=0) for entry in reversed(entries)]


def _effects_of_rows(execution_id: str, rows: Sequence[Row]) -> Effects:
    """Raises HistoryUnreadable for an event that this release does not know."""
    events = decode_rows(execution_id, rows)
    return reduce(merge_effects, [effects_of(event.ts, event.body) for event in events], NO_EFFECTS)


def _keyed_rows(rows: Effects) -> tuple[Any, ...]:
    return rows.served, *(getattr(rows, name) for name in _KEYED)


def _keyed_changes(stored: Effects, wanted: Effects) -> Effects:
    return Effects(
        timers=_changes(stored.timers, wanted.timers),
        outbox=_changes(stored.outbox, wanted.outbox),
        ready=_changes(stored.ready, wanted.ready),
        leases=_changes(stored.leases, wanted.leases),
    )


def _changes(stored: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, Any]:
    return {**{key: None for key in stored if key not in wanted}, **wanted}
