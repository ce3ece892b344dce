"""The people outside: they start the execution, send what it waits for, pause, cancel and retry it."""

from functools import partial
from typing import TYPE_CHECKING

from noetl.kernel.errors import Refused
from noetl.kernel.net.commands import Cancel, Command, Pause, Request, Resume, Retry, Signal
from noetl.kernel.state.execution_state import ExecutionState
from noetl.testing.simulator.virtual_clock import SECOND

if TYPE_CHECKING:
    from noetl.testing.simulator.simulated_world import SimulatedWorld

TICK = 2.0
PAUSE = 6 * SECOND


class SimulatedOperator:
    """Asks again until it sees that what it asked for has happened."""

    def __init__(self, world: "SimulatedWorld") -> None:
        self.world = world
        self.paused_at = 0
        for moment, operation in world.scenario.operations:
            world.clock.later(moment, partial(self.operate, operation))

    def tick(self) -> None:
        if self.world.settled:
            return
        root = self.world.root
        if root is None:
            self.send_command(self.world.execution_id, Request(), self.world.scenario.document.path)
        for execution, state in list(self.world.audit.mirrors.items()):
            self.unblock(execution, state)
        self.world.clock.later(TICK, self.tick)

    def unblock(self, execution: str, state: ExecutionState) -> None:
        """Give an execution what it cannot go on without."""
        if state.paused and self.world.clock.now >= self.paused_at + PAUSE:
            self.send_command(execution, Resume())
        if (state.listeners or state.waiting) and not self.world.unlucky(0.5):
            self.send_command(execution, Signal("go", 1))
        if self.world.wants_retry(state):
            self.send_command(execution, Retry())

    def operate(self, operation: str) -> None:
        match operation:
            case "pause":
                self.paused_at = self.world.clock.now
                self.send_command(self.world.execution_id, Pause())
                self.world.clock.later(
                    self.world.random.uniform(0, 4),
                    lambda: self.send_command(self.world.execution_id, Resume()),
                )
            case "cancel":
                self.send_command(self.world.execution_id, Cancel())
            case _:
                self.send_command(self.world.execution_id, Signal("go", 1))

    def send_command(self, execution: str, command: Command, path: str = "") -> None:
        server = self.world.any_server()

        def deliver() -> None:
            if not path and execution not in self.world.audit.mirrors:
                return
            if isinstance(command, Retry) and not self.world.wants_retry(self.world.audit.mirrors[execution]):
                return
            try:
                server.submit(execution, command, path)
            except Refused as refusal:
                self.world.note(server.name, f"refuses {type(command).__name__}: {refusal}")

        self.world.send(server, deliver)
