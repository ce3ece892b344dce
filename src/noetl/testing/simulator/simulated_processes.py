"""Server and worker processes: the real ones, with clock, network, disk and tools of the simulation."""

from typing import TYPE_CHECKING

from starlette.applications import Starlette

from noetl.server.plane.worker_routes import worker_routes
from noetl.server.server_engine import ServerEngine
from noetl.testing.simulator.audit import SLOTS
from noetl.testing.simulator.simulated_network import SimulatedLink
from noetl.testing.simulator.simulated_store import SimulatedStore, StoreFaults
from noetl.testing.simulator.virtual_processes import VirtualProcess
from noetl.worker.remote import RemoteRun
from noetl.worker.session import RemoteWorker, WorkerOptions

if TYPE_CHECKING:
    from noetl.testing.simulator.simulated_world import SimulatedWorld

TTL = 8.0
MOST_SKEW = 1.0
"""Seconds that the clock of a worker may be wrong."""


class SimulatedServer:
    """All of it but the store is lost when it dies."""

    def __init__(self, world: "SimulatedWorld", name: str) -> None:
        self._world = world
        self.process = VirtualProcess(name, world.clock, world.random)
        self.engine: ServerEngine | None = None
        self.process.start(self._serve())

    async def _serve(self) -> None:
        world, faults = self._world, self._world.faults
        disk = StoreFaults(
            delay=lambda: world.random.uniform(0, 0.01) if world.unlucky(faults.slow_disk) else 0.0,
            before=lambda: world.unlucky(faults.crash_before_commit),
            after=lambda: world.unlucky(faults.crash_after_commit),
        )
        store = SimulatedStore(world.store, disk, self._die, world.audit.check_commit)
        async with ServerEngine(
            store,
            playbooks=world.playbooks,
            results=world.network.results,
            watch=world.audit.check_durable,
            ttl=TTL,
            system=self.process.system,
        ) as engine:
            self.engine = engine
            routes = worker_routes(engine.plane, lambda _connection: "simulated")
            world.network.listen(self.process, Starlette(routes=routes))
            await engine.wait_until_stopped()

    def _die(self, moment: str) -> None:
        self._world.crash_server(moment)

    def holds_back(self, execution_id: str) -> bool:
        """Whether it has yet to write what it has decided about this execution."""
        if self.engine is None:
            return False
        log = self.engine._service.commit_log
        return execution_id in log._held or execution_id in log._dirty

    def leases_left(self) -> list[str]:
        """Runs that it believes somebody owns."""
        if self.engine is None:
            return []
        plane = self.engine.plane
        leases = [lease for session in plane.sessions for lease in session.leases.values()]
        return [f"{lease.live.execution_id}/{lease.run}" for lease in (*leases, *plane._leases)]


class SimulatedWorker:
    """After a crash there is a new one under a new name."""

    def __init__(self, world: "SimulatedWorld", name: str) -> None:
        self._world = world
        skew = world.random.uniform(-MOST_SKEW, MOST_SKEW) if world.faults.skewed_clocks else 0.0
        self.name = name
        self.process = VirtualProcess(name, world.clock, world.random, skew)
        self.link = SimulatedLink(world.network, self.process, self._on_joined)
        self.worker: RemoteWorker | None = None
        self.leaving = False
        self.process.start(self._work())

    async def _work(self) -> None:
        world = self._world
        options = WorkerOptions(servers=("simulated",), name=self.name, slots=SLOTS)
        tools = world.tools.of_worker(self.process.system, world.tool_time)
        self.worker = RemoteWorker(options, tools, self.link)
        await self.worker.run()

    def _on_joined(self, session: str) -> None:
        self._world.sessions[session] = self.name

    def drain(self) -> None:
        self.leaving = True
        if self.worker is not None:
            self.process.call_after(0, self.worker.drain)

    @property
    def busy(self) -> bool:
        """Whether an attempt is in flight."""
        return self.worker is not None and self.worker._runner.in_flight > 0

    def open_runs(self) -> list[RemoteRun]:
        return self.worker._executions.open_runs() if self.worker is not None else []

    def left_over(self) -> str:
        """What it still holds; empty if it could be stopped without anybody noticing."""
        if self.worker is None:
            return ""
        runs = [run.lease for run in self.open_runs()]
        reporter = self.worker._reporter
        held = self.worker._runner.claimed
        if runs or held or not reporter.idle or reporter.unreported:
            return f"{runs}, {held} claimed, {reporter.unreported} events unreported, idle: {reporter.idle}"
        return ""
