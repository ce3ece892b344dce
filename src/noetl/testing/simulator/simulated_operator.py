"""The people outside: they start the execution, send what it waits for, pause, cancel and retry it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from noetl.engine.catalog.playbook_record import PlaybookSource
from noetl.engine.inbox import RemoteCommand
from noetl.kernel.errors import Refused
from noetl.kernel.net.commands import Cancel, Pause, Resume, Signal
from noetl.kernel.state.execution_state import ExecutionState
from noetl.ports.store import ExecutionUnknown, StoreClosed
from noetl.server.server_engine import ServerEngine

if TYPE_CHECKING:
    from noetl.testing.simulator.simulated_world import SimulatedWorld

TICK = 2.0
PAUSE = 6.0


class SimulatedOperator:
    """Asks again until it sees that what it asked for has happened."""

    def __init__(self, world: "SimulatedWorld") -> None:
        self._world = world
        self._paused_at = 0.0

    async def run(self) -> None:
        for moment, operation in self._world.scenario.operations:
            self._world.later(moment, lambda name=operation: self._operate(name))  # type: ignore[misc]  # bound now
        while not self._world.settled:
            self._tick()
            await asyncio.sleep(TICK)

    def _tick(self) -> None:
        world = self._world
        if world.root is None:
            self._ask(self._begin)
        for execution_id, state in list(world.audit.mirrors.items()):
            self._unblock(execution_id, state)

    async def _begin(self, engine: ServerEngine) -> None:
        document = self._world.scenario.document
        source = PlaybookSource(document.text, "simulated.yaml", "/simulated/simulated.yaml")
        await engine.begin(source, idempotency_key="simulated")

    def _unblock(self, execution_id: str, state: ExecutionState) -> None:
        """Gives an execution what it cannot go on without."""
        world = self._world
        if state.paused and world.clock.now >= self._paused_at + PAUSE:
            self._submit(execution_id, Resume())
        if (state.listeners or state.waiting) and not world.unlucky(0.5):
            self._submit(execution_id, Signal("go", 1))
        if world.wants_retry(state):
            self._ask(self._retry)

    async def _retry(self, engine: ServerEngine) -> None:
        root = self._world.root
        if root is not None and self._world.wants_retry(root):
            await engine.retry(root.execution_id)

    def _operate(self, operation: str) -> None:
        world = self._world
        if world.root is None or world.settled:
            return
        root = world.root.execution_id
        match operation:
            case "pause":
                self._paused_at = world.clock.now
                self._submit(root, Pause())
                world.later(world.random.uniform(0, 4), lambda: self._submit(root, Resume()))
            case "cancel":
                self._submit(root, Cancel())
            case _:
                self._submit(root, Signal("go", 1))

    def _submit(self, execution_id: str, command: RemoteCommand) -> None:
        async def submit(engine: ServerEngine) -> None:
            if await engine.take_up(execution_id):
                await engine.submit(execution_id, command)

        self._ask(submit)

    def _ask(self, request: Callable[[ServerEngine], Awaitable[object]]) -> None:
        """Over the network: it may be lost, or answered when nobody waits any more."""
        world = self._world
        if world.unlucky(world.faults.cut):
            return
        server = world.server

        async def serve() -> None:
            if server.engine is None:
                return
            try:
                await request(server.engine)
            except (Refused, ExecutionUnknown, StoreClosed) as refusal:
                world.note(server.process.name, f"refuses: {refusal}")

        server.process.call_after(world.network.delay(), lambda: server.process.spawn(serve))
