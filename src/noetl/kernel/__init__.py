"""The kernel: what events mean, what follows from a state, what a run wants next. No input or output.

Server side: `handle(state, command, now)` decides, folds, and gives the events to append. Worker side:
`advance(run, now)` says what a run wants, `judge` what an outcome means. Both share one fold.
"""

from noetl.kernel.errors import NotOwner, Refused, WrongSequence
from noetl.kernel.net.decider import decide, due, follow, handle, proceed
from noetl.kernel.pipeline.interpreter import advance, cancelled, pause
from noetl.kernel.pipeline.policy import judge, straight
from noetl.kernel.pipeline.task_inputs import Secrets
from noetl.kernel.plan import Plan
from noetl.kernel.references import Blob, resolve
from noetl.kernel.references.externalize import lighten
from noetl.kernel.references.resolve import Unfetched
from noetl.kernel.state.execution_state import ExecutionState, new_state
from noetl.kernel.state.fold import evolve
from noetl.kernel.state.replay import dump, dump_run, load, load_run, replay
from noetl.kernel.state.run_fold import evolve_run
from noetl.kernel.state.run_state import RunState

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
