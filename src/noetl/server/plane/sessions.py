"""The worker processes that a server knows: how long their leases live, and what waits to be sent to them."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple, TypeAlias

from noetl.engine.execution import LiveExecution
from noetl.events.bodies import RunResumed
from noetl.kernel.state.run_state import RunState, Shard
from noetl.ports.control import (
    Ack,
    Drain,
    Message,
    News,
    Register,
    RunCommand,
    RunLease,
    RunNews,
    Verdict,
    Work,
)
from noetl.system import SYSTEM, System

TTL = 10.0
"""Seconds after its last heartbeat for which a worker counts as alive."""

OWN_SESSION = "server-"
"""What the ids of sessions in the process of the server begin with: they end with it."""
STANDSTILL = 0.25
"""Part of a ttl by which a look at the sessions may be late; later, it is this process that was not there."""


LeaseEnd: TypeAlias = Literal["expired", "released", "voided"]
"""Why a lease is over; only `expired` is a loss."""


class Lease:
    """A run that a session owns, or the shard of it that begins with iteration `shard`.

    `chained`: how many of its execution it had one after the other.
    """

    __slots__ = ("chained", "fence", "live", "run", "session", "shard")

    def __init__(  # noqa: PLR0917 - what is owned, and by whom
        self,
        session: "WorkerSession",
        live: LiveExecution,
        run: str,
        fence: int,
        shard: int = -1,
        chained: int = 0,
    ) -> None:
        self.session = session
        self.live = live
        self.run = run
        self.fence = fence
        self.shard = shard
        self.chained = chained

    @property
    def owned(self) -> RunState | Shard | None:
        """What is owned under it; None if nothing is any more."""
        run = self.live.state.runs.get(self.run)
        return run.owned_under(self.fence) if run is not None else None

    @property
    def held(self) -> RunLease:
        """As its worker names it."""
        return RunLease(self.live.execution_id, self.run, self.fence)

    @property
    def news(self) -> RunNews:
        """How things stand with it, as far as they were decided."""
        owned, state = self.owned, self.live.state
        if owned is None:
            return lost_news(self.live.execution_id, self.run, self.fence)
        run = state.runs[self.run]
        # In the order they were resumed. In a shard nothing waits: it would have no owner.
        frames = [] if self.shard >= 0 else [run.frames[int(index)] for index in run.busy]
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
            execution=self.live.execution_id,
            run=run.id,
            fence=self.fence,
            owned=True,
            stopping=bool(state.stopping),
            paused=state.paused,
            reported=owned.reported,
            resumed=resumed,
        )


def lost_news(execution_id: str, run: str, fence: int) -> RunNews:
    """That whoever has this does not own it any more."""
    return RunNews(execution=execution_id, run=run, fence=fence)


class Leases:
    """All that sessions own, by run; of one run they may be several, for its shards."""

    def __init__(self) -> None:
        self._by_run: dict[tuple[str, str], dict[int, Lease]] = {}

    def add(self, lease: Lease) -> None:
        execution_id = lease.live.execution_id
        self._by_run.setdefault((execution_id, lease.run), {})[lease.fence] = lease
        lease.session.leases[execution_id, lease.fence] = lease

    def get(self, execution_id: str, run: str, fence: int) -> Lease | None:
        return self._by_run.get((execution_id, run), {}).get(fence)

    def __iter__(self) -> Iterator[Lease]:
        return (lease for leases in list(self._by_run.values()) for lease in list(leases.values()))

    def of_run(self, execution_id: str, run: str) -> list[Lease]:
        return list(self._by_run.get((execution_id, run), {}).values())

    def of_execution(self, execution_id: str) -> list[Lease]:
        return [lease for lease in self if lease.live.execution_id == execution_id]

    @property
    def executions(self) -> set[str]:
        """Those of which somebody here has a run."""
        return {execution_id for execution_id, _ in self._by_run}

    def remove(self, lease: Lease) -> None:
        """A second time does nothing."""
        execution_id = lease.live.execution_id
        lease.session.leases.pop((execution_id, lease.fence), None)
        of_run = self._by_run.get((execution_id, lease.run), {})
        if of_run.get(lease.fence) is lease:
            del of_run[lease.fence]
        if not of_run:
            self._by_run.pop((execution_id, lease.run), None)


class Outgoing:
    """Messages to one worker, in order. What becomes durable in one turn of the loop goes as one message."""

    def __init__(self) -> None:
        self._messages: list[Message] = []
        self._acks: list[tuple[int, tuple[Verdict, ...]]] = []
        self._commands: list[RunCommand] = []
        self._news: list[RunNews] = []
        self._filled = asyncio.Event()
        self.awaited = False
        """Whether somebody waits for what comes."""

    def put(self, message: Message) -> None:
        self._messages.append(message)
        self._filled.set()

    def acknowledge(self, number: int, verdicts: tuple[Verdict, ...]) -> None:
        self._acks.append((number, verdicts))
        self._filled.set()

    def add_command(self, command: RunCommand) -> None:
        self._commands.append(command)
        self._filled.set()

    def add_news(self, news: RunNews) -> None:
        self._news.append(news)
        self._filled.set()

    async def take(self) -> list[Message]:
        """What waits, as soon as there is something."""
        self.awaited = True
        try:
            await self._filled.wait()
        finally:
            self.awaited = False
        return self.take_now()

    def take_now(self) -> list[Message]:
        self._filled.clear()
        messages, self._messages = self._messages, []
        acks, self._acks = self._acks, []
        commands, self._commands = tuple(self._commands), []
        if acks:
            messages += [Ack(no=number, verdicts=verdicts) for number, verdicts in acks[:-1]]
            number, verdicts = acks[-1]
            messages.append(Ack(no=number, verdicts=verdicts, commands=commands))
        elif commands:
            messages.append(Work(commands=commands))
        if self._news:
            # After the commands: it may be about them.
            messages.append(News(items=tuple(self._news)))
            self._news = []
        return messages


class LostSession(NamedTuple):
    """A worker that went silent; `at` is in microseconds since 1970."""

    worker: str
    at: int
    runs: int


class WorkerSession:
    """One worker process. Its id is random and made at its start, never a name that another could have.

    `slots` is how many runs it takes at a time; it has credit as long as it is there and holds fewer.
    """

    def __init__(self, session_id: str, ttl: float, expires: float) -> None:
        self.id = session_id
        self.ttl = ttl
        self.expires = expires
        self.token = ""
        """The name of the token that it was opened with; no other may speak for it."""
        self.worker = ""
        self.release = ""
        self.pools: frozenset[str] = frozenset()
        self.kinds: frozenset[str] = frozenset()
        self.slots = 0
        self.leases: dict[tuple[str, int], Lease] = {}
        """By execution and fence."""
        self.outgoing = Outgoing()
        self.away = False
        """Whether its connection has ended, and no other has come: it would not hear of what it is given."""
        self.internal = False
        """Whether it is the server itself, which only hands values on, and no worker of its operator."""
        self.superseded = asyncio.Event()
        """Set when another connection takes this one's part, or the session is over."""

    @property
    def credit(self) -> int:
        return 0 if self.away else self.slots - len(self.leases)

    def describe(self, message: Register) -> None:
        """What the worker says of itself."""
        self.worker = message.worker
        self.release = message.release
        self.pools = frozenset(message.pools)
        self.kinds = frozenset(message.kinds)
        self.slots = message.slots

    def drain(self) -> None:
        """It is to end what it runs, and to leave. It says so itself by taking no more."""
        self.outgoing.put(Drain())

    def connect(self) -> None:
        """A new connection: nothing of what was on its way to the last one will be seen."""
        self.superseded.set()
        self.superseded = asyncio.Event()
        self.outgoing = Outgoing()
        self.away = False

    def lease_of_run(self, execution_id: str, run: str) -> Lease | None:
        """That of the run, or of one of its shards."""
        mine = (lease for (execution, _), lease in self.leases.items() if execution == execution_id)
        return next((lease for lease in mine if lease.run == run), None)

    def owns_run_of(self, execution_id: str) -> bool:
        return any(execution == execution_id for execution, _ in self.leases)

    def owns_run_with(self, playbook_hash: str) -> bool:
        """Whether it has claimed a run of an execution of this playbook."""
        return any(lease.live.playbook.hash == playbook_hash for lease in self.leases.values())


class Sessions:
    """All sessions, by id. `lost` is called with each that stopped beating; it is unknown then.

    Time is this process's own monotonic clock: nobody's setting of a clock ends or prolongs a lease. With
    `silent`, which is called then instead, a session that stopped beating here may beat at another server.
    """

    def __init__(
        self,
        ttl: float,
        lost: Callable[[WorkerSession], None],
        system: System = SYSTEM,
        *,
        silent: Callable[[WorkerSession], None] | None = None,
    ) -> None:
        self.ttl = ttl
        self._lost = lost
        self._silent = silent
        self._system = system
        self._clock = system.monotonic
        self._by_id: dict[str, WorkerSession] = {}
        self._check: asyncio.TimerHandle | None = None
        self.on_worker_lost: Callable[[LostSession], None] = lambda _: None
        """Called with each that stopped beating while it had runs."""

    def get(self, session_id: str) -> WorkerSession | None:
        return self._by_id.get(session_id)

    def __iter__(self) -> Iterator[WorkerSession]:
        return iter(self._by_id.values())

    @property
    def workers(self) -> list[WorkerSession]:
        """Those that operators know of."""
        return [session for session in self if not session.internal]

    def new_id(self, prefix: str = "") -> str:
        return prefix + self._system.new_session_id()

    def open(self, session_id: str = "", prefix: str = "", ttl: float | None = None) -> WorkerSession:
        """The session with this id; one that was not known counts as alive for one ttl from here."""
        session = self._by_id.get(session_id)
        if session is None:
            ttl = self.ttl if ttl is None else ttl
            session = WorkerSession(session_id or self.new_id(prefix), ttl, self._clock() + ttl)
            self._by_id[session.id] = session
            self._watch()
        return session

    def age_of(self, session: WorkerSession) -> float:
        """Seconds since it was last heard of."""
        return max(self._clock() - session.expires + session.ttl, 0.0)

    def beat(self, session: WorkerSession) -> None:
        session.expires = self._clock() + session.ttl

    def end(self, session: WorkerSession) -> None:
        """Whoever it was will not be heard again. A second time does nothing."""
        if self._by_id.pop(session.id, None) is not None:
            session.superseded.set()
            self._lost(session)

    def forget(self, session: WorkerSession) -> None:
        """It is not connected here any more; its leases are another server's affair."""
        if self._by_id.pop(session.id, None) is not None:
            session.superseded.set()
            assert self._silent is not None  # noqa: S101 - else this server is the only one
            self._silent(session)

    def close(self) -> None:
        if self._check is not None:
            self._check.cancel()

    def _watch(self) -> None:
        # One handle for the earliest end: heartbeats only move ends away, so it may come too early, not late.
        if self._check is None and self._by_id:
            earliest = min(session.expires for session in self)
            wait = max(earliest - self._clock(), 0.0)
            self._check = asyncio.get_running_loop().call_later(wait, self._expire, self._clock() + wait)

    def _expire(self, due: float) -> None:
        self._check = None
        now = self._clock()
        if now - due > self.ttl * STANDSTILL:
            # This process stood still: what workers said meanwhile waits to be read.
            for session in self:
                self.beat(session)
        for session in [session for session in self if session.expires <= now]:
            if self._silent is not None:
                self.forget(session)
                continue
            if session.leases and not session.internal:
                self.on_worker_lost(LostSession(session.worker, self._system.now(), len(session.leases)))
            self.end(session)
        self._watch()
