"""Is the store sound, and how its derived rows are made again from the events."""

from collections.abc import Iterator, Mapping

import apsw

from noetl.ports.store import FACTS, NO_EFFECTS, Derive, Effects, Inconsistency, merge_effects
from noetl.stores.append_rows import full_fact_columns
from noetl.stores.checksums import checksum_of_document, checksum_of_snapshot, row_faults
from noetl.stores.sqlite import reader
from noetl.stores.sqlite.queries import CHECK, READ, REBUILD, insert_effects


def check_consistency(connection: apsw.Connection, derive: Derive | None) -> list[Inconsistency]:
    """All that is wrong, seen at one moment."""
    connection.execute("BEGIN")
    try:
        # A damaged file can answer nothing else.
        return _damage(connection) or [*_contradictions(connection, derive)]
    except apsw.CorruptError as error:
        return [Inconsistency("", str(error))]
    finally:
        connection.execute("ROLLBACK")


def _damage(connection: apsw.Connection) -> list[Inconsistency]:
    return [
        Inconsistency("", line) for (line,) in connection.execute("PRAGMA integrity_check") if line != "ok"
    ]


def _contradictions(connection: apsw.Connection, derive: Derive | None) -> Iterator[Inconsistency]:
    for query in CHECK.values():
        yield from [Inconsistency(*row) for row in connection.execute(query)]
    yield from _damaged_bytes(connection)
    if derive:
        for execution_id in list_execution_ids(connection):
            yield from _compare_with_events(connection, execution_id, derive)


def _damaged_bytes(connection: apsw.Connection) -> Iterator[Inconsistency]:
    for playbook_hash, document, checksum in connection.execute(REBUILD["documents"]):
        if checksum not in (None, checksum_of_document(playbook_hash, document)):
            yield Inconsistency("", f"the document {playbook_hash} is not what was written")
    for execution_id in list_execution_ids(connection):
        x, _ = reader.find_identity(connection, execution_id) or (0, 0)
        for fault in row_faults(reader.stored_rows(connection.execute(REBUILD["events_of"], (x,)))):
            yield Inconsistency(execution_id, fault)
        for seq in _damaged_snapshots(connection, x):
            yield Inconsistency(execution_id, f"the snapshot at {seq} is not what was written")


def _damaged_snapshots(connection: apsw.Connection, x: int) -> list[int]:
    return [
        seq
        for seq, state_format, body, checksum in connection.execute(REBUILD["snapshots_of"], (x,))
        if checksum != checksum_of_snapshot(seq, state_format, body)
    ]


def list_execution_ids(connection: apsw.Connection) -> list[str]:
    """Every execution, in the order of their starts."""
    return [row[0] for row in connection.execute(REBUILD["ids"])]


def _fold(connection: apsw.Connection, x: int, derive: Derive) -> Effects:
    """What the events of an execution say about it."""
    effects = NO_EFFECTS
    for row, _, _ in reader.stored_rows(connection.execute(REBUILD["events_of"], (x,))):
        effects = effects if effects is not NO_EFFECTS else Effects(started_at=row.ts)
        effects = merge_effects(effects, derive(row))
    return effects


def _compare_with_events(
    connection: apsw.Connection, execution_id: str, derive: Derive
) -> Iterator[Inconsistency]:
    row = connection.execute(READ["execution"], (execution_id,)).get
    x = row[0]
    effects = _fold(connection, x, derive)
    *facts, served = row[4:]
    for name, stored, folded in zip(FACTS, facts, full_fact_columns(effects), strict=True):
        if stored != folded:
            yield Inconsistency(execution_id, f"{name} is {stored!r}, its events say {folded!r}")
    if served:
        return  # its rows follow from the state, which a store cannot fold
    if _differing_keys(dict(connection.execute(READ["timers_of"], (x,))), effects.timers):
        yield Inconsistency(execution_id, "its timers are not those of its events")
    unsent = dict(connection.execute(READ["messages_of"], (x,)))
    if any(effects.outbox.get(key) != body for key, body in unsent.items()):
        yield Inconsistency(execution_id, "its messages are not those of its events")


def rebuild_execution(connection: apsw.Connection, execution_id: str, derive: Derive) -> bool:
    """Writes all that is derived of one execution; False if there is none any more."""
    identity = reader.find_identity(connection, execution_id)
    if identity is None:
        return False
    x = identity[0]
    effects = _fold(connection, x, derive)
    connection.execute(REBUILD["rewrite"], (*full_fact_columns(effects), x))
    if not connection.execute(READ["served"], (x,)).get:
        insert_effects(connection, [(x, _effects_to_apply(connection, x, effects))])
    for seq in _damaged_snapshots(connection, x):
        connection.execute(REBUILD["forget_snapshot"], (x, seq))
    return True


def _effects_to_apply(connection: apsw.Connection, x: int, effects: Effects) -> Effects:
    """What leads from the stored timers and messages to these. What is right keeps its row, and its id."""
    timers = dict(connection.execute(READ["timers_of"], (x,)))
    outbox = dict(connection.execute(READ["messages_of"], (x,)))
    return Effects(
        timers={key: effects.timers.get(key) for key in _differing_keys(timers, effects.timers)},
        outbox={key: effects.outbox.get(key) for key in _differing_keys(outbox, effects.outbox)},
    )


def _differing_keys(stored: Mapping[str, object], folded: Mapping[str, object]) -> list[str]:
    return [key for key in {**folded, **stored} if stored.get(key) != folded.get(key)]
