"""The kernel: what events mean, what follows from a state, what a run wants next. No input or output.

Server side: `handle(state, command, now)` decides, folds, and gives the events to append. Worker side:
`advance(run, now)` says what a run wants, `judge` what an outcome means. Both share one fold.
"""

from noetl.kernel.errors import NotOwner, Refused, WrongSequence
from noetl.kernel.net.decider import decide, decide_next, decision_due, handle, proceed
from noetl.kernel.pipeline.interpreter import advance, cancel_run, pause_run
from noetl.kernel.pipeline.policy import judge, judge_without_policy
from noetl.kernel.pipeline.task_inputs import Secrets
from noetl.kernel.plan import Plan
from noetl.kernel.references import Blob, resolve_references
from noetl.kernel.references.externalize import externalize
from noetl.kernel.references.resolve import Unfetched
from noetl.kernel.state.execution_state import ExecutionState, new_state
from noetl.kernel.state.fold import evolve
from noetl.kernel.state.replay import dump_run, dump_state, load_run, load_state, replay
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
    "cancel_run",
    "decide",
    "decide_next",
    "decision_due",
    "dump_run",
    "dump_state",
    "evolve",
    "evolve_run",
    "externalize",
    "handle",
    "judge",
    "judge_without_policy",
    "load_run",
    "load_state",
    "new_state",
    "pause_run",
    "proceed",
    "replay",
    "resolve_references",
]
