"""What the kernel refuses.

NoetlError
├── WrongSequence   an event does not fit the state: the history is broken, throw the state away
├── Refused         a command does not apply to the state: tell who gave it
│   └── ReportEarly     what a worker reported before has not come: it sends that first
└── NotOwner        a worker reports under a fence that is no longer valid: it stops
"""

from noetl.model.errors import NoetlError


class WrongSequence(NoetlError):
    """The fold met an event that cannot follow. The state may be half changed and must not be used."""


class Refused(NoetlError):
    """The command does not apply to the execution as it is. Nothing has changed."""


class ReportEarly(Refused):
    """A report that was sent before this one is missing. Nothing has changed."""


class NotOwner(NoetlError):
    """The run is not, or no longer, owned under this fence. Nothing has changed."""
