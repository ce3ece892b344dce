"""What a worker needs of whoever keeps an execution."""

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from noetl.dsl.document.playbook import Playbook
from noetl.events.bodies import EventBody
from noetl.kernel.state.run_state import RunState
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

    def report(self, run: RunState, *bodies: EventBody, claim_next: bool = False) -> RunState | None:
        """Records what happened in a run that the worker owns; the run is up to date afterwards.

        With `claim_next` the worker takes the next run that is ready, if this one has ended, and owns that.
        """
        ...

    def give_back(self, run: RunState) -> None:
        """Lets others have a run that the worker owns; nothing of it is in flight."""
        ...

    def when_durable(self, then: Callable[[], None]) -> None:
        """Calls `then` once everything reported so far would survive a crash."""
        ...

    async def read_blob(self, key: str) -> bytes:
        """Bytes that events of the execution name. Raises ResultError."""
        ...

    def log(self, run: RunState, iteration: int, task: str, attempt: int, text: str) -> None:
        """A line that a task printed."""
        ...


def log_source(run: RunState, iteration: int, task: str, attempt: int) -> dict[str, str | int]:
    """Where a line that a task printed comes from, as logs keep it."""
    source: dict[str, str | int] = {
        "step": run.step.name,
        "run": run.id,
        "task": task,
        "attempt": attempt,
    }
    if run.loop is not None:
        source["iteration"] = iteration
    return source
