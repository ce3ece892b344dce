"""How to go on with an execution, as commands to type."""

from collections.abc import Sequence

from noetl.cli.report.follow_up import FollowUp
from noetl.cli.store_access import ExecutionOwner
from noetl.kernel.state.execution_state import ExecutionState


def next_commands(
    state: ExecutionState, owner: ExecutionOwner | None, follow_up: FollowUp
) -> list[tuple[str, str]]:
    """Commands for one that is not over, and what they do; those for a failure stand in its report."""
    name = state.execution_id
    if state.over:
        return []
    commands = [
        (follow_up.executions_command("signal", name, signal), "gives the signal that it waits for")
        for signal in state.listeners
    ]
    if state.paused:
        commands.append((follow_up.executions_command("resume", name), "goes on; it is paused"))
    elif owner is None:
        commands.append((follow_up.resume_command(name), "goes on; nobody runs it now"))
    else:
        follows = f"follows what process {owner.pid} does"
        commands.append((follow_up.executions_command("watch", name), follows))
    commands.append((follow_up.executions_command("cancel", name), "ends it"))
    return commands


def command_lines(commands: Sequence[tuple[str, str]]) -> list[str]:
    """The commands below each other, after an empty line, with what they do beside them."""
    width = max((len(command) for command, _ in commands), default=0)
    return ["", *(f"  {command:<{width}}  {meaning}" for command, meaning in commands)] if commands else []
