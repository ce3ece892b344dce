"""The ids of traces and spans, as W3C Trace Context has them: all follow from what is known of an attempt.

So server and worker need not tell each other any, and who looks at an event knows its span.
"""

import hashlib
import re

_TRACE_ID = re.compile(r"(?!0{32})[0-9a-f]{32}")


def attempt_span_id(idempotency_key: str, attempt: int) -> str:
    """That of one attempt of a task; of the first, it is the one that its outcome has.

    Tries after an error have the same key, and spans of their own.
    """
    return idempotency_key[:16] if attempt == 1 else f"{idempotency_key[:12]}{attempt & 0xFFFF:04x}"


def hashed_span_id(*names: str) -> str:
    """That of something with these names."""
    return hashlib.sha256("/".join(names).encode()).hexdigest()[:16]


def w3c_trace_id(trace_id: str) -> str:
    """The id itself if it is one as others know them, else one that follows from it."""
    if _TRACE_ID.fullmatch(trace_id):
        return trace_id
    return hashlib.sha256(trace_id.encode()).hexdigest()[:32]


def traceparent(trace_id: str, span_id: str) -> str:
    """The header that says to which span a request belongs."""
    return f"00-{w3c_trace_id(trace_id)}-{span_id}-01"
