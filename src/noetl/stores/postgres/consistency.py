"""Is the store sound, and how its derived rows are made again from the events."""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import msgspec

from noetl.ports.store import FACTS, NO_EFFECTS, Derive, Effects, Inconsistency, merge_effects
from noetl.stores.append_rows import full_fact_columns
from noetl.stores.checksums import checksum_of_document, checksum_of_snapshot, row_faults
from noetl.stores.postgres.database_connections import Connection
from noetl.stores.postgres.job_statements import PostgresJobs
from noetl.stores.postgres.queries import CHECK, number_parameters
from noetl.stores.postgres.reader import PostgresReader, stored_events

_CONTRADICTIONS = tuple(
    name for name in CHECK if name not in ("ids", "events_of", "snapshots_of", "documents")
)


class PostgresCheck:
    """Looks at everything on one connection. `find` sees one moment if it is in a transaction that does."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._reader = PostgresReader(connection)

    async def find(self, derive: Derive | None) -> list[Inconsistency]:
        return [inconsistency async for inconsistency in self._find(derive)]

    async def _find(self, derive: Derive | None) -> AsyncIterator[Inconsistency]:
        for name in _CONTRADICTIONS:
            for row in await self._connection.fetch(CHECK[name]):
                yield Inconsistency(*row)
        for playbook_hash, document, checksum in await self._connection.fetch(CHECK["documents"]):
            if checksum != checksum_of_document(playbook_hash, document):
                yield Inconsistency("", f"the document {playbook_hash} is not what was written")
        for execution_id in await self.execution_ids():
            for message in await self._faults(execution_id, derive):
                yield Inconsistency(execution_id, message)

    async def execution_ids(self) -> list[str]:
        """Every execution, in the order of their starts."""
        return [row["id"] for row in await self._connection.fetch(CHECK["ids"])]

    async def _faults(self, execution_id: str, derive: Derive | None) -> list[str]:
        stored = [*stored_events(await self._fetch("events_of", execution_id))]
        faults = [*row_faults(stored)]
        faults += [
            f"the snapshot at {seq} is not what was written"
            for seq in await self._damaged_snapshots(execution_id)
        ]
        if derive is None:
            return faults
        effects = _fold([row for row, _, _ in stored], derive)
        record = await self._reader.execution(execution_id)
        rows = await self._reader.keyed_rows(execution_id)
        for name, folded in zip(FACTS, full_fact_columns(effects), strict=True):
            fact = getattr(record, name)
            fact = msgspec.json.encode(dict(sorted(fact.items()))).decode() if name == "labels" else fact
            if fact != folded:
                faults.append(f"{name} is {fact!r}, its events say {folded!r}")
        if rows.served:
            return faults  # its rows follow from the state, which a store cannot fold
        if _changed_keys(rows.timers, effects.timers):
            faults.append("its timers are not those of its events")
        if any(effects.outbox.get(key) != body for key, body in rows.outbox.items()):
            faults.append("its messages are not those of its events")
        return faults

    async def _damaged_snapshots(self, execution_id: str) -> list[int]:
        return [
            seq
            for seq, state_format, body, checksum in await self._fetch("snapshots_of", execution_id)
            if checksum != checksum_of_snapshot(seq, state_format, body)
        ]

    async def rebuild(self, execution_id: str, derive: Derive) -> bool:
        """Writes all that is derived of one execution; False if there is none any more."""
        rows = await self._reader.keyed_rows(execution_id)
        if rows is NO_EFFECTS:
            return False
        stored = [*stored_events(await self._fetch("events_of", execution_id))]
        effects = _fold([row for row, _, _ in stored], derive)
        changes = NO_EFFECTS if rows.served else _effects_to_reach(effects, rows)
        jobs = PostgresJobs(self._connection)
        await jobs.rewrite(execution_id, effects, changes)
        await jobs.forget_snapshots(execution_id, await self._damaged_snapshots(execution_id))
        return True

    async def _fetch(self, name: str, execution_id: str) -> list[Any]:
        query = number_parameters(CHECK[name])
        rows: list[Any] = await self._connection.fetch(query.text, execution_id)
        return rows


def _fold(rows: Sequence[Any], derive: Derive) -> Effects:
    """What the events of an execution say about it."""
    effects = NO_EFFECTS
    for row in rows:
        effects = effects if effects is not NO_EFFECTS else Effects(started_at=row.ts)
        effects = merge_effects(effects, derive(row))
    return effects


def _effects_to_reach(wanted: Effects, stored: Effects) -> Effects:
    """What leads from the stored timers and messages to these. What is right keeps its row, and its id."""
    return Effects(
        timers={key: wanted.timers.get(key) for key in _changed_keys(stored.timers, wanted.timers)},
        outbox={key: wanted.outbox.get(key) for key in _changed_keys(stored.outbox, wanted.outbox)},
    )


def _changed_keys(stored: Mapping[str, object], folded: Mapping[str, object]) -> list[str]:
    return [key for key in {**folded, **stored} if stored.get(key) != folded.get(key)]
