"""What a server does with the messages of its workers: one handler for each, whatever brought it."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from typing import Literal, TypeAlias, assert_never

from noetl.engine.execution import LiveExecution, TaskLogWriter, all_durable, once_durable
from noetl.engine.execution_loader import ExecutionLoader
from noetl.engine.listener import EngineListener, EventHandler
from noetl.engine.service import Service
from noetl.events import bodies as of
from noetl.events.bodies import EventBody, RunResumed
from noetl.kernel.derived_rows import all_rows
from noetl.kernel.errors import NotOwner, Refused
from noetl.kernel.net.commands import LeaseLost
from noetl.kernel.state.run_state import Shard
from noetl.model.outcome import ErrorInfo
from noetl.model.run_rows import SERVER_POOL, ReadyRun
from noetl.ports.control import (
    PROTOCOL,
    ArtifactRequest,
    Beaten,
    ClaimCredit,
    FetchCredential,
    FetchGrant,
    FetchPlaybook,
    FetchSealed,
    FetchWorkload,
    FromServer,
    FromWorker,
    Heartbeat,
    NeedsChecked,
    Register,
    Registered,
    Rejected,
    Release,
    Released,
    RunLease,
    RunNews,
    SealValues,
    WorkerReport,
)
from noetl.ports.credentials import CredentialStore
from noetl.ports.results import ResultStore
from noetl.ports.store import LeaseRow, ReadyRow, StoreDamaged, StoreError, StoreUnusable
from noetl.process_log import LogEvent, log_event
from noetl.server.plane.dispatcher import Dispatcher
from noetl.server.plane.fetches import Fetches
from noetl.server.plane.needs_checks import NeedsChecks
from noetl.server.plane.report_recorder import ReportRecorder
from noetl.server.plane.sessions import (
    OWN_SESSION,
    TTL,
    Lease,
    LeaseEnd,
    Leases,
    Outgoing,
    Sessions,
    WorkerSession,
    lost_news,
)
from noetl.server.plane.shared_sessions import SharedSessions
from noetl.stores.credentials.sealed_values import SealedValues
from noetl.system import SYSTEM, System
from noetl.tools.host.worker_tools import ENGINE_KINDS

WorkerLocation: TypeAlias = Literal["elsewhere", "embedded", "server"]
"""Where a worker is: in a process of its own, in that of the server, or it is the server itself."""


class WorkerPlane(EngineListener):
    """The workers of an engine, and the runs that they own. Within the loop that the engine runs in.

    Nothing that it sends rests on what a crash could take back.
    """

    def __init__(
        self,
        service: Service,
        *,
        release: str,
        ttl: float = TTL,
        logs: TaskLogWriter | None = None,
        credentials: CredentialStore | None = None,
        system: System = SYSTEM,
        sealed: SealedValues | None = None,
        server: str = "",
    ) -> None:
        self._service = service
        self._release = release
        self._leases = Leases()
        shared = service.shared
        silent = self._on_session_gone if shared is not None else None
        self.sessions = Sessions(ttl, self._on_session_lost, system, silent=silent)
        self.shared_sessions = SharedSessions(shared, self.sessions, server) if shared is not None else None
        self.needs_checks = NeedsChecks(service, self.sessions, self.dispatch, system.monotonic)
        self._fetches = Fetches(service, self.needs_checks, credentials, sealed)
        self._dispatcher = Dispatcher(
            self.sessions,
            self._leases,
            lambda name: service.spawn(self._load_ready(name)),
            self.needs_checks.admits,
        )
        self._reports = ReportRecorder(
            service.registry,
            self._leases,
            self._dispatcher,
            end_leases=self._end_leases,
            start_over=self._start_over,
            logs=logs,
        )

    @property
    def _loader(self) -> ExecutionLoader:
        assert self._service.loader is not None  # noqa: S101 - the engine of workers serves
        return self._service.loader

    @property
    def results(self) -> ResultStore:
        return self._service.results

    def close(self) -> None:
        self.sessions.close()

    @staticmethod
    def _log(about: WorkerSession, event: LogEvent, /, **fields: object) -> None:
        if not about.internal:
            log_event(event, **fields)

    def dispatch(self) -> None:
        """Gives away what can be given."""
        self._dispatcher.dispatch()

    # What the engine says.

    def handlers(self) -> Mapping[type[EventBody], EventHandler]:
        return {
            **dict.fromkeys(
                (
                    of.LeaseExpired,
                    of.LoopStarted,
                    of.StepDone,
                    of.StepFailed,
                    of.StepCompletedByHand,
                    of.StepSkipped,
                    of.LoopDone,
                    of.LoopIterationCompleted,
                    of.RunSuspended,
                ),
                self._on_run_event,
            ),
            of.RunResumed: self._on_resumed,
            of.CancelRequested: lambda live, *_: self._send_all_news(live),
            of.ExecutionPaused: lambda live, *_: self._send_all_news(live),
            of.ExecutionResumed: lambda live, *_: self._send_all_news(live),
        }

    def ready(self, live: LiveExecution) -> None:
        if live.start_key and not live.durable:
            # Another execution may have its key: nothing begins before that is known.
            live.when_durable(lambda: self.ready(live))
            return
        self._dispatcher.add(live)

    def restore_lease(self, row: LeaseRow) -> None:
        """A lease from before a restart: it has one full ttl in which its worker may come back."""
        live = self._loader.unloaded(row.execution_id)
        self._dispatcher.restore(self.sessions.open(row.run.session), live, row.key, row.run.fence)

    def end_own_sessions(self) -> None:
        """Those of the process before this one ended with it: what they had goes on at once."""
        for session in [session for session in self.sessions if session.id.startswith(OWN_SESSION)]:
            self.sessions.end(session)

    def offered(self, execution_id: str, run: str, ready: ReadyRun) -> None:  # noqa: ARG002 - it is found by name
        self._dispatcher.offer(self._loader.unloaded(execution_id), ready)

    def loaded(self, live: LiveExecution) -> None:
        if live.state.ready:
            self._dispatcher.add(live)

    def evicted(self, live: LiveExecution) -> None:
        runs = [run for unit in all_rows(live.state).values() for run in unit.ready.values()]
        self._dispatcher.evicted(live, runs)
        self.needs_checks.forget(live.execution_id)

    def undone(self, live: LiveExecution) -> None:
        """Claims that were not durable when somebody else wrote never were.

        Before anything is known of what is there: that may be a claim of another server with the same fence.
        """
        for lease in self._leases.of_execution(live.execution_id):
            if lease.fence > live.durable:
                self._leases.remove(lease)

    def reloaded(self, live: LiveExecution) -> None:
        """Leases may be over, or what they are of may have been asked to stop."""
        for lease in self._leases.of_execution(live.execution_id):
            self._tell_how_it_stands(lease)
        # After what was decided is decided again: then it is known what may be given away.
        asyncio.get_running_loop().call_soon(self._dispatcher.dispatch)

    def _tell_how_it_stands(self, lease: Lease) -> None:
        if lease.live.loaded and lease.owned is not None:
            self._tell(lease, lease.news)
        else:
            self._leases.remove(lease)
            lease.session.outgoing.add_news(lost_news(lease.live.execution_id, lease.run, lease.fence))

    def outdated(self, live: LiveExecution) -> None:
        self._dispatcher.forget(live.execution_id)
        self.needs_checks.forget(live.execution_id)

    @property
    def leased_executions(self) -> set[str]:
        """Those of which a worker that is connected here has a run."""
        return self._leases.executions

    def version_of(self, execution_id: str) -> int:
        """Up to which event a leased execution is known here."""
        return self._loader.unloaded(execution_id).durable

    async def refresh(self, execution_id: str) -> None:
        """Another server wrote to an execution that workers here have runs of: they hear how it stands.

        Raises StoreError.
        """
        live = self._loader.unloaded(execution_id)
        if live.loaded:
            await self._service.refresh(live)
        elif await self._service.load(execution_id) is None or live.loaded:
            self.reloaded(live)

    @property
    def wanted_runs(self) -> dict[tuple[str, frozenset[str]], int]:
        """How many more runs workers here take, by pool and the kinds that they may need."""
        wanted: dict[tuple[str, frozenset[str]], int] = {}
        for session in self.sessions:
            for pool in session.pools if session.credit > 0 else ():
                key = pool, session.kinds | ENGINE_KINDS
                wanted[key] = wanted.get(key, 0) + session.credit
        return wanted

    def offer(self, row: ReadyRow) -> None:
        """A run that nobody else has taken."""
        live = self._loader.unloaded(row.execution_id)
        if live.loaded:
            self._dispatcher.add(live)
        else:
            self._dispatcher.offer(live, row.run)

    async def lose(self, session_id: str, leases: Sequence[LeaseRow]) -> int:
        """Ends the leases of a worker that no server hears any more; how many. Raises StoreError."""
        if (session := self.sessions.get(session_id)) is not None:
            self.sessions.forget(session)
        count = 0
        for row in leases:
            live = await self._load_readable(row.execution_id)
            if live is not None:
                run, _, _ = row.key.partition("/")
                with suppress(Refused, NotOwner):
                    count += bool(live.submit(LeaseLost(run, row.run.fence, "expired")))
        self._dispatcher.dispatch()
        await self._service.commit_log.flush()
        return count

    async def void_unknown(self, leases: Sequence[LeaseRow]) -> None:
        """Ends what was claimed for workers that are here now by a server that they had left."""
        for row in leases:
            live = await self._load_readable(row.execution_id)
            run, _, _ = row.key.partition("/")
            session = self.sessions.get(row.run.session)
            if live is None or session is None or (row.execution_id, row.run.fence) in session.leases:
                continue
            with suppress(Refused, NotOwner):
                live.submit(LeaseLost(run, row.run.fence, "voided"))
        self._dispatcher.dispatch()

    async def _load_ready(self, execution_id: str) -> None:
        try:
            await self._load_patiently(execution_id)
        except StoreError:
            return  # nothing can be given away of what is damaged; whoever asks for it hears why
        finally:
            self._dispatcher.loaded(execution_id)

    async def _load_leased(self, leases: Iterable[Lease]) -> None:
        """Brings what the leases are of into memory; a lease of what is no longer there, or damaged, is over.

        Raises StoreError if this process ends before that can be read.
        """
        for lease in list(leases):
            if lease.live.loaded:
                continue
            if await self._load_readable(lease.live.execution_id) is None:
                self._leases.remove(lease)

    async def _load_readable(self, execution_id: str) -> LiveExecution | None:
        """None for what is damaged, too: whoever has a run of it goes on with the rest.

        Raises StoreError if this process ends before it can be read.
        """
        try:
            return await self._load_patiently(execution_id)
        except (StoreDamaged, StoreUnusable):
            return None

    async def _load_patiently(self, execution_id: str) -> LiveExecution | None:
        return await self._service.commit_log.read_patiently(lambda: self._service.load(execution_id))

    async def resumed(self, live: LiveExecution) -> None:
        """Of one that nobody served: each lease has one full ttl in which its worker may come back."""
        for run in list(live.state.claimed_runs()):
            for owned in run.owned_parts():
                if owned.session:
                    part = run, owned if isinstance(owned, Shard) else None
                    self._dispatcher.lease(self.sessions.open(owned.session), live, part)
                else:
                    live.submit(LeaseLost(run.id, owned.fence))  # its owner was a process that is gone

    def over(self, live: LiveExecution) -> None:
        self._dispatcher.forget(live.execution_id)
        self.needs_checks.over(live.execution_id)

    def _on_run_event(self, live: LiveExecution, body: EventBody, _: int) -> None:
        """Whoever does not own a run or shard any more is told, unless it said so itself."""
        for lease in self._leases.of_run(live.execution_id, body.run):  # type: ignore[union-attr]  # all of these have it
            if lease.owned is not None:
                continue
            self._leases.remove(lease)
            if lease is not self._reports.reporting or getattr(body, "source", "server") == "server":
                self._tell(lease, lost_news(live.execution_id, lease.run, lease.fence))

    def _on_resumed(self, live: LiveExecution, body: RunResumed, _: int) -> None:
        """Its owner goes on with it. A shard that waited has none."""
        for lease in self._leases.of_run(live.execution_id, body.run):
            if lease.shard < 0:
                self._tell(lease, lease.news)

    def _send_news(self, live: LiveExecution, run: str) -> None:
        for lease in self._leases.of_run(live.execution_id, run):
            self._tell(lease, lease.news)

    def _send_all_news(self, live: LiveExecution) -> None:
        for run in list(live.state.claimed_runs()):
            self._send_news(live, run.id)

    def _tell(self, lease: Lease, news: RunNews) -> None:
        outgoing = lease.session.outgoing
        once_durable(lease.live, lambda: outgoing.add_news(news))

    def _on_session_gone(self, session: WorkerSession) -> None:
        """It is connected to another server, or to none: its row will tell."""
        self.needs_checks.lost(session)
        for lease in list(session.leases.values()):
            self._leases.remove(lease)

    def _on_session_lost(self, session: WorkerSession) -> None:
        if self.shared_sessions is not None:
            self._on_session_gone(session)
            self._service.spawn(self.shared_sessions.end(session))
            return
        runs = len(session.leases)
        event = LogEvent.WORKER_LOST if runs or session.slots else LogEvent.WORKER_LEFT
        self._log(session, event, worker=session.worker or None, session=session.id, runs=runs)
        self.needs_checks.lost(session)
        leases = list(session.leases.values())
        if all(lease.live.loaded for lease in leases):
            self._end_leases(leases, "expired")
        else:
            self._service.spawn(self._lose(leases))

    async def _lose(self, leases: list[Lease]) -> None:
        """One after the other: the next may push the last out of memory."""
        for lease in leases:
            try:
                await self._load_leased([lease])
            except StoreError:
                return  # this process ends, and the next one finds the leases in its rows
            if lease.live.loaded:
                self._end_leases([lease], "expired")

    def _start_over(self, lease: Lease) -> None:
        """Its execution is read again, and it ends as a loss, which is counted: so this has an end."""
        self._leases.remove(lease)

        async def start_over() -> None:
            try:
                await self._service.commit_log.decide_again(lease.live)
            except StoreError:
                return  # this process ends, or nothing can be done with the execution before the next one
            await self._lose([lease])

        self._service.spawn(start_over())

    def _end_leases(
        self, leases: Iterable[Lease], reason: LeaseEnd, error: ErrorInfo | None = None
    ) -> list[LiveExecution]:
        leases = list(leases)
        for lease in leases:
            lease.live.submit(LeaseLost(lease.run, lease.fence, reason, error))
            self._leases.remove(lease)
        self._dispatcher.dispatch()
        return [lease.live for lease in leases]

    # What workers say.

    async def register(
        self, message: Register, token: str = "", location: WorkerLocation = "elsewhere"
    ) -> tuple[WorkerSession | None, Registered | Rejected]:
        """A worker process begins, or comes back; what it still works on it hears of first.

        `token` is the name of the one that it came with.
        """
        if message.protocol != PROTOCOL:
            text = f"this server speaks version {PROTOCOL} of the worker protocol, not {message.protocol}"
            hint = f"use noetl {self._release} for its workers"
            log_event(
                LogEvent.WORKER_REJECTED,
                worker=message.worker,
                release=message.release,
                protocol=message.protocol,
            )
            return None, Rejected(code="unsupported_protocol", message=text, hint=hint)
        own = location != "elsewhere"
        if not own and (SERVER_POOL in message.pools or message.session.startswith(OWN_SESSION)):
            text = f"the pool `{SERVER_POOL}` is for the server's own worker"
            return None, Rejected(code="forbidden", message=text, hint="choose another name with --pool")
        if self.shared_sessions is None:
            session = self.sessions.open(message.session, OWN_SESSION if own else "")
        else:
            opened = await self._open_shared(self.shared_sessions, message, token, own=own)
            if isinstance(opened, Rejected):
                return None, opened
            session = opened
        # Nobody has spoken for a session that outlived a restart of the server: it is who comes first.
        if session.token not in ("", token):
            return None, Rejected(code="forbidden", message="this session is that of another token")
        session.token = token
        session.connect()
        outgoing = session.outgoing
        session.describe(message)
        session.internal = location == "server"
        self.sessions.beat(session)
        self.needs_checks.connected(session)  # before it may be asked anything new, which it will see
        self._log(
            session,
            LogEvent.WORKER_CONNECTED,
            worker=session.worker,
            session=session.id,
            release=session.release,
            pools=message.pools,
            slots=session.slots,
            runs=len(message.held),
        )
        welcome = Registered(session=session.id, ttl=session.ttl, server=self._release)
        with self._pinned(session):
            await self._load_leased(session.leases.values())
            if session.outgoing is not outgoing:
                return None, welcome  # it came back meanwhile, and this connection is nobody's
            self._tell_held(session, set(message.held))
        self._dispatcher.dispatch()
        return session, welcome

    async def _open_shared(
        self, shared: SharedSessions, message: Register, token: str, *, own: bool
    ) -> WorkerSession | Rejected:
        """The session as all servers know it, with its leases as they are now. Raises StoreError."""
        session = await shared.open(message, token, OWN_SESSION if own else "")
        if session is None:
            return Rejected(code="forbidden", message="this session is that of another token")
        leases = await shared.leases_of([session.id])
        # First what is in memory is as new as the leases are: what is known from here on counts from there.
        names = {row.execution_id for row in leases}
        lives = {name: live for name in names if (live := await self._load_readable(name)) is not None}
        for row in leases:
            run, _, _ = row.key.partition("/")
            known = self._leases.get(row.execution_id, run, row.run.fence) is not None
            if not known and row.execution_id in lives:
                self._dispatcher.restore(session, lives[row.execution_id], row.key, row.run.fence)
        return session

    def disconnected(self, session: WorkerSession, outgoing: Outgoing) -> None:
        """A connection ended. Who takes nothing and holds nothing has left; others may come back."""
        if session.outgoing is not outgoing:
            return  # it has come back already
        session.away = True
        if not session.slots and not session.leases:
            self.sessions.end(session)
        elif self.shared_sessions is not None:
            session.slots = 0  # it may be with another server already, whose list of workers has them

    def _tell_held(self, session: WorkerSession, held: set[RunLease]) -> None:
        # What it was given and never saw goes to others at once.
        unseen = [lease for lease in session.leases.values() if lease.held not in held]
        self._end_leases(unseen, "voided")
        for lease in list(session.leases.values()):
            self._tell(lease, lease.news)
        owned = {lease.held for lease in session.leases.values()}
        for gone in sorted(held - owned):
            session.outgoing.add_news(lost_news(gone.execution, gone.run, gone.fence))

    def _pinned(self, session: WorkerSession) -> AbstractContextManager[None]:
        """What the session has leases of stays in memory meanwhile."""
        return self._loader.pinned({execution for execution, _ in session.leases})

    async def answer(self, session: WorkerSession, message: FromWorker) -> FromServer | None:
        """What is to be said at once; commands, news and what is acknowledged wait in `session.outgoing`."""
        if isinstance(message, Heartbeat | ClaimCredit):
            return await self._answer(session, message)
        with self._pinned(session):
            await self._load_leased(session.leases.values())
            return await self._answer(session, message)

    async def _answer(self, session: WorkerSession, message: FromWorker) -> FromServer | None:
        match message:
            case WorkerReport():
                self._reports.record(session, message)
                return None
            case ClaimCredit(slots=slots):
                session.slots = slots
                self._dispatcher.dispatch()
                return None
            case Heartbeat():
                return Beaten(known=await self.beat(session))
            case Release():
                await self._release_runs(session, message)
                return Released()
            case (
                FetchPlaybook()
                | FetchWorkload()
                | FetchCredential()
                | SealValues()
                | FetchSealed()
                | FetchGrant()
                | ArtifactRequest()
                | NeedsChecked()
            ):
                return await self._fetches.answer(session, message)
            case Register():
                return Rejected(code="invalid_request", message="this session is registered already")
            case _:
                assert_never(message)

    async def beat(self, session: WorkerSession) -> bool:
        """Whether its leases live on. Raises StoreError."""
        if self.sessions.get(session.id) is not session:
            return False
        if self.shared_sessions is not None and not await self.shared_sessions.beat(session):
            self.sessions.forget(session)
            return False
        self.sessions.beat(session)
        return True

    async def _release_runs(self, session: WorkerSession, message: Release) -> None:
        if message.leaving:
            session.slots = 0  # first: what it gives back is for others
        leases = [lease for lease in session.leases.values() if lease.held in set(message.runs)]
        lives = self._end_leases(leases, "expired" if message.failed else "released", message.error)
        if message.leaving:
            lives += self._end_leases(list(session.leases.values()), "voided")
        durable: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        all_durable(lives, lambda: None if durable.done() else durable.set_result(None))
        await durable
