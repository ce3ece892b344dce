"""Going on with a failed execution: with the children that failed it, and with a repaired document."""

from noetl.engine.catalog.playbooks import PlaybookDocument
from noetl.engine.children import Children
from noetl.engine.execution import LiveExecution
from noetl.engine.service import Service
from noetl.kernel.net.commands import Retry


async def reopen_execution(
    service: Service,
    children: Children,
    execution_id: str,
    *,
    by: str = "",
    repaired: PlaybookDocument | None = None,
) -> LiveExecution:
    """A failed execution, owned and open again at what failed; nothing of it runs before `Service.resume`.

    Raises Refused, and as `Service.open`.
    """
    record = await service.store.execution(execution_id)
    if repaired is not None and record is not None and record.playbook == repaired.playbook.hash:
        repaired = None  # it runs that already
    live = await service.open(execution_id, repaired)
    try:
        children_to_continue = await children.continuable(live.state)
        live.submit(
            Retry(
                by,
                children_to_continue,
                hash=repaired.playbook.hash if repaired is not None else "",
                file=repaired.source.file if repaired is not None else "",
            )
        )
    except BaseException:
        live.release()
        raise
    return live
