"""One run that the worker owns, and the attempts in flight in it."""

import asyncio

from noetl.kernel.state.run_state import RunState
from noetl.ports.ledger import Ledger
from noetl.worker.keychain.execution_keychain import Keychain


class ClaimedRun:
    """Owned under `fence`: as soon as the run has another one, or none, the worker has nothing to say in it.

    `open_attempts` counts attempts that were recorded as started and have not ended, in `tasks` or on their
    way there.
    """

    __slots__ = (
        "chained",
        "fence",
        "fetches",
        "interrupted",
        "keychain",
        "ledger",
        "open_attempts",
        "queued",
        "run",
        "tasks",
        "waits_until",
    )

    def __init__(self, ledger: Ledger, run: RunState) -> None:
        self.ledger = ledger
        self.run = run
        self.fence = run.fence
        self.chained = 0
        """Runs of this execution that it had one after the other."""
        self.tasks: dict[int, asyncio.Task[None]] = {}
        self.fetches: set[asyncio.Task[None]] = set()
        self.open_attempts = 0
        self.queued = False
        self.interrupted = False
        self.waits_until = 0
        self.keychain: Keychain | None = None

    @property
    def idle(self) -> bool:
        """Whether nothing of the run is under way, so that another one can take its place."""
        return not self.open_attempts and not self.tasks and not self.fetches

    def follow(self, run: RunState) -> None:
        """Goes on with another run of the same execution."""
        self.run = run
        self.fence = run.fence
        self.chained += 1
        self.interrupted = False
        self.waits_until = 0

    @property
    def owned(self) -> bool:
        return self.run.phase == "claimed" and self.run.fence == self.fence

    @property
    def key(self) -> tuple[str, str]:
        return self.ledger.execution_id, self.run.id
