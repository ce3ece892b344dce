"""One run or shard that the worker owns, and the attempts in flight in it."""

import asyncio

from noetl.events.bodies import EventBody
from noetl.kernel.state.run_state import RunState, Shard
from noetl.ports.ledger import Ledger
from noetl.worker.keychain.execution_keychain import Keychain


class ClaimedRun:
    """Owned under `fence`: as soon as it has another one, or none, the worker has nothing to say in it.

    With `shard` it is only that of the run.

    `open_attempts` counts attempts that were recorded as started and have not ended, in `tasks` or on their
    way there.
    """

    __slots__ = (
        "chained",
        "ended",
        "fence",
        "fetches",
        "interrupted",
        "keychain",
        "ledger",
        "open_attempts",
        "queued",
        "run",
        "shard",
        "tasks",
        "waits_until",
    )

    def __init__(self, ledger: Ledger, run: RunState, shard: Shard | None = None) -> None:
        self.ledger = ledger
        self.run = run
        self.shard = shard
        self.fence = (shard or run).fence
        self.chained = 0
        """Runs of this execution that it had one after the other."""
        self.tasks: dict[int, asyncio.Task[None]] = {}
        self.fetches: set[asyncio.Task[None]] = set()
        self.open_attempts = 0
        self.ended: list[EventBody] = []
        """Of iterations that have ended, what is to be reported at the next turn of the run."""
        self.queued = False
        self.interrupted = False
        self.waits_until = 0
        self.keychain: Keychain | None = None

    @property
    def idle(self) -> bool:
        """Whether nothing of the run is under way, so that another one can take its place."""
        return not self.open_attempts and not self.tasks and not self.fetches

    def follow(self, run: RunState, shard: Shard | None) -> None:
        """Goes on with another one of the same execution."""
        self.run = run
        self.shard = shard
        self.fence = (shard or run).fence
        self.chained += 1
        self.interrupted = False
        self.waits_until = 0

    @property
    def owned(self) -> bool:
        owned = self.shard or self.run
        return owned.phase == "claimed" and owned.fence == self.fence

    @property
    def key(self) -> tuple[str, str, int]:
        return self.ledger.execution_id, self.run.id, self.shard.start if self.shard is not None else -1
