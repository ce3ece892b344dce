"""States in a form that outlives releases: plain values, without what is as it is by default."""

from typing import Any

from msgspec import NODEFAULT, Struct
from msgspec.structs import fields

from noetl.kernel.plan import Plan, StepPlan
from noetl.kernel.state.agenda import OrderedSet
from noetl.kernel.state.execution_state import ExecutionState, QueuedSignal
from noetl.kernel.state.run_state import ExecutionInputs
from noetl.kernel.state.variables import Variables

_YOUNGER = {
    "StepSummary": {"failed", "cancelled", "failed_after", "cancelled_after", "worked"},
    "ExecutionState": {"fork", "last_ts", "redrivable"},
    "LoopState": {"kept_frames"},
    "RunState": {"since", "worked"},
}
"""Fields that follow from the events and that the releases which recorded did not know."""


def normal_form(state: ExecutionState) -> dict[str, Any]:
    """Equal for states that mean the same, also across releases that give them new optional fields."""
    return {
        "execution_id": state.execution_id,
        "workload": state.inputs.workload,
        "state": _plain(state),
    }


def _plain(value: Any) -> Any:
    match value:
        case QueuedSignal():
            return _plain(value.payload)  # all that older releases knew of it
        case Struct():
            return {
                field.encode_name: _plain(member)
                for field in fields(value)
                if field.name not in _YOUNGER.get(type(value).__name__, ())
                and not isinstance(member := getattr(value, field.name), Plan | ExecutionInputs)
                and _plain(member) != _default(field)
            }
        case Variables():
            return value.values
        case StepPlan():
            return value.name
        case OrderedSet():
            return list(value)
        case set():
            return sorted(value)
        case dict():
            return {str(key): _plain(item) for key, item in value.items()}
        case list() | tuple():
            return [_plain(item) for item in value]
        case _:
            return value


def _default(field: Any) -> Any:
    if field.default is not NODEFAULT:
        return _plain(field.default)
    return _plain(field.default_factory()) if field.default_factory is not NODEFAULT else NODEFAULT
