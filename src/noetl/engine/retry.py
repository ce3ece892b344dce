"""Going on with what failed in an execution: with the children that failed it, with a repaired document."""

from functools import partial

from msgspec.structs import replace

from noetl.engine.catalog.playbooks import PlaybookDocument
from noetl.engine.execution import LiveExecution
from noetl.engine.history.read import read_state
from noetl.engine.history.repair import ReopenedRuns, retried_runs
from noetl.engine.service import Service
from noetl.kernel.errors import Refused
from noetl.kernel.net.commands import Redrive, Retry
from noetl.kernel.net.operations import decide_retry, redrivable_runs
from noetl.kernel.state.execution_state import ExecutionState
from noetl.kernel.state.run_fold import kept_frames, retryable_children
from noetl.ports.store import ENDED_STATUSES


async def reopen_execution(
    service: Service, execution_id: str, *, by: str = "", repaired: PlaybookDocument | None = None
) -> LiveExecution:
    """An execution that is open again at what failed; one that nobody ran is owned from here on.

    Nothing of that one runs before `Service.resume`. Raises Refused, and as `Service.open`.
    """
    return await _reopen(service, execution_id, Retry(by), retried_runs, repaired)


async def redrive_execution(
    service: Service,
    execution_id: str,
    *,
    step: str = "",
    by: str = "",
    repaired: PlaybookDocument | None = None,
) -> LiveExecution:
    """The same with the iterations that failed in loops which have ended."""
    reopened = partial(redrivable_runs, step=step)
    return await _reopen(service, execution_id, Redrive(step, by), reopened, repaired)


async def _reopen(
    service: Service,
    execution_id: str,
    command: Retry | Redrive,
    reopened: ReopenedRuns,
    repaired: PlaybookDocument | None,
) -> LiveExecution:
    repaired = await _new_document(service, execution_id, repaired)
    while (live := await service.load(execution_id)) is not None:
        if repaired is not None:
            raise Refused("it is running: only an execution that has ended goes on with another playbook")
        with service.pinned(execution_id):
            complete = await with_children(service, live.state, command)
            if service.registry.get(execution_id) is live:  # else it has ended meanwhile
                live.submit(complete)
                return live
    if repaired is not None:
        command = replace(command, hash=repaired.playbook.hash, file=repaired.source.file)
    live = await service.open(execution_id, repaired, reopened)
    try:
        live.submit(await with_children(service, live.state, command))
    except BaseException:
        live.release()
        raise
    return live


async def with_children(service: Service, state: ExecutionState, command: Retry | Redrive) -> Retry | Redrive:
    """The same with the children that tasks go on with: all but those that were cancelled."""
    if isinstance(command, Redrive):
        frames = [frame for run in redrivable_runs(state, command.step) for frame in kept_frames(run)]
        children = [frame.child for frame in frames if frame.child]
    else:
        children = [child for run in state.failed_runs.values() for child in retryable_children(run)]
    continuable = [child for child in children if await _is_continuable(service, state.execution_id, child)]
    return replace(command, children=tuple(continuable))


async def _new_document(
    service: Service, execution_id: str, repaired: PlaybookDocument | None
) -> PlaybookDocument | None:
    """None if it runs that already."""
    record = await service.store.execution(execution_id)
    if repaired is not None and record is not None and record.playbook == repaired.playbook.hash:
        return None
    return repaired


async def _is_continuable(service: Service, parent: str, execution_id: str) -> bool:
    record = await service.store.execution(execution_id)
    if record is None or record.parent != parent:
        return False
    if record.status not in ENDED_STATUSES:
        service.require_unowned(record)
        live = service.registry.get(execution_id)
        return live is None or not live.stopping  # its task has given it up
    if record.status != "failed":
        return record.status == "completed"
    document = await service.playbooks.read_stored(service.store, record.playbook)
    state = await read_state(service.store, document.plan, execution_id)
    try:
        return bool(decide_retry(state, Retry(), state.last_ts))
    except Refused:
        return False  # it never began, for example: there is nothing in it to go on with
