"""The executions below a failed one that failed it, read back for its report."""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from noetl.cli.report.failed_attempts import FailedAttempts
from noetl.engine.catalog.playbook_record import PlaybookSource, decode_source
from noetl.engine.history.read import read_history
from noetl.engine.task_log import LogLine, TaskLog
from noetl.kernel.state.execution_state import ExecutionState
from noetl.ports.store import Store, StoreError


class FailedChild(Struct, frozen=True):
    """A child whose end failed its parent, what its playbook was read from and what its tasks printed."""

    state: ExecutionState
    source: PlaybookSource
    log: Sequence[LogLine]


async def read_failed_children(
    store: Store,
    logs: TaskLog,
    state: ExecutionState,
    attempts: FailedAttempts,
    allow_kinds: Iterable[str] = (),
) -> tuple[FailedChild, ...]:
    """From the child that failed this execution down to the lowest; what cannot be read ends it.

    `attempts` must have observed this execution, and observes the children.
    """
    children: list[FailedChild] = []
    while child_id := _failed_child(state, attempts):
        try:
            history = await read_history(store, child_id, allow_kinds)
            source = decode_source(await store.playbook(history.record.playbook) or b"")
        except StoreError:
            break  # the report says what failed without it
        state = history.state
        if state.failures and attempts.attempt_of(child_id, state.failures[0].run) is None:
            attempts.observe(child_id, history.events)
        children.append(FailedChild(state, source, logs.tail(child_id).read()))
    return tuple(children)


def _failed_child(state: ExecutionState, attempts: FailedAttempts) -> str:
    """The child whose failure is that of the execution; empty if something else is."""
    if state.status != "failed" or not state.failures:
        return ""
    attempt = attempts.attempt_of(state.execution_id, state.failures[0].run)
    if attempt is None or attempt.processed is None:
        return ""
    child = attempt.processed.outcome.helpers.get("playbook", {})
    return str(child["execution_id"]) if child.get("status") in ("failed", "cancelled") else ""
