"""The kernel: what events mean, what follows from a state, what a run wants next. No input or output.

Server side: `handle(state, command, now)` decides, folds, and gives the events to append. Worker side:
`advance(run, now)` says what a run wants, `judge` what an outcome means. Both share one fold.
"""

from noetl.kernel.errors import NotOwner, Refused, WrongSequence
from noetl.kernel.fold import evolve
from noetl.kernel.net.deciding import decide, due, follow, handle, proceed
from noetl.kernel.pipeline.advance import advance, cancelled, pause
from noetl.kernel.pipeline.fold import evolve_run
from noetl.kernel.pipeline.policy import judge, straight
from noetl.kernel.pipeline.tasks import Secrets
from noetl.kernel.plan import Plan
from noetl.kernel.references import Blob, resolve
from noetl.kernel.references.light import lighten
from noetl.kernel.references.whole import Unfetched
from noetl.kernel.replay import dump, dump_run, load, load_run, replay
from noetl.kernel.run import RunState
from noetl.kernel.state import ExecutionState, new_state

__all__ = [
    "Blob",
    "ExecutionState",
    "NotOwner",
    "Plan",
    "Refused",
    "RunState",
    "Secrets",
    "Unfetched",
    "WrongSequence",
    "advance",
    "cancelled",
    "decide",
    "due",
    "dump",
    "dump_run",
    "evolve",
    "evolve_run",
    "follow",
    "handle",
    "judge",
    "lighten",
    "load",
    "load_run",
    "new_state",
    "pause",
    "proceed",
    "replay",
    "resolve",
    "straight",
]
