"""Writes what is new in a store into an archive."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import msgspec
from msgspec import Struct, structs

from noetl.dsl.document.playbook import Arc, Playbook, Step
from noetl.engine.archive.execution_tables import ExecutionTables, event_row, reference_rows
from noetl.engine.archive.parquet_archive import (
    ArchiveUnusable,
    LastEntry,
    ParquetArchive,
    day_of,
    open_archive,
)
from noetl.engine.archive.table_rows import JsonText, PlaybookArcRow, PlaybookRow, PlaybookStepRow, TableRow
from noetl.engine.catalog.playbook_record import PlaybookUnreadable, load_record
from noetl.engine.history.lookup import PAGE, decode_rows, may_have_given, read_events
from noetl.expr.expression import Expression
from noetl.ports.store import FeedEntry, Store


class ExportReport(Struct, frozen=True):
    """What was added."""

    events: int
    executions: int
    playbooks: int
    rows: int


async def export_store(store: Store, folder: Path) -> ExportReport:
    """Adds all that is new since the last time. Raises ArchiveUnusable, StoreError, OSError."""
    with open_archive(folder) as archive:
        return await _StoreExport(store, archive).run()


class _StoreExport:
    def __init__(self, store: Store, archive: ParquetArchive) -> None:
        self._store = store
        self._archive = archive
        self._playbooks: dict[str, Playbook | None] = {}

    async def run(self) -> ExportReport:
        archive, before = self._archive, self._archive.state
        await self._require_same_store(before.last)
        last, events = before.last, 0
        concerned: dict[str, None] = {}
        async for entries in self._new_entries(before.last.pos):
            events += len(entries)
            for entry in entries:
                concerned.setdefault(entry.execution_id)
                self._add_event(entry)
            end = entries[-1]
            last = LastEntry(end.pos, end.execution_id, end.row.seq)
        if not events:
            return ExportReport(0, 0, 0, 0)
        executions = 0
        for execution_id in concerned:
            executions += await self._add_execution(execution_id)
        known = set(before.playbooks)
        new = {name: playbook for name, playbook in self._playbooks.items() if playbook and name not in known}
        for playbook in new.values():
            archive.add(playbook_rows(playbook))
        archive.commit(structs.replace(before, last=last, playbooks=(*before.playbooks, *new)))
        return ExportReport(events, executions, len(new), archive.rows)

    async def _new_entries(self, after: int) -> AsyncIterator[list[FeedEntry]]:
        """Up to what there is now: who writes all the time would never let this end."""
        end = await self._store.feed_end()
        while after < end:
            entries = [entry for entry in await self._store.feed(after=after, limit=PAGE) if entry.pos <= end]
            if not entries:
                return
            yield entries
            after = entries[-1].pos

    def _add_event(self, entry: FeedEntry) -> None:
        (event,) = decode_rows(entry.execution_id, [entry.row])
        self._archive.add([event_row(event, entry.execution_id)])
        self._archive.add(reference_rows(event, entry.execution_id), day_of(event.ts))

    async def _add_execution(self, execution_id: str) -> bool:
        """False if it was deleted meanwhile."""
        record = await self._store.execution(execution_id)
        if record is None:
            return False
        tables = ExecutionTables(execution_id)
        async for events in read_events(self._store, execution_id):
            for event in events:
                tables.follow(event)
        playbook = await self._playbook(record.playbook)
        self._archive.add(tables.rows(record, playbook), day_of(record.started_at))
        return True

    async def _playbook(self, playbook_hash: str) -> Playbook | None:
        """None if this release cannot read it: what it ran is exported all the same."""
        if playbook_hash not in self._playbooks:
            document = await self._store.playbook(playbook_hash)
            try:
                self._playbooks[playbook_hash] = load_record(document) if document is not None else None
            except PlaybookUnreadable:
                self._playbooks[playbook_hash] = None
        return self._playbooks[playbook_hash]

    async def _require_same_store(self, last: LastEntry) -> None:
        """Raises ArchiveUnusable if the folder has what another store gave."""
        if not last.pos:
            return
        same = await may_have_given(self._store, last.pos, f"{last.execution_id}/{last.seq}")
        if not same or await self._store.feed_end() < last.pos:
            raise ArchiveUnusable(
                "the folder has what another store gave", "export this one into another folder"
            )


def playbook_rows(playbook: Playbook) -> Iterator[TableRow]:
    metadata = playbook.metadata
    yield PlaybookRow(
        playbook=playbook.hash,
        path=metadata.path,
        name=metadata.name,
        version=metadata.version,
        description=metadata.description,
        labels=_json_text(metadata.labels),
        steps=len(playbook.workflow),
        document=_json_text(playbook.document),
    )
    for position, step in enumerate(playbook.workflow):
        yield _step_row(playbook.hash, position, step)
        for number, arc in enumerate(step.arcs):
            yield _arc_row(playbook.hash, step, number, arc)


def _step_row(playbook: str, position: int, step: Step) -> PlaybookStepRow:
    return PlaybookStepRow(
        playbook=playbook,
        step=step.name,
        position=position,
        tasks=len(step.tasks),
        kinds=_json_text([task.kind for task in step.tasks]),
        loop_mode=step.loop.mode if step.loop else None,
        join_mode=step.join.mode if step.join else None,
        description=step.desc,
    )


def _arc_row(playbook: str, step: Step, number: int, arc: Arc) -> PlaybookArcRow:
    guard = arc.when.source if isinstance(arc.when, Expression) else None if arc.when else "false"
    return PlaybookArcRow(
        playbook=playbook,
        step=step.name,
        arc=number,
        target=arc.step,
        guard=guard,
        mode=step.router.mode if step.router else "exclusive",
    )


def _json_text(value: object) -> JsonText:
    return JsonText(msgspec.json.encode(value).decode())
