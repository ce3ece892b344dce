"""Running playbooks from Python: `noetl.run` and `noetl.arun`."""

import asyncio
import gc
import os
import sys
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from msgspec import Struct, structs

from noetl.engine.task_log import TaskLog
from noetl.events.event import Event
from noetl.home import home_of, key_location, result_store_of, store_url
from noetl.kernel import ExecutionState
from noetl.loader import TextOrPath as Given
from noetl.loader import read_source
from noetl.local import Local, PlaybookSource
from noetl.model import NoetlError
from noetl.model.outcome import ErrorInfo
from noetl.model.reference import unescape
from noetl.ports.store import Store
from noetl.settings import Configuration, read_settings
from noetl.stores import open_store, store_file_of
from noetl.stores.credentials import EncryptedCredentials
from noetl.stores.ownership import Owners

T = TypeVar("T")


def dedicate_process() -> None:
    """For programs that run executions and do little else; `run` and `arun` leave their callers alone.

    Beside a busy loop, the thread that writes would wait 5 ms for each of its turns. And an execution makes
    many objects that live long and few cycles, so looking for garbage all the time costs a sixth of it all.
    """
    sys.setswitchinterval(0.0005)
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)


class ExecutionFailed(NoetlError):
    """An execution did not complete; `execution` says how it ended."""

    def __init__(self, execution: "Execution") -> None:
        error = execution.error or {}
        said = f": {error['message']}" if error.get("message") else ""
        super().__init__(f"{execution.execution_id} {execution.status}{said}")
        self.execution = execution


class Execution(Struct, frozen=True, kw_only=True):
    """An execution as it stands, or ended: what `noetl run -o json` prints.

    `error` is `{step, task, attempt, kind, message}` of the first unhandled failure; `duration_ms` is from
    the request's first event to the last.
    """

    execution_id: str
    playbook: str
    version: str | None
    status: str
    result: Any
    ctx: dict[str, Any]
    error: dict[str, Any] | None
    duration_ms: int
    discarded: list[dict[str, str]]
    steps: dict[str, dict[str, Any]]

    @property
    def ok(self) -> bool:
        return self.status == "completed"

    def raise_for_status(self) -> "Execution":
        """The same; raises ExecutionFailed unless it completed."""
        if not self.ok:
            raise ExecutionFailed(self)
        return self


def execution_of(state: ExecutionState, *, last: int = 0) -> Execution:
    """`last` is the time of the last event, where the execution is not over."""
    metadata = state.plan.playbook.metadata
    return Execution(
        execution_id=state.execution_id,
        playbook=metadata.path,
        version=metadata.version,
        status=state.status,
        result=unescape(state.result),
        ctx=unescape(state.ctx.values),
        error=_error(first_failure(state)),
        duration_ms=elapsed(state, last) // 1_000,
        discarded=[{"step": one["step"], "reason": one["reason"]} for one in state.discarded],
        steps={
            name: {"status": summary.status, "runs": summary.runs}
            for name, summary in state.summaries.items()
        },
    )


def first_failure(state: ExecutionState) -> ErrorInfo | None:
    """The first unhandled failure, also while the rest still runs."""
    if state.error is not None or state.over or not state.failures:
        return state.error
    return state.failures[0].error


def elapsed(state: ExecutionState, last: int = 0) -> int:
    """Microseconds from the request's first event to the last."""
    return max((state.ended_at or last or state.started_at) - state.started_at, 0)


def _error(error: ErrorInfo | None) -> dict[str, Any] | None:
    if error is None:
        return None
    where = {name: error.details.get(name) for name in ("step", "task", "attempt")}
    return {**where, "kind": error.kind, "message": error.message}


async def arun(
    source: Given,
    workload: Mapping[str, Any] | None = None,
    *,
    ctx: Mapping[str, Any] | None = None,
    labels: Mapping[str, str] | None = None,
    idempotency_key: str = "",
    timeout: float | None = None,
    store: str | None = None,
    dialect: str | None = None,
    allow_kinds: Iterable[str] = (),
    catalogs: Iterable[Given] = (),
    slots: int | None = None,
) -> Execution:
    """Runs a playbook, from a file or from text of more than one line, to its end.

    `store` is the URL of a store (`sqlite:///:memory:` leaves nothing behind); without one it is that of
    the command line. A failed execution is returned, not raised; `result` and `ctx` are whole, however
    large. Raises PlaybookInvalid, CannotRun, Refused, StoreError, ResultError.
    """
    configuration = read_settings({"store": store, "slots": slots, "allow_kinds": tuple(allow_kinds)})
    name, text = read_source(source)
    file = "" if text is source else os.path.abspath(os.fspath(source))
    async with open_local(configuration, catalogs=[Path(os.fspath(one)) for one in catalogs]) as (local, _):
        execution_id = await local.start(
            PlaybookSource(text, name, file, dialect),
            workload=workload,
            ctx=ctx,
            labels=labels,
            idempotency_key=idempotency_key,
            timeout=timeout,
        )
        state = await local.wait_for_end(execution_id)
        result, ctx = await local.resolve(state.result), await local.resolve(state.ctx.values)
        return structs.replace(execution_of(state), result=result, ctx=ctx)


def run(source: Given, workload: Mapping[str, Any] | None = None, **options: Any) -> Execution:
    """`arun` for programs that do not await; it takes the same options.

    It works where an event loop runs already, as in a notebook: the execution has a thread of its own, which
    ends if the caller is interrupted.
    """
    return _in_own_loop(arun(source, workload, **options))


def _in_own_loop(work: Coroutine[Any, Any, T]) -> T:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    loop = asyncio.new_event_loop()
    task = loop.create_task(work)
    ended = threading.Event()

    async def end() -> None:
        await asyncio.wait([task])

    def whole() -> None:
        try:
            with asyncio.Runner(loop_factory=lambda: loop) as runner:
                runner.run(end())
        finally:
            ended.set()

    thread = threading.Thread(target=whole, name="noetl-run")
    thread.start()
    try:
        ended.wait()  # a `join` that is interrupted may take the thread for ended
    except BaseException:
        with suppress(RuntimeError):  # its loop is closed: it ends just now
            loop.call_soon_threadsafe(task.cancel)
        ended.wait()
        thread.join()
        raise
    thread.join()
    return task.result()


Watch: TypeAlias = Callable[[str, Sequence[Event], ExecutionState], None]


@asynccontextmanager
async def open_local(
    configuration: Configuration, *, catalogs: Iterable[Path] = (), watch: Watch | None = None
) -> AsyncIterator[tuple[Local, Store]]:
    """An engine on the store that is set, which is made if there is none. Raises StoreError."""
    settings = configuration.settings
    url = store_url(configuration)
    options: dict[str, Any] = {}
    home = home_of(configuration) if store_file_of(url) is not None else None
    if home is not None:
        home.make()
        options = {
            "owners": Owners(home.owners),
            "logs": TaskLog(home.logs),
        }
    store = open_store(url)
    try:
        options["results"] = result_store_of(configuration, home, store)
        async with Local(
            store,
            slots=settings.slots,
            catalogs=catalogs,
            allow_kinds=settings.allow_kinds,
            watch=watch,
            credentials=EncryptedCredentials(store, key_location(configuration)),
            **options,
        ) as local:
            yield local, store
    finally:
        await store.close()
