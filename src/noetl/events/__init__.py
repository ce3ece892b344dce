"""What happens to executions: the closed union of bodies, their one table, envelope and codec."""

from noetl.events.bodies import EventBody, EventSource
from noetl.events.codec import FORMAT, Codec, Upcaster, Upcasters, decode, encode
from noetl.events.errors import EventNameUnknown, EventUnreadable, EventUnwritable
from noetl.events.event import Event, envelope, event_matches
from noetl.events.event_kind import (
    EVENT_KINDS,
    EventEntity,
    EventKind,
    EventStatus,
    kind_named,
    kind_numbered,
    kind_of_body,
)
from noetl.events.identifiers import iteration_id, run_id, task_run_id, token_id

__all__ = [
    "EVENT_KINDS",
    "FORMAT",
    "Codec",
    "Event",
    "EventBody",
    "EventEntity",
    "EventKind",
    "EventNameUnknown",
    "EventSource",
    "EventStatus",
    "EventUnreadable",
    "EventUnwritable",
    "Upcaster",
    "Upcasters",
    "decode",
    "encode",
    "envelope",
    "event_matches",
    "iteration_id",
    "kind_named",
    "kind_numbered",
    "kind_of_body",
    "run_id",
    "task_run_id",
    "token_id",
]
