"""A worker of a server: one connection, the runs that it brings, and what drives them."""

import asyncio
import random
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, assert_never

import aiohttp
import msgspec
from msgspec import Struct

from noetl.credentials.providers import Providers
from noetl.credentials.resolver import CredentialResolver
from noetl.kernel.state.execution_state import Blob
from noetl.model.errors import NoetlError
from noetl.ports.control import (
    PROTOCOL,
    SUBPROTOCOL,
    Ack,
    Beaten,
    ClaimCredit,
    FetchedPlaybook,
    FetchedValue,
    FetchFailed,
    FromServer,
    Message,
    MessageMalformed,
    News,
    PrintedText,
    Register,
    Registered,
    Rejected,
    Release,
    Released,
    RunCommand,
    RunLease,
    Work,
    decode_from_server,
    encode_message,
)
from noetl.tools.host.worker_tools import Tools
from noetl.worker.heartbeat import HeartbeatThread
from noetl.worker.keychain.keychains import Keychains
from noetl.worker.plane_requests import (
    FetchRefused,
    ServerAccess,
    ServerCredentials,
    ServerResults,
    ServerUnavailable,
)
from noetl.worker.remote import RemoteRun
from noetl.worker.remote_ledgers import RemoteExecutions
from noetl.worker.reporter import Reporter
from noetl.worker.runner import Runner

TURN = 0.005
"""Seconds of work after which the event loop gets its turn."""
TICKS_IN_TTL = 20
LONGEST_WAIT = 2.0
"""Seconds between two tries to connect, at most."""


class WorkerRejected(NoetlError):
    """The server does not serve this worker, and says why."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class WorkerOptions(Struct, frozen=True, kw_only=True):
    """What a worker process is started with."""

    servers: tuple[str, ...]
    """URLs; the first that answers is taken."""
    name: str
    release: str = ""
    token: str = ""
    pools: tuple[str, ...] = ("default",)
    slots: int = 32
    directory: Path = Path()
    """Where relative paths of playbooks start."""
    allow_kinds: tuple[str, ...] = ()


class RemoteWorker:
    """Takes runs from a server until it is told to stop. See `noetl.worker.remote.Uplink`.

    `say` gets a line about what an operator may want to know.
    """

    def __init__(
        self, options: WorkerOptions, tools: Tools, http: aiohttp.ClientSession, say: Callable[[str], None]
    ) -> None:
        self._options = options
        self._tools = tools
        self._say = say
        self._loop = asyncio.get_running_loop()
        headers = {"authorization": f"Bearer {options.token}"} if options.token else {}
        self._access = ServerAccess(http, headers)
        self._results = ServerResults(self._access)
        self._resolver = CredentialResolver(Providers(ServerCredentials(self._access)))
        self._wake = asyncio.Event()
        self._runner = Runner(
            tools,
            now=_now,
            wake=self._wake.set,
            at=self._at,
            broken=self._on_broken,
            keychains=Keychains(self._resolver),
        )
        self._reporter = Reporter(self._results, send=self._send, spawn=self._spawn, wake=self._wake.set)
        self._session = ""
        self._heart: HeartbeatThread | None = None
        self._executions = RemoteExecutions(
            self,
            self._access,
            self._results,
            directory=options.directory,
            allow_kinds=options.allow_kinds,
            forget=self._runner.forget,
        )
        self._frames: asyncio.Queue[bytes] | None = None
        self._side_work: set[asyncio.Task[None]] = set()
        self._draining = False
        self._stopped: asyncio.Future[None] = self._loop.create_future()

    # Its life.

    async def run(self) -> None:
        """Works until `drain` or `kill` is through. Raises WorkerRejected, and what nobody should raise."""
        tasks = [self._loop.create_task(self._stay_connected()), self._loop.create_task(self._drive())]
        try:
            await asyncio.wait([*tasks, self._stopped], return_when=asyncio.FIRST_COMPLETED)
            for ended in (*tasks, self._stopped):
                if ended.done():
                    ended.result()
        finally:
            if self._heart is not None:
                self._heart.end()
            for task in (*tasks, *self._side_work):
                task.cancel()
            await asyncio.gather(*tasks, *self._side_work, return_exceptions=True)
            await self._executions.close()
            await self._resolver.close()
            await self._results.close()

    def drain(self) -> None:
        """Takes nothing more; attempts in flight end and are reported, the rest is given back."""
        self._draining = True
        self._runner.hold()
        self._send(ClaimCredit(slots=0))
        self._wake.set()

    async def kill(self) -> None:
        """Interrupts everything, and gives back what it holds."""
        self._draining = True
        await self._runner.kill()
        self._reporter.flush()
        leases = tuple(run.lease for run in self._executions.open_runs())
        if leases:
            self._send(Release(runs=leases))
        await asyncio.sleep(0)
        self._stop(None)

    def _stop(self, error: BaseException | None) -> None:
        if self._stopped.done():
            return
        if error is None:
            self._stopped.set_result(None)
        else:
            self._stopped.set_exception(error)

    def _on_broken(self, error: BaseException) -> None:
        self._stop(error)

    async def _drive(self) -> None:
        while True:
            self._wake.clear()
            if not self._reporter.full:
                self._runner.drive(time.monotonic() + TURN)
            if self._draining and not self._runner.in_flight:
                self._runner.give_back()
            self._reporter.flush_if_due()
            if self._draining and self._is_through():
                self._stop(None)
            if self._wake.is_set() or (self._runner.busy and not self._reporter.full):
                await asyncio.sleep(0)
            else:
                await self._wake.wait()

    def _is_through(self) -> bool:
        return not self._runner.claimed and self._reporter.idle and not self._executions.open_runs()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._side_work.add(task)
        task.add_done_callback(self._side_work.discard)

    def _at(self, due: int, action: Callable[[], None]) -> None:
        self._loop.call_later(max(due - _now(), 0) / 1e6, action)

    # The connection.

    async def _stay_connected(self) -> None:
        wait = 0.05
        while True:
            for url in self._options.servers:
                try:
                    await self._connect(url.rstrip("/"))
                    wait = 0.05
                except (aiohttp.ClientError, OSError, TimeoutError, MessageMalformed) as error:
                    self._say(f"{url}: {str(error) or type(error).__name__}")
            # Not all at once: after a restart a server has them all at its door.
            await asyncio.sleep(wait * random.uniform(0.5, 1.5))  # noqa: S311 - no secret
            wait = min(wait * 2, LONGEST_WAIT)

    async def _connect(self, url: str) -> None:
        """One connection, until it ends. Raises WorkerRejected."""
        access = self._access
        async with access.http.ws_connect(
            f"{url}/api/worker/stream", protocols=(SUBPROTOCOL,), headers=access.headers, max_msg_size=0
        ) as socket:
            sent = time.monotonic()
            await socket.send_bytes(encode_message(self._register_message()))
            registered = await _receive(socket)
            if isinstance(registered, Rejected):
                raise WorkerRejected(registered.message, registered.hint)
            if not isinstance(registered, Registered):
                raise MessageMalformed("the server does not answer as one")
            self._join(url, registered, sent)
            frames = self._frames = asyncio.Queue()
            sender = self._loop.create_task(_send_frames(socket, frames))
            try:
                self._reporter.resend()
                while (message := await _receive(socket)) is not None:
                    await self._handle(message)
            finally:
                self._frames = None
                sender.cancel()
                await asyncio.gather(sender, return_exceptions=True)

    def _register_message(self) -> Register:
        options = self._options
        return Register(
            protocol=PROTOCOL,
            release=options.release,
            worker=options.name,
            pools=options.pools,
            kinds=tuple(self._tools.kinds.names),
            slots=0 if self._draining else options.slots,
            session=self._session,
            held=tuple(run.lease for run in self._executions.open_runs()),
        )

    def _join(self, url: str, registered: Registered, sent: float) -> None:
        self._access.join(url, registered.session)
        if self._session != registered.session:
            self._session = registered.session
            self._say(f"registered with {url} as session {registered.session}")
        else:
            self._say(f"connected with {url} again")
        if self._heart is None:
            self._heart = HeartbeatThread(registered.ttl)
            self._heart.join_server(url, self._access.headers, sent, registered.ttl)
            self._heart.start()
            self._tick()
        else:
            self._heart.join_server(url, self._access.headers, sent, registered.ttl)

    def _tick(self) -> None:
        """The loop turns; if leases have run out meanwhile, what is in flight here may run elsewhere, too."""
        if self._heart is not None and not self._stopped.done():
            self._heart.turn()
            self.lease_holds()
            self._loop.call_later(self._heart.ttl / TICKS_IN_TTL, self._tick)

    def _send(self, message: Message) -> bool:
        if self._frames is None:
            return False
        self._frames.put_nowait(encode_message(message))
        return True

    # What the server says.

    async def _handle(self, message: FromServer) -> None:
        match message:
            case Ack(commands=commands):
                self._reporter.acknowledge(message)
                await self._accept_all(commands)
            case Work(commands=commands):
                await self._accept_all(commands)
            case News(items=items):
                for news in items:
                    self._executions.receive(news)
            case Rejected():
                raise WorkerRejected(message.message, message.hint)
            case Registered() | Beaten() | Released() | FetchedPlaybook() | FetchedValue() | FetchFailed():
                pass  # nobody waits for these here
            case _:
                assert_never(message)

    async def _accept_all(self, commands: tuple[RunCommand, ...]) -> None:
        for command in commands:
            try:
                accepted = await self._executions.accept(command)
            except (FetchRefused, ServerUnavailable) as error:
                name = msgspec.json.decode(command.run)["state"]["id"]
                self._say(f"{command.execution}/{name} cannot begin: {error}")
                lease = RunLease(command.execution, name, command.fence)
                self._send(Release(runs=(lease,), failed=True))
            else:
                if accepted is not None:
                    self._runner.take(accepted.ledger, accepted.run)

    # What its ledgers want.

    def queue(self, run: RemoteRun, events: int) -> None:
        self._reporter.queue(run, events)

    def forget(self, run: RemoteRun) -> None:
        self._reporter.forget(run)

    def hurry(self) -> None:
        self._reporter.hurry()

    def print(self, line: PrintedText) -> None:
        self._reporter.print(line)

    def upload(self, run: RemoteRun, blob: Blob) -> None:
        self._reporter.upload(run, blob)

    def give_back(self, run: RemoteRun) -> None:
        self._reporter.flush()  # the server knows first what it did
        self._send(Release(runs=(run.lease,)))
        run.ledger.lose(run)

    def recheck(self, run: RemoteRun) -> None:
        self._runner.recheck(run.ledger.execution_id, run.run.id)

    def lease_holds(self) -> bool:
        if self._heart is None or self._heart.lease_holds:
            return True
        runs = self._executions.open_runs()
        if runs:
            self._say(f"no heartbeat was answered for {self._heart.ttl:g} s: {len(runs)} runs are given up")
        for run in runs:
            run.ledger.lose(run)
        return False


async def _receive(socket: aiohttp.ClientWebSocketResponse) -> FromServer | None:
    """The next message; None at the end of the connection. Raises MessageMalformed."""
    frame = await socket.receive()
    if frame.type in (aiohttp.WSMsgType.BINARY, aiohttp.WSMsgType.TEXT):
        return decode_from_server(frame.data)
    return None


async def _send_frames(socket: aiohttp.ClientWebSocketResponse, frames: "asyncio.Queue[bytes]") -> None:
    while True:
        await socket.send_bytes(await frames.get())


def _now() -> int:
    """Microseconds since 1970, UTC."""
    return time.time_ns() // 1_000
