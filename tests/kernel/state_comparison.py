"""States of executions, side by side."""

import json
from typing import Any

from noetl.kernel.state.execution_state import ExecutionState
from noetl.kernel.state.fold import evolve
from noetl.kernel.state.replay import dump_state, load_state, replay
from tests.kernel.driver import EXECUTION, Driver


def differences(left: ExecutionState, right: ExecutionState) -> list[Any]:
    """The fields in which two states differ; comparing whole states would say no more than that they do."""
    return [
        (name, getattr(left, name), getattr(right, name))
        for name in left.__struct_fields__
        if getattr(left, name) != getattr(right, name)
    ]


def from_snapshot(driver: Driver, where: float) -> ExecutionState:
    """The state that a snapshot and the events after it give; `where` is the part of the history before it."""
    events = driver.events
    cut = round(where * len(events))
    snapshot = json.loads(json.dumps(dump_state(replay(driver.plan, EXECUTION, events[:cut]))))
    state = load_state(driver.plan, snapshot)
    for event in events[cut:]:
        evolve(state, event)
    return state
