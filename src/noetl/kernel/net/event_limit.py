"""What becomes of an event that is too large whatever leaves it: it ends with kind `limit`."""

from noetl.events.bodies import CancelRequested, EventBody, StepFailed
from noetl.events.codec import encode
from noetl.events.event_kind import kind_of_body
from noetl.kernel.net.reports import REPORTABLE
from noetl.kernel.plan import Plan
from noetl.kernel.references.event_fit import EVENT_MAX_BYTES
from noetl.kernel.references.externalize import externalize
from noetl.kernel.state.execution_state import ExecutionState
from noetl.model.outcome import ErrorInfo
from noetl.model.reference import encode_value


def oversize(plan: Plan, body: EventBody, execution_id: str) -> int:
    """The bytes that a body takes without all that can leave it, if they are too many; else 0."""
    if len(encode(body)) <= EVENT_MAX_BYTES:
        return 0
    size = len(encode(externalize(plan, None, body, execution_id)[0]))
    return size if size > EVENT_MAX_BYTES else 0


def oversize_error(body: EventBody, size: int) -> ErrorInfo:
    """What is wrong, and with which part of it."""
    sizes = {name: len(encode_value(getattr(body, name))) for name in body.__struct_fields__}
    largest = max(sizes, key=lambda name: sizes[name])
    message = (
        f"{kind_of_body(body).name} takes {size:,} bytes without its large values, and an event has "
        f"{EVENT_MAX_BYTES:,} at most: `{largest}` has too many parts; put them into one mapping or list, "
        "which is stored by itself"
    )
    return ErrorInfo(kind="limit", message=message)


def end_oversized(state: ExecutionState, body: EventBody, size: int) -> EventBody:
    """What is recorded in its place: the run that a worker speaks of fails, or else the execution."""
    error = oversize_error(body, size)
    run = state.runs.get(getattr(body, "run", ""))
    if type(body) in REPORTABLE and run is not None and run.phase == "claimed":
        return StepFailed(run=run.id, error=error, source="server")
    return CancelRequested(reason="limit", error=error)
