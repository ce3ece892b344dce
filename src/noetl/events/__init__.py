"""What happens to executions: the closed union of bodies, their one table, envelope and codec."""

from noetl.events.bodies import EventBody, Source
from noetl.events.codec import FORMAT, Codec, Upcaster, Upcasters, decode, encode
from noetl.events.errors import EventNameUnknown, EventUnreadable, EventUnwritable
from noetl.events.event import Event, envelope
from noetl.events.event_kind import EVENT_KINDS, Entity, EventKind, kind_numbered, kind_of
from noetl.events.identifiers import iteration_id, run_id, task_run_id, token_id
from noetl.events.names import kind_named, matches
from noetl.events.status import Status

__all__ = [
    "EVENT_KINDS",
    "FORMAT",
    "Codec",
    "Entity",
    "Event",
    "EventBody",
    "EventKind",
    "EventNameUnknown",
    "EventUnreadable",
    "EventUnwritable",
    "Source",
    "Status",
    "Upcaster",
    "Upcasters",
    "decode",
    "encode",
    "envelope",
    "iteration_id",
    "kind_named",
    "kind_numbered",
    "kind_of",
    "matches",
    "run_id",
    "task_run_id",
    "token_id",
]
