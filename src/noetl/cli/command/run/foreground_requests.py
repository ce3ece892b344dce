"""What commands that run an execution here ask of the engine."""

from collections.abc import Mapping
from typing import Any, Protocol

from msgspec import Struct

from noetl.cli.options import current_user
from noetl.engine.catalog.playbook_record import PlaybookSource
from noetl.engine.history.lookup import find_execution
from noetl.local import Local
from noetl.ports.store import Store


class ExecutionRequest(Protocol):
    """What is asked of the engine. `source` and `workload` are what comes with it."""

    @property
    def source(self) -> PlaybookSource | None: ...

    @property
    def workload(self) -> Mapping[str, Any]: ...

    async def begin(self, local: Local, store: Store) -> str:
        """The id of the execution that runs from here on. Raises NoetlError."""
        ...


class StartRequest(Struct, frozen=True, kw_only=True):
    """Run this playbook."""

    source: PlaybookSource
    workload: dict[str, Any] = {}
    ctx: dict[str, Any] = {}
    labels: dict[str, str] = {}
    idempotency_key: str = ""
    timeout: float | None = None

    async def begin(self, local: Local, store: Store) -> str:  # noqa: ARG002 - as the protocol says
        return await local.start(
            self.source,
            workload=self.workload,
            ctx=self.ctx,
            labels=self.labels,
            idempotency_key=self.idempotency_key,
            timeout=self.timeout,
            by=current_user(),
        )


class ResumeRequest(Struct, frozen=True):
    """Go on with an execution that was interrupted. `name` is its id, the beginning of it, or `latest`."""

    name: str
    source: None = None
    workload: dict[str, Any] = {}

    async def begin(self, local: Local, store: Store) -> str:
        return await local.resume((await find_execution(store, self.name)).execution_id)


class RetryRequest(Struct, frozen=True):
    """Go on with a failed execution at what failed; `source` is its repaired playbook."""

    name: str
    by: str = ""
    source: PlaybookSource | None = None
    workload: dict[str, Any] = {}

    async def begin(self, local: Local, store: Store) -> str:
        execution_id = (await find_execution(store, self.name)).execution_id
        return await local.retry(execution_id, source=self.source, by=self.by)


class ForkRequest(Struct, frozen=True, kw_only=True):
    """Run a copy of an execution from one of its events on."""

    name: str
    at: int
    source: PlaybookSource | None = None
    workload: dict[str, Any] = {}
    ctx: dict[str, Any] = {}
    by: str = ""

    async def begin(self, local: Local, store: Store, *, run: bool = True) -> str:
        return await local.fork(
            (await find_execution(store, self.name)).execution_id,
            at=self.at,
            source=self.source,
            workload=self.workload,
            ctx=self.ctx,
            by=self.by,
            run=run,
        )
