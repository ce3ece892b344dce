"""What a run may want next: a closed set of instructions. Whoever drives it only obeys."""

from collections.abc import Mapping
from typing import Any, TypeAlias

from msgspec import Struct

from noetl.dsl.document.playbook import Task
from noetl.events.bodies import (
    LoopIterationCompleted,
    LoopIterationStarted,
    LoopStarted,
    RunSuspended,
    TaskProcessed,
    TaskStarted,
)
from noetl.kernel.state.run_fold import RunEnd


class RunTask(Struct, frozen=True, kw_only=True):
    """Record `started`, run the tool, judge its outcome, record that.

    `inputs` and `args` are rendered with the real secrets; `started.input` with what stands for them.
    `timeout` is in seconds. `idempotency_key` stays the same if the attempt is delivered again. `opens`
    begins the iteration and is recorded first.
    """

    task: Task
    started: TaskStarted
    opens: LoopIterationStarted | None = None
    inputs: Mapping[str, Any]
    args: Mapping[str, Any]
    spec: Mapping[str, Any]
    prev: Any
    timeout: float
    idempotency_key: str

    @property
    def iteration(self) -> int:
        return self.started.iteration

    @property
    def begins(self) -> tuple[LoopIterationStarted | TaskStarted, ...]:
        """What is recorded before the tool runs."""
        return (self.started,) if self.opens is None else (self.opens, self.started)


class Record(Struct, frozen=True):
    """Record this and ask again."""

    body: (
        LoopStarted
        | LoopIterationStarted
        | LoopIterationCompleted
        | RunSuspended
        | TaskStarted
        | TaskProcessed
    )


class Wait(Struct, frozen=True):
    """Nothing to begin before that time, or before a task in flight ends. None: only the latter."""

    until: int | None = None


class Suspend(Struct, frozen=True):
    """Nothing to do before the run is resumed, and nobody owns it meanwhile."""


class Finish(Struct, frozen=True):
    """The run is over. The server completes what it alone knows before this is recorded."""

    body: RunEnd


class Fetch(Struct, frozen=True):
    """Ask again with the stored values under these keys: all that is known to be needed next."""

    keys: tuple[str, ...]


Move: TypeAlias = RunTask | Record | Wait | Suspend | Finish | Fetch
