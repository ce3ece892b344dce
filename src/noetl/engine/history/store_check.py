"""Whether a store holds what it should: its own rows, and each history in it."""

from collections.abc import AsyncIterator, Iterable

from msgspec import Struct

from noetl.engine.effects import derive
from noetl.engine.history.read import read_history
from noetl.events.errors import EventUnreadable
from noetl.kernel.state.invariants import gaps, violations
from noetl.ports.store import NO_EFFECTS, Effects, Inconsistency, Query, Row, Store, StoreError


class Soundness(Struct, frozen=True):
    """How many executions were looked at, and everything that is wrong."""

    executions: int
    problems: list[Inconsistency]


async def examine_store(store: Store, allow_kinds: Iterable[str] = (), *, rebuild: bool = False) -> Soundness:
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
        faults = await _faults(store, execution_id, kinds)
        problems += [Inconsistency(execution_id, message) for message in faults]
    return Soundness(executions, problems)


def _derived(row: Row) -> Effects:
    """What a row changes; nothing if it cannot be read, which folding its history reports."""
    try:
        return derive(row)
    except EventUnreadable:
        return NO_EFFECTS


async def _ids(store: Store) -> AsyncIterator[str]:
    cursor = ""
    while True:
        page = await store.executions(Query(cursor=cursor, limit=1_000))
        for record in page.executions:
            yield record.execution_id
        if not page.next:
            return
        cursor = page.next


async def _faults(store: Store, execution_id: str, kinds: tuple[str, ...]) -> list[str]:
    try:
        history = await read_history(store, execution_id, kinds)
    except StoreError as error:
        return [str(error)]
    return [*gaps(history.events), *violations(history.state)]
