"""The worker in the process of a server: like any other, but that its messages go through no network."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from msgspec import Struct

from noetl.dsl.document.kinds import Kinds
from noetl.loader import installed_kinds
from noetl.model.run_rows import DEFAULT_POOL, SERVER_POOL
from noetl.ports.control import (
    Beaten,
    Message,
    MessageMalformed,
    Register,
    decode_from_worker,
    encode_message,
)
from noetl.ports.store import StoreError
from noetl.server.plane.sessions import WorkerSession
from noetl.server.plane.worker_plane import WorkerLocation, WorkerPlane
from noetl.tools.host.worker_tools import Tools
from noetl.worker.heartbeat import LeaseClock
from noetl.worker.server_link import ServerConnection, ServerUnavailable
from noetl.worker.session import RemoteWorker, WorkerOptions

NAME = "embedded"
HANDED_ON = "noop"
"""What a server does itself though it runs no tasks: hybrid playbooks want that."""


class EmbeddedOptions(Struct, frozen=True, kw_only=True):
    """What a server runs itself.

    `serves_default`: the runs of the pool `default`. `allow_local`: those of playbooks that ask for it.
    """

    serves_default: bool = False
    allow_local: bool = False
    slots: int
    directory: Path
    allow_kinds: tuple[str, ...] = ()
    release: str = ""
    traced: bool = False


class EmbeddedWorker:
    """Takes runs from the plane of its own server until it is told to stop. A test may await `run`."""

    def __init__(self, plane: WorkerPlane, options: EmbeddedOptions) -> None:
        kinds = installed_kinds().with_allowed(options.allow_kinds)
        runs_tasks = options.serves_default or options.allow_local
        if not runs_tasks:
            kinds = Kinds([kind for kind in kinds if kind.name == HANDED_ON])
        self._tools = Tools(kinds, traced=options.traced)
        worker_options = WorkerOptions(
            servers=("",),
            name=NAME,
            release=options.release,
            pools=(DEFAULT_POOL, SERVER_POOL) if options.serves_default else (SERVER_POOL,),
            slots=options.slots,
            directory=options.directory,
            allow_kinds=options.allow_kinds,
        )
        self._worker = RemoteWorker(
            worker_options, self._tools, _PlaneLink(plane, "embedded" if runs_tasks else "server")
        )

    async def run(self) -> None:
        """Raises what nobody should."""
        try:
            await self._worker.run()
        finally:
            await self._tools.close()

    def drain(self) -> None:
        """Takes nothing more; attempts in flight end and are reported, the rest is given back."""
        self._worker.drain()

    async def kill(self) -> None:
        """Interrupts everything, and gives back what it holds."""
        await self._worker.kill()


class _PlaneLink:
    """See `noetl.worker.server_link.ServerLink`."""

    def __init__(self, plane: WorkerPlane, location: WorkerLocation) -> None:
        self._plane = plane
        self._location = location
        self._session: WorkerSession | None = None
        self.results = plane.results

    def join(self, url: str, session: str) -> None:  # noqa: ARG002 - there is one server
        self._session = self._plane.sessions.get(session)

    @asynccontextmanager
    async def connect(self, url: str) -> AsyncIterator[ServerConnection]:  # noqa: ARG002 - likewise
        connection = _PlaneConnection(self._plane, self._location)
        try:
            yield connection
        finally:
            connection.close()

    async def request(self, message: bytes) -> bytes:
        answer = await self._plane.answer(self._known_session(), decode_from_worker(message))
        if answer is None:
            raise ServerUnavailable("the server has no answer to this")
        return encode_message(answer)

    def start_heartbeat(self, leases: LeaseClock) -> Callable[[], None]:
        """In the loop: where that stands still, the server does, and it counts nobody's leases then."""
        task = asyncio.get_running_loop().create_task(self._beat(leases))

        def end() -> None:
            task.cancel()

        return end

    async def _beat(self, leases: LeaseClock) -> None:
        while True:
            await asyncio.sleep(leases.wait)
            session, sent = self._session, leases.monotonic()
            if session is not None:
                with suppress(StoreError):  # the next beat may be heard
                    leases.beaten(sent, Beaten(known=await self._plane.beat(session)))

    def _known_session(self) -> WorkerSession:
        session = self._session
        if session is None or self._plane.sessions.get(session.id) is not session:
            raise ServerUnavailable("this session is over")
        return session


class _PlaneConnection:
    """See `noetl.worker.server_link.ServerConnection`."""

    def __init__(self, plane: WorkerPlane, location: WorkerLocation) -> None:
        self._plane = plane
        self._location = location
        self._session: WorkerSession | None = None
        self._received: list[Message] = []
        self._superseded: asyncio.Task[bool] | None = None

    async def send(self, frame: bytes) -> None:
        message = decode_from_worker(frame)
        if isinstance(message, Register):
            self._session, welcome = await self._plane.register(message, location=self._location)
            if self._session is not None:
                self._superseded = asyncio.ensure_future(self._session.superseded.wait())
            self._received.append(welcome)
        elif self._session is None:
            raise MessageMalformed("a worker registers first")
        elif (answer := await self._plane.answer(self._session, message)) is not None:
            self._session.outgoing.put(answer)

    async def receive(self) -> bytes | None:
        while not self._received:
            session, superseded = self._session, self._superseded
            if session is None or superseded is None or superseded.done():
                return None
            taking = asyncio.ensure_future(session.outgoing.take())
            try:
                await asyncio.wait([taking, superseded], return_when=asyncio.FIRST_COMPLETED)
            finally:
                if not taking.done():
                    taking.cancel()
            if taking.done() and not taking.cancelled():
                self._received += taking.result()
        return encode_message(self._received.pop(0))

    def close(self) -> None:
        if self._superseded is not None:
            self._superseded.cancel()
        if self._session is not None:
            self._plane.disconnected(self._session, self._session.outgoing)
