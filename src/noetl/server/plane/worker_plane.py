"""What a server does with the messages of its workers: one handler for each, whatever brought it."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Literal, assert_never

from noetl.engine.execution import LiveExecution, TaskLogWriter
from noetl.engine.listener import EngineListener, EventHandler
from noetl.engine.service import Service
from noetl.events import bodies as of
from noetl.events.bodies import EventBody, RunResumed
from noetl.events.codec import decode
from noetl.events.errors import EventUnreadable
from noetl.kernel.errors import NotOwner, Refused, ReportEarly
from noetl.kernel.net.commands import LeaseLost, Report
from noetl.kernel.state.run_state import RunState
from noetl.ports.control import (
    PROTOCOL,
    Beaten,
    ClaimCredit,
    FetchCredential,
    FetchPlaybook,
    FetchWorkload,
    FromServer,
    FromWorker,
    Heartbeat,
    PrintedText,
    Register,
    Registered,
    Rejected,
    Release,
    Released,
    RunLease,
    RunNews,
    RunReport,
    Verdict,
    WorkerReport,
)
from noetl.ports.credentials import CredentialStore
from noetl.ports.results import ResultStore
from noetl.server.plane.dispatcher import Dispatcher
from noetl.server.plane.fetches import answer_fetch
from noetl.server.plane.sessions import TTL, Lease, Sessions, WorkerSession


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
    ) -> None:
        self._service = service
        self._release = release
        self._logs = logs
        self._credentials = credentials
        self._leases: dict[tuple[str, str], Lease] = {}
        self.sessions = Sessions(ttl, self._on_session_lost)
        self._dispatcher = Dispatcher(self.sessions, self._leases)

    @property
    def results(self) -> ResultStore:
        return self._service.results

    def close(self) -> None:
        self.sessions.close()

    # What the engine says.

    def handlers(self) -> Mapping[type[EventBody], EventHandler]:
        return {
            **dict.fromkeys(
                (
                    of.LeaseExpired,
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
            of.RunResumed: lambda live, body, _: self._send_news(live, body.run),
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

    async def resumed(self, live: LiveExecution) -> None:
        """After a restart: each lease has one full ttl in which its worker may come back."""
        for run in list(live.state.claimed_runs()):
            if run.session:
                self._dispatcher.lease(self.sessions.open(run.session), live, run)
            else:
                live.submit(LeaseLost(run.id, run.fence))  # its owner was a process that is gone

    def over(self, live: LiveExecution) -> None:
        self._dispatcher.forget(live.execution_id)

    def _on_run_event(self, live: LiveExecution, body: EventBody, _: int) -> None:
        """Whoever does not own a run any more is told, unless it said so itself."""
        lease = self._leases.get((live.execution_id, body.run))  # type: ignore[union-attr]  # all of these have it
        if lease is None or _owned_run(lease) is not None:
            return
        self._drop(lease)
        if getattr(body, "source", "server") == "server":
            self._tell(lease, _lost_news(live.execution_id, lease.run, lease.fence))

    def _send_news(self, live: LiveExecution, run: str) -> None:
        lease = self._leases.get((live.execution_id, run))
        if lease is not None:
            self._tell(lease, _news_of(lease))

    def _send_all_news(self, live: LiveExecution) -> None:
        for run in list(live.state.claimed_runs()):
            self._send_news(live, run.id)

    def _tell(self, lease: Lease, news: RunNews) -> None:
        outgoing = lease.session.outgoing
        once_durable(lease.live, lambda: outgoing.add_news(news))

    def _drop(self, lease: Lease) -> None:
        key = lease.live.execution_id, lease.run
        for leases in (self._leases, lease.session.leases):
            if leases.get(key) is lease:  # somebody may have the run again already
                del leases[key]

    def _on_session_lost(self, session: WorkerSession) -> None:
        self._end_leases(list(session.leases.values()), "expired")

    def _end_leases(
        self, leases: Iterable[Lease], reason: Literal["expired", "released", "voided"]
    ) -> list[LiveExecution]:
        leases = list(leases)
        for lease in leases:
            lease.live.submit(LeaseLost(lease.run, lease.fence, reason))
            self._drop(lease)
        self._dispatcher.dispatch()
        return [lease.live for lease in leases]

    # What workers say.

    def register(self, message: Register) -> tuple[WorkerSession | None, Registered | Rejected]:
        """A worker process begins, or comes back; what it still works on it hears of first."""
        if message.protocol != PROTOCOL:
            text = f"this server speaks version {PROTOCOL} of the worker protocol, not {message.protocol}"
            hint = f"use noetl {self._release} for its workers"
            return None, Rejected(code="unsupported_protocol", message=text, hint=hint)
        session = self.sessions.open(message.session)
        session.connect()
        session.describe(message)
        self.sessions.beat(session)
        held = set(message.held)
        # What it was given and never saw goes to others at once.
        unseen = [lease for lease in session.leases.values() if _as_held(lease) not in held]
        self._end_leases(unseen, "voided")
        for lease in list(session.leases.values()):
            self._tell(lease, _news_of(lease))
        owned = {_as_held(lease) for lease in session.leases.values()}
        for gone in sorted(held - owned):
            session.outgoing.add_news(_lost_news(gone.execution, gone.run, gone.fence))
        self._dispatcher.dispatch()
        return session, Registered(session=session.id, ttl=self.sessions.ttl, server=self._release)

    async def answer(self, session: WorkerSession, message: FromWorker) -> FromServer | None:
        """What is to be said at once; commands, news and what is acknowledged wait in `session.outgoing`."""
        match message:
            case WorkerReport():
                self.report(session, message)
                return None
            case ClaimCredit(slots=slots):
                session.slots = slots
                self._dispatcher.dispatch()
                return None
            case Heartbeat():
                known = self.sessions.get(session.id) is session
                if known:
                    self.sessions.beat(session)
                return Beaten(known=known)
            case Release():
                await self._release_runs(session, message)
                return Released()
            case FetchPlaybook() | FetchWorkload() | FetchCredential():
                return await answer_fetch(self._service, self._credentials, session, message)
            case Register():
                return Rejected(code="invalid_request", message="this session is registered already")
            case _:
                assert_never(message)

    def report(self, session: WorkerSession, message: WorkerReport) -> None:
        """Records what happened; the acknowledgement follows when all of it is durable."""
        verdicts: list[Verdict] = []
        lives: dict[str, LiveExecution] = {}
        ended: list[Lease] = []
        self._print(session, message.logs)
        self._dispatcher.hold()
        for part in message.reports:
            lease = self._leases.get((part.execution, part.run))
            if lease is None or lease.session is not session or lease.fence != part.fence:
                verdicts.append("lost")
                if (live := self._service.registry.get(part.execution)) is not None:
                    lives[part.execution] = live
                continue
            lives[part.execution] = lease.live
            verdicts.append(self._record(lease, part))
            if _owned_run(lease) is None:
                ended.append(lease)
        for lease in ended:
            self._dispatcher.chain(lease)
        self._dispatcher.dispatch()
        outgoing = session.outgoing
        all_durable(lives.values(), lambda: outgoing.acknowledge(message.no, tuple(verdicts)))

    def _record(self, lease: Lease, part: RunReport) -> Verdict:
        live = lease.live
        data = tuple(bytes(body) for _, _, body in part.events)
        try:
            bodies = tuple(
                decode(kind, body, version)
                for (kind, version, _), body in zip(part.events, data, strict=True)
            )
            live.submit(Report(part.run, part.fence, part.start, bodies, data))
        except NotOwner:
            return "lost"
        except ReportEarly:
            return "again"
        except (Refused, EventUnreadable):
            # Its fold differs from ours: whatever it says next, it cannot go on. The loss is counted, so that
            # this has an end.
            self._end_leases([lease], "expired")
            return "lost"
        if part.done and _owned_run(lease) is not None:
            # It left because all of it waited, and did not know yet that something of it goes on.
            self._end_leases([lease], "released")
        return "durable"

    def _print(self, session: WorkerSession, logs: Iterable[PrintedText]) -> None:
        for line in logs:
            if self._logs is not None and session.owns_run_of(line.execution):
                self._logs.write(line.execution, line.source, line.text)

    async def _release_runs(self, session: WorkerSession, message: Release) -> None:
        leases = [lease for lease in session.leases.values() if _as_held(lease) in set(message.runs)]
        lives = self._end_leases(leases, "expired" if message.failed else "released")
        durable: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        all_durable(lives, lambda: None if durable.done() else durable.set_result(None))
        await durable


def once_durable(live: LiveExecution, then: Callable[[], None]) -> None:
    """Calls `then` when everything decided so far is durable: at once if it is."""
    if live.durable >= live.state.version:
        then()
    else:
        live.when_durable(then)


def all_durable(lives: Iterable[LiveExecution], then: Callable[[], None]) -> None:
    """The same for several executions."""
    waiting = {live.execution_id: live for live in lives if live.durable < live.state.version}
    if not waiting:
        then()
        return

    def count_down(execution_id: str) -> None:
        del waiting[execution_id]
        if not waiting:
            then()

    for live in list(waiting.values()):
        live.when_durable(lambda name=live.execution_id: count_down(name))  # type: ignore[misc]  # bound now


def _owned_run(lease: Lease) -> RunState | None:
    """The run of a lease, as long as it is owned under that."""
    run = lease.live.state.runs.get(lease.run)
    return run if run is not None and run.phase == "claimed" and run.fence == lease.fence else None


def _as_held(lease: Lease) -> RunLease:
    return RunLease(lease.live.execution_id, lease.run, lease.fence)


def _lost_news(execution_id: str, run: str, fence: int) -> RunNews:
    return RunNews(execution=execution_id, run=run, fence=fence)


def _news_of(lease: Lease) -> RunNews:
    """How things stand with a run, as far as they were decided."""
    run, state = _owned_run(lease), lease.live.state
    if run is None:
        return _lost_news(lease.live.execution_id, lease.run, lease.fence)
    frames = [run.frames[int(index)] for index in run.busy]  # in the order they were resumed
    resumed = tuple(
        RunResumed(
            run=run.id,
            reason=frame.resumption.reason if frame.resumption else "timer",
            iteration=frame.index,
            payload=frame.resumption.payload if frame.resumption else None,
        )
        for frame in frames
    )
    return RunNews(
        execution=lease.live.execution_id,
        run=run.id,
        fence=lease.fence,
        owned=True,
        stopping=bool(state.stopping),
        paused=state.paused,
        reported=run.reported,
        resumed=resumed,
    )
