"""The network between workers and their server: the server's own routes, behind wires that are late or cut.

Frames of one connection keep their order, as those of TCP do, but where requests of their own stand for them.
A cut loses what is on its way, and either end may notice it later than the other.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from random import Random
from typing import Any

import msgspec
from starlette.types import ASGIApp

from noetl.ports.control import (
    SESSION_HEADER,
    SUBPROTOCOL,
    Heartbeat,
    MessageMalformed,
    decode_from_server,
    encode_message,
)
from noetl.ports.results import ResultStore
from noetl.stores.results.memory_backend import MemoryResults
from noetl.testing.simulator.scenario import Faults
from noetl.testing.simulator.virtual_processes import VirtualClock, VirtualProcess
from noetl.worker.heartbeat import LeaseClock
from noetl.worker.server_link import ServerConnection, ServerUnavailable

LATENCY = 0.001
MOMENT = 1e-6
"""Seconds between two frames that arrive one after the other."""
NOTICE = 0.5
"""Seconds until the other end of a cut connection knows, at most, where no packet says it at once."""
OVERTAKEN = 0.3
"""Seconds by which a message may be late that others overtake, at most."""
PATIENCE = 5.0
"""Seconds that a request waits for its answer."""


class SimulatedNetwork:
    """Who listens, and what happens to what is sent. After `faults.until` it is perfect."""

    def __init__(self, clock: VirtualClock, faults: Faults, random: Random) -> None:
        self.clock = clock
        self.faults = faults
        self.random = random
        self.server: VirtualProcess | None = None
        self.app: ASGIApp | None = None
        self.results: ResultStore = MemoryResults()
        self.on_trouble: Callable[[VirtualProcess], None] = lambda _: None
        """Hears of the workers whose messages do not arrive as they should."""
        self.script: Callable[[str, bytes], Sequence[float] | None] = lambda *_: None
        """Says of a frame from or to a worker after how many seconds it arrives, perhaps several times.

        None leaves it to chance; with no time at all, the connection is cut.
        """

    @property
    def perfect(self) -> bool:
        return self.clock.now >= self.faults.until

    def listen(self, server: VirtualProcess, app: ASGIApp) -> None:
        self.server, self.app = server, app

    def unlucky(self, chance: float) -> bool:
        return chance > 0 and not self.perfect and self.random.random() < chance

    def delay(self) -> float:
        if self.perfect:
            return LATENCY
        faults, random = self.faults, self.random
        if self.unlucky(faults.late):
            return random.uniform(2, 20)
        return random.uniform(0, 0.5) if random.random() < faults.jitter else LATENCY

    def listening(self) -> tuple[VirtualProcess, ASGIApp] | None:
        if self.server is None or self.app is None or not self.server.alive:
            return None
        return self.server, self.app


class _Wire:
    """One direction of a connection: what is sent arrives in order, until it is cut."""

    def __init__(self, network: SimulatedNetwork, to: VirtualProcess) -> None:
        self._network = network
        self._to = to
        self._arrives = 0.0
        self._cut = False
        self.inbox: asyncio.Queue[bytes | None] = asyncio.Queue()

    def send(self, frame: bytes | None) -> float:
        """When it arrives; None is the end of the connection."""
        network, now = self._network, self._network.clock.now
        if network.unlucky(network.faults.reorder):
            arrives = now + network.random.uniform(0, OVERTAKEN)
        else:
            self._arrives = arrives = max(self._arrives + MOMENT, now + network.delay())
        self._to.call_after(arrives - now, partial(self._arrive, frame))
        return arrives - now

    def send_after(self, seconds: float, frame: bytes) -> None:
        self._to.call_after(seconds, partial(self._arrive, frame))

    def cut(self, notice: float) -> None:
        self._cut = True
        self._to.call_after(notice, partial(self.inbox.put_nowait, None))

    def _arrive(self, frame: bytes | None) -> None:
        if not self._cut:
            self.inbox.put_nowait(frame)


class _SimulatedConnection:
    """See `noetl.worker.server_link.ServerConnection`: the worker's end, and the server's as ASGI has it."""

    def __init__(self, network: SimulatedNetwork, worker: VirtualProcess, server: VirtualProcess) -> None:
        self._network = network
        self._worker = worker
        self._up = _Wire(network, server)
        self._down = _Wire(network, worker)
        self._server = server
        self.open = True

    async def send(self, frame: bytes) -> None:
        if not self.open or not self._server.alive:
            raise ServerUnavailable("the connection is gone")
        self._pass(self._up, frame)

    async def receive(self) -> bytes | None:
        frame = await self._down.inbox.get()
        if frame is None:
            self.open = False
        return frame

    def close(self) -> None:
        """The worker leaves it."""
        if self.open:
            self.open = False
            self._up.send(None)

    def _pass(self, wire: _Wire, frame: bytes) -> None:
        network = self._network
        if (deliveries := network.script(self._worker.name, frame)) is not None:
            self._deliver(wire, frame, deliveries)
            return
        if network.unlucky(network.faults.cut):
            self.cut()
            return
        if wire.send(frame) > 1:
            network.on_trouble(self._worker)
        if network.unlucky(network.faults.duplicate) and _is_repeatable(frame):
            wire.send(frame)

    def _deliver(self, wire: _Wire, frame: bytes, deliveries: Sequence[float]) -> None:
        for seconds in deliveries:
            wire.send_after(seconds, frame)
        if not deliveries:
            self.cut()

    def cut(self) -> None:
        """What is on its way is lost."""
        network = self._network
        network.on_trouble(self._worker)
        self._up.cut(network.random.uniform(0, NOTICE))
        self._down.cut(network.random.uniform(0, NOTICE))

    async def serve(self, app: ASGIApp) -> None:
        """The server's end of it, in the server's process."""
        accepted = False

        async def receive() -> dict[str, Any]:
            nonlocal accepted
            if not accepted:
                accepted = True
                return {"type": "websocket.connect"}
            frame = await self._up.inbox.get()
            if frame is None:
                return {"type": "websocket.disconnect", "code": 1006}
            return {"type": "websocket.receive", "bytes": frame}

        async def send(message: Any) -> None:
            if message["type"] == "websocket.send":
                self._pass(self._down, message["bytes"])
            elif message["type"] == "websocket.close":
                self._down.send(None)

        scope = {
            "type": "websocket",
            "path": "/api/worker/stream",
            "subprotocols": [SUBPROTOCOL],
            "headers": [],
            "query_string": b"",
        }
        await app(scope, receive, send)

    def lose_server(self) -> None:
        """The server's process is gone: its system says so, soon."""
        self._down.cut(self._network.random.uniform(0, NOTICE))


def _is_repeatable(frame: bytes) -> bool:
    """A connection is greeted once."""
    return b'"type":"register' not in frame and b'"type":"rejected' not in frame


class SimulatedLink:
    """See `noetl.worker.server_link.ServerLink`."""

    def __init__(
        self, network: SimulatedNetwork, worker: VirtualProcess, on_joined: Callable[[str], None]
    ) -> None:
        self._network = network
        self._worker = worker
        self._on_joined = on_joined
        self._session = ""
        self.results = network.results
        self.connections: list[_SimulatedConnection] = []

    def join(self, url: str, session: str) -> None:  # noqa: ARG002 - there is one server
        self._session = session
        self._on_joined(session)

    @asynccontextmanager
    async def connect(self, url: str) -> AsyncIterator[ServerConnection]:
        network = self._network
        delay = network.delay()
        if delay > 1:
            network.on_trouble(self._worker)
        await asyncio.sleep(delay)
        listening = network.listening()
        if listening is None or network.unlucky(network.faults.cut):
            raise ServerUnavailable(f"{url} refuses the connection")
        server, app = listening
        connection = _SimulatedConnection(network, self._worker, server)
        self.connections = [each for each in self.connections if each.open] + [connection]
        server.call_after(0, lambda: server.spawn(connection.serve, app))
        try:
            yield connection
        finally:
            connection.close()

    async def request(self, message: bytes) -> bytes:
        return await self._post("fetch", message)

    def start_heartbeat(self, leases: LeaseClock) -> Callable[[], None]:
        """In the worker's loop: its thread stands still when the process does."""
        task = self._worker.loop.create_task(self._beat(leases))
        return task.cancel  # type: ignore[return-value]  # nobody asks whether it did

    async def _beat(self, leases: LeaseClock) -> None:
        while True:
            await asyncio.sleep(leases.wait)
            sent = leases.monotonic()
            try:
                answer = await self._post("heartbeat", encode_message(Heartbeat()), leases.patience)
                leases.beaten(sent, decode_from_server(answer))
            except (ServerUnavailable, MessageMalformed):
                continue

    async def _post(self, endpoint: str, message: bytes, patience: float = PATIENCE) -> bytes:
        """One message in a request of its own, which may arrive twice. Raises ServerUnavailable."""
        network, loop = self._network, self._worker.loop
        answered: asyncio.Future[tuple[int, bytes]] = loop.create_future()
        worker = self._worker

        def answer(status: int, body: bytes) -> None:
            if not answered.done():
                answered.set_result((status, body))

        def deliver() -> None:
            listening = network.listening()
            if listening is not None:
                server, app = listening
                reply = partial(_reply, network, worker, answer)
                server.spawn(_serve_request, app, endpoint, message, self._session, reply)

        for _ in range(2 if network.unlucky(network.faults.duplicate) else 1):
            if network.server is None or network.unlucky(network.faults.cut):
                network.on_trouble(worker)
            else:
                delay = network.delay()
                if delay > 1:
                    network.on_trouble(worker)
                network.server.call_after(delay, deliver)
        try:
            status, body = await asyncio.wait_for(answered, patience)
        except TimeoutError:
            network.on_trouble(worker)
            raise ServerUnavailable("no answer") from None
        if status != 200:
            raise ServerUnavailable(f"the server answers {status}")
        (raw,) = msgspec.json.decode(body, type=tuple[msgspec.Raw])
        return bytes(raw)


def _reply(
    network: SimulatedNetwork,
    worker: VirtualProcess,
    answer: Callable[[int, bytes], None],
    status: int,
    body: bytes,
) -> None:
    if network.unlucky(network.faults.cut):
        network.on_trouble(worker)
        return
    delay = network.delay()
    if delay > 1:
        network.on_trouble(worker)
    worker.call_after(delay, partial(answer, status, body))


async def _serve_request(
    app: ASGIApp, endpoint: str, message: bytes, session: str, reply: Callable[[int, bytes], None]
) -> None:
    status = 0
    body = b""
    scope = {
        "type": "http",
        "method": "POST",
        "path": f"/api/worker/{endpoint}",
        "headers": [(SESSION_HEADER.encode(), session.encode())],
        "query_string": b"",
    }

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": message, "more_body": False}

    async def send(part: Any) -> None:
        nonlocal status, body
        if part["type"] == "http.response.start":
            status = part["status"]
        else:
            body += part.get("body", b"")

    await app(scope, receive, send)
    reply(status, body)
