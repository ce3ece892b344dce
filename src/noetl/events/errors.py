"""What can go wrong when events are written, read or looked for."""

from noetl.model.errors import NoetlError


class EventUnwritable(NoetlError):
    """A body holds what JSON cannot say: its values were not normalised where they came in."""


class EventUnreadable(NoetlError):
    """A stored event cannot be decoded. Its execution cannot be folded by this release."""


class EventNameUnknown(NoetlError):
    """No event has this name, dotted name or alias."""

    def __init__(self, name: str, hint: str) -> None:
        super().__init__(f"there is no event `{name}`" + (f"; {hint}" if hint else ""))
        self.name = name
        self.hint = hint
