"""How large a task's result may be in the log, as `spec.result` says it."""

from noetl.kernel.result_rules import INLINE_MAX_BYTES, PREVIEW_MAX_BYTES
from noetl.ports.tool import Call


def inline_limit(call: Call) -> int:
    """Bytes of JSON up to which a result stays a value; a larger one is stored apart."""
    limit = _result_knob(call, "inline_max_bytes")
    return INLINE_MAX_BYTES if limit is None else min(limit, INLINE_MAX_BYTES)


def preview_limit(call: Call) -> int:
    """Bytes that a preview may take."""
    limit = _result_knob(call, "preview_max_bytes")
    return PREVIEW_MAX_BYTES if limit is None else limit


def _result_knob(call: Call, knob: str) -> int | None:
    spec = call.spec.get("result")
    value = spec.get(knob) if isinstance(spec, dict) else None
    return value if isinstance(value, int) else None
