"""Going on with a failed execution: with the children that failed it, and with a repaired document."""

from noetl.engine.catalog.playbooks import PlaybookDocument
from noetl.engine.execution import LiveExecution
from noetl.engine.history.read import read_state
from noetl.engine.service import Service
from noetl.kernel.errors import Refused
from noetl.kernel.net.commands import Retry
from noetl.kernel.net.operations import decide_retry
from noetl.kernel.state.execution_state import ExecutionState
from noetl.kernel.state.run_fold import retryable_children
from noetl.ports.store import ENDED_STATUSES


async def reopen_execution(
    service: Service, execution_id: str, *, by: str = "", repaired: PlaybookDocument | None = None
) -> LiveExecution:
    """A failed execution, owned and open again at what failed; nothing of it runs before `Service.resume`.

    Raises Refused, and as `Service.open`.
    """
    record = await service.store.execution(execution_id)
    if repaired is not None and record is not None and record.playbook == repaired.playbook.hash:
        repaired = None  # it runs that already
    live = await service.open(execution_id, repaired)
    try:
        children = await _continuable_children(service, live.state)
        live.submit(
            Retry(
                by,
                children,
                hash=repaired.playbook.hash if repaired is not None else "",
                file=repaired.source.file if repaired is not None else "",
            )
        )
    except BaseException:
        live.release()
        raise
    return live


async def _continuable_children(service: Service, state: ExecutionState) -> tuple[str, ...]:
    """The children that failed tasks of an execution can go on with: all but those that were cancelled."""
    children = [child for run in state.failed_runs.values() for child in retryable_children(run)]
    return tuple([child for child in children if await _is_continuable(service, state.execution_id, child)])


async def _is_continuable(service: Service, parent: str, execution_id: str) -> bool:
    record = await service.store.execution(execution_id)
    if record is None or record.parent != parent:
        return False
    if record.status not in ENDED_STATUSES:
        service.require_unowned(execution_id)
        return True
    if record.status != "failed":
        return record.status == "completed"
    document = await service.playbooks.read_stored(service.store, record.playbook)
    state = await read_state(service.store, document.plan, execution_id)
    try:
        return bool(decide_retry(state, Retry()))
    except Refused:
        return False  # it never began, for example: there is nothing in it to go on with
