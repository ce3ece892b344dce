"""The worker processes that a server knows: how long their leases live, and what waits to be sent to them."""

import asyncio
import secrets
import time
from collections.abc import Callable, Iterator

from noetl.engine.execution import LiveExecution
from noetl.ports.control import Ack, Message, News, Register, RunCommand, RunNews, Verdict, Work

TTL = 10.0
"""Seconds after its last heartbeat for which a worker counts as alive."""


class Lease:
    """A run that a session owns. `chained`: how many of its execution it had one after the other."""

    __slots__ = ("chained", "fence", "live", "run", "session")

    def __init__(
        self, session: "WorkerSession", live: LiveExecution, run: str, fence: int, chained: int = 0
    ) -> None:
        self.session = session
        self.live = live
        self.run = run
        self.fence = fence
        self.chained = chained


class Outgoing:
    """Messages to one worker, in order. What becomes durable in one turn of the loop goes as one message."""

    def __init__(self) -> None:
        self._messages: list[Message] = []
        self._acks: list[tuple[int, tuple[Verdict, ...]]] = []
        self._commands: list[RunCommand] = []
        self._news: list[RunNews] = []
        self._filled = asyncio.Event()

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
        await self._filled.wait()
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


class WorkerSession:
    """One worker process. Its id is random and made at its start, never a name that another could have.

    `slots` is how many runs it takes at a time; it has credit as long as it holds fewer.
    """

    def __init__(self, session_id: str, expires: float) -> None:
        self.id = session_id
        self.expires = expires
        self.worker = ""
        self.release = ""
        self.pools: frozenset[str] = frozenset()
        self.kinds: frozenset[str] = frozenset()
        self.slots = 0
        self.leases: dict[tuple[str, str], Lease] = {}
        self.outgoing = Outgoing()
        self.superseded = asyncio.Event()
        """Set when another connection takes this one's part, or the session is over."""

    @property
    def credit(self) -> int:
        return self.slots - len(self.leases)

    def describe(self, message: Register) -> None:
        """What the worker says of itself."""
        self.worker = message.worker
        self.release = message.release
        self.pools = frozenset(message.pools)
        self.kinds = frozenset(message.kinds)
        self.slots = message.slots

    def connect(self) -> None:
        """A new connection: nothing of what was on its way to the last one will be seen."""
        self.superseded.set()
        self.superseded = asyncio.Event()
        self.outgoing = Outgoing()

    def owns_run_of(self, execution_id: str) -> bool:
        return any(execution == execution_id for execution, _ in self.leases)


class Sessions:
    """All sessions, by id. `lost` is called with each that stopped beating; it is unknown then.

    Time is this process's own monotonic clock: nobody's setting of a clock ends or prolongs a lease.
    """

    def __init__(
        self,
        ttl: float,
        lost: Callable[[WorkerSession], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.ttl = ttl
        self._lost = lost
        self._clock = clock
        self._by_id: dict[str, WorkerSession] = {}
        self._check: asyncio.TimerHandle | None = None

    def get(self, session_id: str) -> WorkerSession | None:
        return self._by_id.get(session_id)

    def __iter__(self) -> Iterator[WorkerSession]:
        return iter(self._by_id.values())

    def open(self, session_id: str = "") -> WorkerSession:
        """The session with this id; one that was not known counts as alive for one ttl from here."""
        session = self._by_id.get(session_id)
        if session is None:
            session = WorkerSession(session_id or secrets.token_hex(16), self._clock() + self.ttl)
            self._by_id[session.id] = session
            self._watch()
        return session

    def beat(self, session: WorkerSession) -> None:
        session.expires = self._clock() + self.ttl

    def end(self, session: WorkerSession) -> None:
        """Whoever it was will not be heard again. A second time does nothing."""
        if self._by_id.pop(session.id, None) is not None:
            session.superseded.set()
            self._lost(session)

    def close(self) -> None:
        if self._check is not None:
            self._check.cancel()

    def _watch(self) -> None:
        # One handle for the earliest end: heartbeats only move ends away, so it may come too early, not late.
        if self._check is None and self._by_id:
            earliest = min(session.expires for session in self)
            wait = max(earliest - self._clock(), 0.0)
            self._check = asyncio.get_running_loop().call_later(wait, self._expire)

    def _expire(self) -> None:
        self._check = None
        now = self._clock()
        for session in [session for session in self if session.expires <= now]:
            self.end(session)
        self._watch()
