"""How an execution that is not over can go on, as commands to type."""

from noetl.cli.execution_owner import Owner
from noetl.cli.report.follow_up import Again
from noetl.kernel.state.execution_state import ExecutionState


def ways_on(state: ExecutionState, owner: Owner | None, again: Again) -> list[tuple[str, str]]:
    """Commands and what they do; what to do about a failure stands in its report."""
    name = state.execution_id
    if state.over:
        return []
    ways = [
        (again.executions("signal", name, signal), "gives the signal that it waits for")
        for signal in state.listeners
    ]
    if state.paused:
        ways.append((again.executions("resume", name), "goes on; it is paused"))
    elif owner is None:
        ways.append((again.resume(name), "goes on; nobody runs it now"))
    else:
        ways.append((again.executions("watch", name), f"follows what process {owner.pid} does"))
    ways.append((again.executions("cancel", name), "ends it"))
    return ways
