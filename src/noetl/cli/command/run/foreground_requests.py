"""What commands that run an execution here ask of the engine, and what they warn about."""

import os
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from msgspec import Struct

from noetl.cli.console import plain_paint
from noetl.cli.options import current_user
from noetl.cli.problem_text import problems_text
from noetl.dsl.document.problem import Problem
from noetl.engine.catalog.catalog_playbooks import registered_source
from noetl.engine.catalog.playbook_record import PlaybookSource
from noetl.engine.catalog.playbooks import PlaybookDocument
from noetl.engine.catalog.preflight import unread_keys
from noetl.engine.history.lookup import find_execution
from noetl.local import Local
from noetl.ports.store import ExecutionRecord, Store


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


class RetryRequest(Struct, frozen=True, kw_only=True):
    """Go on with a failed execution at what failed; `source` is its repaired playbook, or `version` is."""

    name: str
    by: str = ""
    source: PlaybookSource | None = None
    version: int | None = None
    workload: dict[str, Any] = {}

    async def begin(self, local: Local, store: Store) -> str:
        record = await find_execution(store, self.name)
        return await local.retry(record.execution_id, source=await self._repaired(store, record), by=self.by)

    async def _repaired(self, store: Store, record: ExecutionRecord) -> PlaybookSource | None:
        if self.version is None:
            return self.source
        return await registered_source(store, record.path, self.version, os.getcwd())


class RedriveRequest(RetryRequest, frozen=True, kw_only=True):
    """Run the failed iterations of ended loops again, of those at `step` if one is named."""

    step: str = ""

    async def begin(self, local: Local, store: Store) -> str:
        record = await find_execution(store, self.name)
        source = await self._repaired(store, record)
        return await local.redrive(record.execution_id, step=self.step, source=source, by=self.by)


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


class LoadWarnings:
    """Says about each playbook that is read what `noetl validate` would warn about.

    `problems` are all of the warnings, for JSON.
    `workload` comes with the request, and is for the playbook that is read first.
    """

    def __init__(self, say: Callable[[str], None], workload: Mapping[str, Any]) -> None:
        self._say = say
        self._workload = workload
        self._first_path = ""
        self.problems: list[Problem] = []

    def observe(self, document: PlaybookDocument) -> None:
        playbook, text = document.playbook, document.source.text
        # Where a retry repairs a playbook, what it was before is read, too.
        if playbook.metadata.path == self._first_path:
            return
        self._first_path = self._first_path or playbook.metadata.path
        unread = unread_keys(playbook, text, self._workload)
        self._workload = {}
        for problems, lines in ((playbook.warnings, text), (unread, "")):
            if problems:
                self.problems += problems
                self._say(problems_text(problems, lines, paint=plain_paint))
