"""A worker of a server: one connection, the runs that it brings, and what drives them."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, assert_never

import msgspec
from msgspec import Struct

from noetl.credentials.providers import Providers
from noetl.credentials.resolver import CredentialResolver
from noetl.kernel.state.execution_state import Blob
from noetl.model.errors import NoetlError
from noetl.model.secret import SecretOrigin
from noetl.ports.control import (
    PROTOCOL,
    Ack,
    Beaten,
    CheckNeeds,
    ClaimCredit,
    Drain,
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
    encode_message,
)
from noetl.process_log import LogEvent, log_event
from noetl.tools.host.worker_tools import Tools
from noetl.worker.heartbeat import LeaseClock
from noetl.worker.keychain.keychains import Keychains
from noetl.worker.remote import RemoteRun
from noetl.worker.remote_ledgers import RemoteExecutions
from noetl.worker.reporter import Reporter
from noetl.worker.runner import Runner
from noetl.worker.server_link import (
    FetchRefused,
    NeedsPreflight,
    ServerConnection,
    ServerLink,
    ServerSecrets,
    ServerUnavailable,
    receive_message,
    send_frames,
)

TURN = 0.005
"""Seconds of work after which the event loop gets its turn."""
TICKS_IN_TTL = 20
GREETING_SECONDS = 3.0
"""For which one of several servers may be silent before the next is asked."""
LONGEST_WAIT = 2.0
"""Seconds between two tries to connect, at most."""
SILENCE = 0.5
"""Part of a ttl after which a server that hears no beat is left for another one: there is time to find it."""
UNREACHABLE_SECONDS = 60.0
"""How often the log repeats that a server cannot be reached, and why."""


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
    traced: bool = False


class RemoteWorker:
    """Takes runs from a server until it is told to stop. See `noetl.worker.remote.Uplink`."""

    def __init__(self, options: WorkerOptions, tools: Tools, link: ServerLink) -> None:
        self._options = options
        self._tools = tools
        self._loop = asyncio.get_running_loop()
        self._link = link
        self._system = tools.system
        self._server_secrets = ServerSecrets(link)
        self._resolver = CredentialResolver(Providers(self._server_secrets))
        self._keychains = Keychains(self._resolver)
        self._wake = asyncio.Event()
        self._runner = Runner(
            tools,
            wake=self._wake.set,
            at=self._at,
            broken=self._on_broken,
            keychains=self._keychains,
        )
        self._reporter = Reporter(link.results, send=self._send, spawn=self._spawn, wake=self._wake.set)
        self._session = ""
        self._leases: LeaseClock | None = None
        self._end_heartbeat: Callable[[], None] = _nothing
        self._executions = RemoteExecutions(
            self,
            link,
            directory=options.directory,
            allow_kinds=options.allow_kinds,
            forget=self._runner.forget,
        )
        self._preflight = NeedsPreflight(link, self._resolver, self._executions.playbook, options.directory)
        self._frames: asyncio.Queue[bytes] | None = None
        self._connections = 0
        self._silent = asyncio.Event()
        """Set when the server seems not to be there any more, and there is another one to go to."""
        self._side_work: set[asyncio.Task[None]] = set()
        self._draining = self._leaving = False
        self._overdue = False
        """Whether it takes nothing until a beat is heard again."""
        self._unsent: list[Release] = []
        """What was given back while there was no connection, or none that was greeted."""
        self._releasing = 0
        """Messages that give something back and are not answered: others may not have it yet."""
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
            self._end_heartbeat()
            for task in (*tasks, *self._side_work):
                task.cancel()
            await asyncio.gather(*tasks, *self._side_work, return_exceptions=True)
            await self._executions.close()
            await self._resolver.close()

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
                self._runner.drive(self._system.monotonic() + TURN)
            if self._draining and not self._runner.in_flight:
                self._runner.give_back()
            self._reporter.flush_if_due()
            if self._draining and self._is_through():
                self._leave()
            if self._wake.is_set() or (self._runner.busy and not self._reporter.full):
                await asyncio.sleep(0)
            else:
                await self._wake.wait()

    def _is_through(self) -> bool:
        holds = self._runner.claimed or self._executions.open_runs() or self._releasing
        return not holds and self._reporter.idle

    def _leave(self) -> None:
        """Goes when the server knows it, which would wait for what is on its way here for a lease's time."""
        if self._leaving or self._frames is None:
            self._stop(None)
        else:
            self._leaving = self._send(Release(runs=(), leaving=True))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._side_work.add(task)
        task.add_done_callback(self._side_work.discard)

    def _at(self, due: int, action: Callable[[], None]) -> None:
        self._loop.call_later(max(due - self._system.now(), 0) / 1e6, action)

    # The connection.

    async def _stay_connected(self) -> None:
        wait = 0.05
        logged: dict[str, tuple[str, float]] = {}
        """By server, what was said of it last, and when."""
        while True:
            for url in self._options.servers:
                try:
                    await self._connect(url.rstrip("/"))
                    wait = 0.05
                    logged.clear()
                except (ServerUnavailable, MessageMalformed) as error:
                    text, since = logged.get(url, ("", 0.0))
                    # Who waits for a server for hours does not say so every other second.
                    if str(error) != text or self._system.monotonic() - since >= UNREACHABLE_SECONDS:
                        logged[url] = str(error), self._system.monotonic()
                        self._log(LogEvent.SERVER_UNREACHABLE, url=url or None, error=str(error))
            # Not all at once: after a restart a server has them all at its door.
            await asyncio.sleep(wait * self._system.jitter())
            wait = min(wait * 2, LONGEST_WAIT)

    async def _connect(self, url: str) -> None:
        """One connection, until it ends. Raises WorkerRejected."""
        async with AsyncExitStack() as stack:
            sent = self._system.monotonic()
            try:
                # Where there is but one, it is waited for.
                async with asyncio.timeout(GREETING_SECONDS if len(self._options.servers) > 1 else None):
                    connection = await stack.enter_async_context(self._link.connect(url))
                    sent = self._system.monotonic()
                    await connection.send(encode_message(self._register_message()))
                    registered = await receive_message(connection)
            except TimeoutError:
                raise ServerUnavailable("it does not answer") from None
            if registered is None:
                raise ServerUnavailable("it cannot serve now")
            if isinstance(registered, Rejected):
                raise WorkerRejected(registered.message, registered.hint)
            if not isinstance(registered, Registered):
                raise MessageMalformed("the server does not answer as one")
            self._join(url, registered, sent)
            frames = self._frames = asyncio.Queue()
            sender = self._loop.create_task(send_frames(connection, frames))
            try:
                if self._draining:  # since it registered, perhaps: then it was given slots
                    self._send(ClaimCredit(slots=0))
                self._reporter.resend()
                unsent, self._unsent = self._unsent, []
                for release in unsent:  # after what was done of it
                    self._send(release)
                self._wake.set()
                await self._receive(connection)
            finally:
                self._frames = None
                if self._leaving:  # nobody will answer
                    self._releasing = 0
                    self._wake.set()
                sender.cancel()
                await asyncio.gather(sender, return_exceptions=True)

    async def _receive(self, connection: ServerConnection) -> None:
        """Until the connection ends, or the server is silent. Raises as what it handles."""
        self._silent.clear()
        receiving = self._loop.create_task(self._receive_all(connection))
        silent = self._loop.create_task(self._silent.wait())
        try:
            await asyncio.wait([receiving, silent], return_when=asyncio.FIRST_COMPLETED)
            if receiving.done():
                receiving.result()
        finally:
            for task in (receiving, silent):
                task.cancel()
            await asyncio.gather(receiving, silent, return_exceptions=True)

    async def _receive_all(self, connection: ServerConnection) -> None:
        while (message := await receive_message(connection)) is not None:
            await self._handle(message)

    def _register_message(self) -> Register:
        options = self._options
        self._connections += 1
        return Register(
            protocol=PROTOCOL,
            release=options.release,
            worker=options.name,
            pools=options.pools,
            kinds=tuple(self._tools.kinds.names),
            slots=0 if self._draining else options.slots,
            session=self._session,
            held=tuple(run.lease for run in self._executions.open_runs()),
            connection=self._connections,
        )

    def _join(self, url: str, registered: Registered, sent: float) -> None:
        self._link.join(url, registered.session)
        self._releasing = 0  # what it did not say that it holds is free
        if self._session != registered.session:
            self._session = registered.session
            self._log(
                LogEvent.REGISTERED, url=url or None, server=registered.server, pools=self._options.pools
            )
        else:
            self._log(LogEvent.CONNECTED_AGAIN, url=url or None)
        if self._leases is not None:
            self._leases.renew(registered.ttl, sent)
            return
        self._leases = LeaseClock(self._system.monotonic, registered.ttl, sent)
        self._end_heartbeat = self._link.start_heartbeat(self._leases)
        self._tick()

    def _log(self, event: LogEvent, **fields: object) -> None:
        log_event(event, worker=self._options.name, session=self._session or None, **fields)

    def _tick(self) -> None:
        """The loop turns; if leases have run out meanwhile, what is in flight here may run elsewhere, too."""
        if self._leases is not None and not self._stopped.done():
            self._leases.turn()
            self.lease_holds()
            if len(self._options.servers) > 1 and self._leases.silence > self._leases.ttl * SILENCE:
                self._silent.set()
            self._loop.call_later(self._leases.ttl / TICKS_IN_TTL, self._tick)

    def _send(self, message: Message) -> bool:
        if isinstance(message, Release):
            self._releasing += 1
            if self._frames is None:
                self._unsent.append(message)
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
            case CheckNeeds():
                self._spawn(self._preflight.answer(message))
            case Drain():
                self._log(LogEvent.WORKER_DRAINING)
                self.drain()
            case Rejected():
                raise WorkerRejected(message.message, message.hint)
            case Released():
                self._releasing = max(self._releasing - 1, 0)
                self._wake.set()
            case Registered() | Beaten() | FetchedPlaybook() | FetchedValue() | FetchFailed():
                pass  # nobody waits for these here
            case _:
                assert_never(message)

    async def _accept_all(self, commands: tuple[RunCommand, ...]) -> None:
        for command in commands:
            try:
                accepted = await self._executions.accept(command)
            except (FetchRefused, ServerUnavailable) as error:
                name = msgspec.json.decode(command.run)["state"]["id"]
                self._log(LogEvent.RUN_REFUSED, execution_id=command.execution, run=name, error=error)
                lease = RunLease(command.execution, name, command.fence)
                self._send(Release(runs=(lease,), failed=True))
            else:
                if accepted is not None:
                    self._runner.take(accepted.ledger, accepted.run, accepted.shard)

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

    def seal(self, run: RemoteRun, origins: set[SecretOrigin]) -> None:
        if values := self._keychains.take_unsealed(run.ledger.execution_id, origins):
            self._reporter.send_before(
                run, self._server_secrets.seal(run.ledger.execution_id, values), self._wake.set
            )

    async def sealed_value(self, origin: SecretOrigin) -> Any:
        return await self._server_secrets.sealed_value(origin)

    def give_back(self, run: RemoteRun) -> None:
        self._reporter.flush()  # the server knows first what it did
        self._send(Release(runs=(run.lease,)))
        run.ledger.lose(run)

    def recheck(self, run: RemoteRun) -> None:
        self._runner.recheck(run.ledger.execution_id, run.run.id)

    def lease_holds(self) -> bool:
        if self._leases is None or self._leases.lease_holds:
            if self._overdue:
                self._overdue = False
                if not self._draining:
                    self._send(ClaimCredit(slots=self._options.slots))
            return True
        runs = self._executions.open_runs()
        if runs:
            self._log(LogEvent.LEASES_GIVEN_UP, seconds=self._leases.ttl, runs=len(runs))
        for run in runs:
            run.ledger.lose(run)
        if runs:
            # First: what it gives back would come again at once, and be given back.
            self._overdue = True
            self._send(ClaimCredit(slots=0))
            # The server may think otherwise: then it would wait for them as long as this worker lives.
            self._send(Release(runs=tuple(run.lease for run in runs)))
        return False


def _nothing() -> None:
    """Before there is a heartbeat, none ends."""
