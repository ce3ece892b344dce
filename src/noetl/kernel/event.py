"""An event with its place in the history of an execution."""

from msgspec import Struct

from noetl.events.bodies import EventBody


class Event(Struct, frozen=True):
    """`seq` counts from 1 without gaps; `ts` is when it was recorded, in microseconds since 1970, UTC."""

    seq: int
    ts: int
    body: EventBody
