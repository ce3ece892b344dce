"""How an execution that is not over can go on, as commands to type."""

from noetl.cli.execution_owner import ExecutionOwner
from noetl.cli.report.follow_up import FollowUp
from noetl.kernel.state.execution_state import ExecutionState


def next_commands(
    state: ExecutionState, owner: ExecutionOwner | None, again: FollowUp
) -> list[tuple[str, str]]:
    """Commands and what they do; what to do about a failure stands in its report."""
    name = state.execution_id
    if state.over:
        return []
    ways = [
        (again.executions_command("signal", name, signal), "gives the signal that it waits for")
        for signal in state.listeners
    ]
    if state.paused:
        ways.append((again.executions_command("resume", name), "goes on; it is paused"))
    elif owner is None:
        ways.append((again.resume_command(name), "goes on; nobody runs it now"))
    else:
        ways.append((again.executions_command("watch", name), f"follows what process {owner.pid} does"))
    ways.append((again.executions_command("cancel", name), "ends it"))
    return ways
