"""Whether a store holds what it should: its own rows, and each history in it."""

from collections.abc import AsyncIterator, Iterable

from msgspec import Struct

from noetl.engine.effects import effects_of_row, rows_as_effects
from noetl.engine.history.read import History, read_history
from noetl.events.errors import EventUnreadable
from noetl.kernel.state.invariants import sequence_gaps, violations
from noetl.ports.store import (
    NO_EFFECTS,
    Effects,
    ExecutionQuery,
    Inconsistency,
    Row,
    Store,
    StoreDamaged,
    StoreError,
)


class StoreReport(Struct, frozen=True):
    """How many executions were looked at, everything that is wrong, and what cannot be told."""

    executions: int
    problems: list[Inconsistency]
    unchecked_appends: int
    """Those without a checksum: an older release wrote them."""


async def check_store(store: Store, allow_kinds: Iterable[str] = (), *, rebuild: bool = False) -> StoreReport:
    """Checks the store, then folds each history and checks what holds after it.

    With `rebuild`, what is derived is made again first. Raises StoreError if the store cannot be read.
    """
    kinds = tuple(allow_kinds)
    if rebuild:
        await store.rebuild(_derived)
    problems = await store.check(_derived)
    executions = 0
    async for execution_id in _ids(store):
        executions += 1
        faults = await _faults(store, execution_id, kinds, rebuild=rebuild)
        problems += [Inconsistency(execution_id, message) for message in faults]
    return StoreReport(executions, problems, await store.unchecked_appends())


def _derived(row: Row) -> Effects:
    """What a row changes; nothing if it cannot be read, which folding its history reports."""
    try:
        return effects_of_row(row)
    except EventUnreadable:
        return NO_EFFECTS


async def _ids(store: Store) -> AsyncIterator[str]:
    cursor = ""
    while True:
        page = await store.executions(ExecutionQuery(cursor=cursor, limit=1_000))
        for record in page.executions:
            yield record.execution_id
        if not page.next:
            return
        cursor = page.next


async def _faults(store: Store, execution_id: str, kinds: tuple[str, ...], *, rebuild: bool) -> list[str]:
    try:
        history = await read_history(store, execution_id, kinds)
    except StoreDamaged:
        return []  # the store has said so itself
    except StoreError as error:
        return [str(error)]
    rows = await _row_faults(store, history, rebuild=rebuild)
    return [*sequence_gaps(history.events), *violations(history.state), *rows]


async def _row_faults(store: Store, history: History, *, rebuild: bool) -> list[str]:
    """Where a server keeps the rows of an execution: those must be what its history says."""
    stored, folded = await store.rows_of(history.record.execution_id), rows_as_effects(history.state)
    if not stored.served or all(
        getattr(stored, kind) == getattr(folded, kind) for kind in ("ready", "leases", "timers")
    ):
        return []
    execution_id, version = history.record.execution_id, history.state.version
    if rebuild:
        await store.put_rows(execution_id, version, folded)
        return []
    record = await store.execution(execution_id)
    if record is None or record.version != version:
        return []  # a server has gone on with it meanwhile
    return ["its timers, ready or leased runs are not those of its events"]
