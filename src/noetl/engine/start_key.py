"""Keys that a request names so that it begins one execution, however often it is sent."""

from functools import partial

import msgspec

from noetl.engine.execution import LiveExecution
from noetl.engine.history.lookup import decode_rows, request_event_of
from noetl.engine.service import Service
from noetl.kernel.errors import Refused
from noetl.kernel.net.commands import Request
from noetl.kernel.references.resolve import resolve_references
from noetl.model.errors import ResultError
from noetl.stores.results.result_reader import read_result


class KeyConflict(Refused):
    """The idempotency key is that of another request; `holder` is the execution that it started."""

    def __init__(self, message: str, holder: str) -> None:
        super().__init__(message)
        self.holder = holder


async def holder_of_start_key(service: Service, live: LiveExecution, request: Request) -> str:
    """The execution that was begun with its key before, if there is one: then this one is dropped.

    Raises KeyConflict if that is one of another playbook, or was asked for with other values.
    """
    await service.commit_log.flush()
    holder = service.commit_log.taken_keys.pop(live.execution_id, "")
    if holder:
        service.drop(live)
        begun = f"the idempotency key `{live.start_key}` is that of {holder}, which"
        earlier = request_event_of(decode_rows(holder, await service.store.read(holder, limit=1)))
        playbook = live.state.plan.playbook
        if earlier.path != playbook.metadata.path:
            raise KeyConflict(f"{begun} runs `{earlier.path}`", holder)
        differences = [] if earlier.hash == playbook.hash else ["document"]
        differences += [
            name
            for name in ("workload", "ctx", "labels", "priority")
            if not await _is_same_value(service, getattr(earlier, name), getattr(request, name))
        ]
        if differences:
            raise KeyConflict(f"{begun} was started with another {', '.join(differences)}", holder)
    return holder


async def _is_same_value(service: Service, stored: object, value: object) -> bool:
    try:
        stored = await resolve_references(stored, partial(read_result, service.results))
    except ResultError:  # it is no longer kept: nobody can say that it was another
        return True
    # As bytes: to Python, 1 and True are equal.
    return msgspec.json.encode(stored, order="deterministic") == msgspec.json.encode(
        value, order="deterministic"
    )
