"""Events by name, as people write it: `StepDone`, `step.done`, or an alias from the drafts."""

from difflib import get_close_matches

from noetl.events.errors import EventNameUnknown
from noetl.events.event import Event
from noetl.events.event_kind import EVENT_KINDS, EventKind

_NAMED = {name: kind for kind in EVENT_KINDS for name in (kind.name, kind.dotted, *kind.aliases)}


def kind_named(name: str) -> EventKind:
    """The row of a name; `EventNameUnknown`, with the nearest name as its hint, if there is none."""
    try:
        return _NAMED[name]
    except KeyError:
        raise EventNameUnknown(name, _hint(name)) from None


def event_matches(name: str, event: Event) -> bool:
    """Whether the event is of this name; `EventNameUnknown` if no event ever is."""
    return isinstance(event.body, kind_named(name).body)


def _hint(name: str) -> str:
    known = {known.lower(): known for known in _NAMED}
    near = get_close_matches(name.lower(), known, 1)
    return f"did you mean `{known[near[0]]}`?" if near else ""
