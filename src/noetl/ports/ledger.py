"""What a worker needs of whoever keeps an execution."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, TypedDict

from noetl.dsl.document.playbook import Playbook
from noetl.events.bodies import EventBody
from noetl.kernel.state.run_state import ClaimedPart, RunState, Shard
from noetl.model.secret import SecretOrigin
from noetl.ports.results import ExecutionObjects


class Ledger(Protocol):
    """One execution, as the worker of its runs sees it."""

    @property
    def execution_id(self) -> str: ...

    @property
    def trace_id(self) -> str: ...

    @property
    def playbook(self) -> Playbook: ...

    async def playbook_of(self, playbook_hash: str) -> tuple[Playbook, Path]:
        """Another stored playbook, and where its relative paths start. Raises StoreError."""
        ...

    @property
    def folder(self) -> Path:
        """Where relative paths of its playbook start."""
        ...

    def objects(self, run: RunState, task: str) -> ExecutionObjects:
        """Its stored objects; new ones are kept as the task says."""
        ...

    @property
    def paused(self) -> bool:
        """Whether runs are to let go at the next task boundary."""
        ...

    @property
    def stopping(self) -> bool:
        """Whether runs are to be interrupted."""
        ...

    def report(
        self, run: RunState, *bodies: EventBody, shard: Shard | None = None, claim_next: bool = False
    ) -> ClaimedPart | None:
        """Records what happened in a run or shard that the worker owns; that is up to date afterwards.

        With `claim_next` the worker takes what is ready next, if this one has ended, and owns that.
        """
        ...

    def give_back(self, run: RunState, shard: Shard | None = None) -> None:
        """Lets others have a run or shard that the worker owns; nothing of it is in flight."""
        ...

    def when_durable(self, then: Callable[[], None]) -> None:
        """Calls `then` once everything reported so far would survive a crash."""
        ...

    async def read_blob(self, key: str) -> bytes:
        """Bytes that events of the execution name. Raises ResultError."""
        ...

    async def sealed_value(self, origin: SecretOrigin) -> Any:
        """What a task marked secret in another process. Raises CredentialError."""
        ...

    def log(self, run: RunState, iteration: int, task: str, attempt: int, text: str) -> None:
        """A line that a task printed."""
        ...


class LogSource(TypedDict, total=False):
    """Where a line that a task printed comes from, as logs keep it. `iteration`: of a loop."""

    step: str
    run: str
    task: str
    attempt: int
    iteration: int


def log_source(run: RunState, iteration: int, task: str, attempt: int) -> LogSource:
    source = LogSource(step=run.step.name, run=run.id, task=task, attempt=attempt)
    if run.loop is not None:
        source["iteration"] = iteration
    return source
