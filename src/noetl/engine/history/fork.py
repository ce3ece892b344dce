"""A new execution with a copy of another one's history."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from noetl.dsl.document.playbook import Playbook
from noetl.engine.catalog.playbooks import PlaybookDocument
from noetl.engine.effects import effects_of_row
from noetl.engine.execution import ExecutionOrigin, ExecutionResources, LiveExecution
from noetl.engine.history.lookup import PAGE, decode_rows
from noetl.events.bodies import Patch
from noetl.events.event import Event
from noetl.kernel.errors import WrongSequence
from noetl.kernel.net.commands import Fork
from noetl.kernel.plan import Plan
from noetl.kernel.state.execution_state import ExecutionState
from noetl.kernel.state.replay import replay
from noetl.model.errors import NoetlError
from noetl.ports.results import ResultMissing, ResultStore
from noetl.ports.store import (
    NO_EFFECTS,
    Append,
    Committed,
    ExecutionUnknown,
    Row,
    Store,
    StoreUnusable,
    merge_effects,
)
from noetl.system import SYSTEM


class CannotFork(NoetlError):
    """There is nothing to copy, or the copy could not go on with the other playbook."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


async def read_rows_until(store: Store, execution_id: str, at: int) -> list[Row]:
    """The rows up to `at`, and on to the end of its append. Raises ExecutionUnknown, CannotFork."""
    rows: list[Row] = []
    while page := await store.read(execution_id, after=rows[-1].seq if rows else 0, limit=PAGE):
        for row in page:
            rows.append(row)
            if row.seq >= at and row.last:
                return rows
    if not rows:
        raise ExecutionUnknown(f"there is no execution {execution_id}")
    raise CannotFork(f"{execution_id} has no event {at}", f"its last one is {rows[-1].seq}")


async def write_fork(
    store: Store, results: ResultStore, rows: Sequence[Row], document: PlaybookDocument, command: Fork
) -> str:
    """A new execution with these rows, marked as a fork in the same commit; its id.

    Raises CannotFork if the rows could not have come from this document, or nothing is left to do.
    """
    execution_id = SYSTEM.new_execution_id()
    rows = await _with_own_results(results, rows, command.source, execution_id)
    events = decode_rows(execution_id, rows)
    state = state_to_fork(document.plan, execution_id, events, document.source.name, source=command.source)
    effects = NO_EFFECTS
    for row in rows:
        effects = merge_effects(effects, effects_of_row(row))
    copy = Append(execution_id=execution_id, expected_version=0, rows=rows, effects=effects)
    live = LiveExecution(execution_id, _lone_resources(results))
    live.load(state, ExecutionOrigin())
    live.submit(command)
    fork, _ = live.take_append()
    for blob in live.take_blobs():
        await results.put(*blob)
    await store.put_playbook(document.playbook.hash, document.encode())
    verdicts = await store.commit([copy, fork])
    assert all(isinstance(verdict, Committed) for verdict in verdicts)  # noqa: S101 - nobody knows the id
    return execution_id


def state_to_fork(
    plan: Plan, execution_id: str, events: Sequence[Event], document_name: str, *, source: str = ""
) -> ExecutionState:
    """What a copy of these events begins with. `source` is whose they are, if that is another execution.

    Raises CannotFork if they could not have come from this playbook, or nothing is left to do.
    """
    try:
        state = replay(plan, execution_id, events)
    except (WrongSequence, KeyError, IndexError) as error:
        why = f"it has no `{error.args[0]}`" if isinstance(error, KeyError) else error
        hint = "the steps and tasks that ran so far must be there, with the same names and arcs"
        raise CannotFork(f"the history cannot go on with {document_name}: {why}", hint) from error
    if state.over:
        message = f"{source or execution_id} was {state.status} by event {len(events)}"
        raise CannotFork(message, "fork it at an earlier event")
    return state


def _lone_resources(results: ResultStore) -> ExecutionResources:
    """For an execution that only decides one thing."""

    async def read_blob(live: LiveExecution, key: str) -> bytes:
        raise ResultMissing(f"nothing of {live.execution_id} is stored yet: {key}")

    async def read_playbook(playbook_hash: str) -> tuple[Playbook, Path]:
        raise StoreUnusable(f"nobody runs {playbook_hash} here")

    return ExecutionResources(results, read_blob, read_playbook, lambda *_: None, lambda: None, SYSTEM.now)


async def _with_own_results(
    results: ResultStore, rows: Sequence[Row], source: str, execution_id: str
) -> Sequence[Row]:
    """The rows with copies of all that they name: what is stored belongs to one execution."""
    theirs = re.compile(rb'"key":"(\w+:)?' + re.escape(source.encode()) + rb'/([0-9a-f]{64})(#[0-9-]+)?"')
    own = rb'"key":"\g<1>' + execution_id.encode() + rb'/\g<2>\g<3>"'
    names: set[tuple[str, str]] = set()
    copied = []
    for row in rows:
        names |= {(store.decode(), name.decode()) for store, name, _ in theirs.findall(row.body)}
        copied.append(replace(row, body=theirs.sub(own, row.body)) if names else row)
    for store, name in sorted(names):
        await results.copy(f"{store}{source}/{name}", f"{store}{execution_id}/{name}")
    return copied


def fork_command(
    source: str,
    rows: Sequence[Row],
    document: PlaybookDocument,
    *,
    ctx: Mapping[str, Any],
    workload: Mapping[str, Any],
    by: str,
) -> Fork:
    """What makes a copy of these rows a fork: from here on it runs this document, with these values."""
    patches = tuple(Patch(scope="ctx", path=(key,), value=value) for key, value in ctx.items())
    return Fork(
        source,
        rows[-1].seq,
        patches,
        by,
        hash=document.playbook.hash,
        file=document.source.file,
        workload=dict(workload),
        shift=max(0, SYSTEM.now() - rows[-1].ts),
    )
