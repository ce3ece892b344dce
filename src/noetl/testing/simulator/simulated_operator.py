"""The people outside: they start the execution, send what it waits for, pause, cancel and retry it."""

from functools import partial
from typing import TYPE_CHECKING

from noetl.kernel import ExecutionState, Refused
from noetl.kernel.net.commands import Cancel, Command, Pause, Request, Resume, Retry, Signal
from noetl.testing.simulator.virtual_clock import SECOND

if TYPE_CHECKING:
    from noetl.testing.simulator.simulated_world import World

TICK = 2.0
PAUSE = 6 * SECOND


class Operator:
    """Asks again until it sees that what it asked for has happened."""

    def __init__(self, world: "World") -> None:
        self.world = world
        self.paused_at = 0
        for moment, operation in world.scenario.operations:
            world.clock.later(moment, partial(self.operate, operation))

    def tick(self) -> None:
        if self.world.settled:
            return
        root = self.world.root
        if root is None:
            self.ask(self.world.name, Request(), self.world.scenario.document.path)
        for execution, state in list(self.world.audit.mirrors.items()):
            self.help(execution, state)
        self.world.clock.later(TICK, self.tick)

    def help(self, execution: str, state: ExecutionState) -> None:
        """Give an execution what it cannot go on without."""
        if state.paused and self.world.clock.now >= self.paused_at + PAUSE:
            self.ask(execution, Resume())
        if (state.listeners or state.waiting) and not self.world.unlucky(0.5):
            self.ask(execution, Signal("go", 1))
        if self.world.wants_retry(state):
            self.ask(execution, Retry())

    def operate(self, operation: str) -> None:
        match operation:
            case "pause":
                self.paused_at = self.world.clock.now
                self.ask(self.world.name, Pause())
                self.world.clock.later(
                    self.world.random.uniform(0, 4), lambda: self.ask(self.world.name, Resume())
                )
            case "cancel":
                self.ask(self.world.name, Cancel())
            case _:
                self.ask(self.world.name, Signal("go", 1))

    def ask(self, execution: str, command: Command, path: str = "") -> None:
        server = self.world.any_server()

        def given() -> None:
            if not path and execution not in self.world.audit.mirrors:
                return
            if isinstance(command, Retry) and not self.world.wants_retry(self.world.audit.mirrors[execution]):
                return
            try:
                server.give(execution, command, path)
            except Refused as refusal:
                self.world.note(server.name, f"refuses {type(command).__name__}: {refusal}")

        self.world.send(server, given)
