"""The executions of an embedded store, for Python programs: `noetl.open`."""

import os
from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from msgspec import Struct, structs

from noetl.api import ended_execution, open_local, playbooks_of
from noetl.engine.catalog.playbooks import Playbooks
from noetl.engine.engine import LARGEST_TABLE
from noetl.engine.history.lookup import find_execution, read_events, request_event_of, require_open
from noetl.engine.history.read import read_history
from noetl.engine.inbox import RemoteCommand
from noetl.engine.remote_control import RemoteControl
from noetl.engine.summary import Execution, execution_of
from noetl.events.event import envelope
from noetl.home import home_of, result_store_of, store_url
from noetl.kernel.net.commands import Cancel, Redrive, Resume, Retry, Signal
from noetl.kernel.references.resolve import resolve_references
from noetl.loader import TextOrPath
from noetl.local import Local
from noetl.model.normalisation import normalise
from noetl.model.secret import hide_secrets
from noetl.model.store_url import is_database_url
from noetl.own_loop import in_own_loop
from noetl.ports.store import ExecutionQuery, ExecutionRecord, Store, StoreUnusable
from noetl.settings import Configuration, read_settings
from noetl.stores import is_memory_url, open_store
from noetl.stores.ownership import Owners, owners_in
from noetl.stores.results.result_reader import read_result

T = TypeVar("T")

_PAGE = 1_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class ListedExecution(Struct, frozen=True, kw_only=True):
    """An execution as a list has it. Times are UTC; `parent` is the execution that started it, if one did."""

    execution_id: str
    playbook: str
    status: str
    started_at: datetime
    ended_at: datetime | None
    labels: dict[str, str]
    parent: str | None


# Beside the method `list`, `list` is no type.
ExecutionList: TypeAlias = list[ListedExecution]
Envelopes: TypeAlias = list[dict[str, Any]]


class Executions:
    """What `noetl executions` does, on one home. Made by `noetl.open`; holds nothing open between two calls.

    An execution is named by its id, the beginning of that, or `latest`. All methods work where an event loop
    runs already, and raise ExecutionUnknown and StoreError, which are NoetlErrors.
    """

    def __init__(self, configuration: Configuration, catalogs: tuple[Path, ...]) -> None:
        self._configuration = configuration
        self._catalogs = catalogs

    def show(self, name: str = "latest") -> Execution:
        """How an execution stands, or ended; `result` and `ctx` are whole. Raises ResultError, too."""

        async def work(store: Store) -> Execution:
            history = await read_history(store, name, self._configuration.settings.allow_kinds)
            results = result_store_of(self._configuration, home_of(self._configuration), store)
            state, get = history.state, partial(read_result, results)
            result, ctx = [
                hide_secrets(await resolve_references(value, get, largest_table=LARGEST_TABLE))
                for value in (state.result, state.ctx.values)
            ]
            summary = execution_of(state, last=history.events[-1].ts)
            return structs.replace(summary, result=result, ctx=ctx)

        return self._with_store(work)

    def events(self, name: str = "latest", *, after: int = 0) -> Envelopes:
        """What happened so far, each as its envelope; `after` leaves out all up to this `seq`."""

        async def work(store: Store) -> Envelopes:
            execution_id = (await find_execution(store, name)).execution_id
            events = [event async for page in read_events(store, execution_id) for event in page]
            trace_id = request_event_of(events).trace_id
            return [envelope(event, execution_id, trace_id) for event in events if event.seq > after]

        return self._with_store(work)

    def signal(self, name: str, signal: str, payload: Any = True) -> None:  # noqa: FBT002 - a value like others
        """Gives it a signal. Raises Refused if it has ended, NotJson for what has no form in JSON."""
        self._send(name, Signal(signal, normalise(payload)))

    def cancel(self, name: str, reason: str = "") -> None:
        """Ends it for good, with all that it started. Raises Refused if it has ended."""
        self._send(name, Cancel(reason=reason))

    def resume(self, name: str = "latest") -> Execution:
        """Goes on with one that was paused or interrupted, here, to its end.

        If another process runs it, that one goes on, and this returns at once. Raises Refused if it has
        ended, or runs and was not paused.
        """

        async def work(store: Store) -> str:
            record = await find_execution(store, name)
            await require_open(store, record)
            if self._owners.owner(record.execution_id, served=record.lives_on_server) is None:
                return record.execution_id
            await self._control(store).send(record.execution_id, Resume())
            return ""

        execution_id = self._with_store(work)
        return self._run(execution_id, Local.resume) if execution_id else self.show(name)

    def retry(self, name: str = "latest") -> Execution:
        """Goes on with one at what failed in it, here, to its end.

        If another process runs it, that one does it, and this returns at once. Raises Refused if nothing has
        failed.
        """
        return self._reopen(name, Retry(), Local.retry)

    def redrive(self, name: str = "latest", step: str = "") -> Execution:
        """Runs the failed iterations of ended loops again, of those at `step` if one is named, to its end.

        If another process runs it, that one does it, and this returns at once. Raises Refused if there are
        none.
        """
        return self._reopen(name, Redrive(step), partial(Local.redrive, step=step))

    def _reopen(
        self, name: str, command: Retry | Redrive, begin: Callable[[Local, str], Awaitable[str]]
    ) -> Execution:
        async def work(store: Store) -> str:
            record = await find_execution(store, name)
            if self._owners.owner(record.execution_id, served=record.lives_on_server) is None:
                return record.execution_id
            await self._control(store).send(record.execution_id, command)
            return ""

        execution_id = self._with_store(work)
        return self._run(execution_id, begin) if execution_id else self.show(name)

    def list(
        self,
        *,
        status: Iterable[str] = (),
        path: str = "",
        labels: Mapping[str, str] | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        error_kind: str = "",
        text: str = "",
        limit: int = 100,
    ) -> ExecutionList:
        """The newest first, at most `limit`: those for which everything that is given holds.

        `path` is the beginning of theirs; they began at `since` or later, and before `until`. `text` stands
        in id, path, labels or the message of the error.
        """
        query = ExecutionQuery(
            status=tuple(status),
            path=path,
            labels=dict(labels or {}),
            since=round(since.timestamp() * 1_000_000) if since is not None else 0,
            until=round(until.timestamp() * 1_000_000) if until is not None else 0,
            error_kind=error_kind,
            text=text,
        )

        async def work(store: Store) -> ExecutionList:
            listed: ExecutionList = []
            cursor = ""
            while len(listed) < limit:
                size = min(limit - len(listed), _PAGE)
                page = await store.executions(structs.replace(query, cursor=cursor, limit=size))
                listed += map(_listed, page.executions)
                if not (cursor := page.next):
                    break
            return listed

        return self._with_store(work)

    def _with_store(self, work: Callable[[Store], Awaitable[T]]) -> T:
        async def run_on_store() -> T:
            store = open_store(store_url(self._configuration))
            try:
                return await work(store)
            finally:
                await store.close()

        return in_own_loop(run_on_store())

    def _send(self, name: str, command: RemoteCommand) -> None:
        async def work(store: Store) -> None:
            execution_id = (await find_execution(store, name)).execution_id
            await self._control(store).send(execution_id, command)

        self._with_store(work)

    def _control(self, store: Store) -> RemoteControl:
        results = result_store_of(self._configuration, home_of(self._configuration), store)
        return RemoteControl(store, self._owners, results, self._playbooks())

    def _run(self, execution_id: str, begin: Callable[[Local, str], Awaitable[str]]) -> Execution:
        async def run_to_end() -> Execution:
            async with open_local(self._configuration, playbooks=self._playbooks()) as (local, _):
                return await ended_execution(local, await begin(local, execution_id))

        return in_own_loop(run_to_end())

    def _playbooks(self) -> Playbooks:
        return playbooks_of(self._configuration, self._catalogs)

    @property
    def _owners(self) -> Owners:
        return owners_in(home_of(self._configuration))


def open(  # noqa: A001 - as programs know it: `noetl.open`
    home: TextOrPath | None = None,
    *,
    catalogs: Iterable[TextOrPath] = (),
    allow_kinds: Iterable[str] = (),
    slots: int | None = None,
) -> Executions:
    """The executions in a home, such as `.noetl`; without one, in that of the command line.

    `catalogs`, `allow_kinds` and `slots` are as for `arun`, for what `resume` and `retry` run. Raises
    StoreUnusable if there is no store.
    """
    folder = None if home is None else os.fspath(home)
    configuration = read_settings({"home": folder, "slots": slots, "allow_kinds": tuple(allow_kinds)})
    url = store_url(configuration)
    if not is_database_url(url) and (is_memory_url(url) or not home_of(configuration).exists):
        hint = "`noetl.run` and `noetl run FILE` make one"
        raise StoreUnusable(f"there are no executions here yet ({url})", hint)
    return Executions(configuration, tuple(Path(os.fspath(catalog)) for catalog in catalogs))


def _listed(record: ExecutionRecord) -> ListedExecution:
    return ListedExecution(
        execution_id=record.execution_id,
        playbook=record.path,
        status=record.status,
        started_at=_utc(record.started_at),
        ended_at=_utc(record.ended_at) if record.ended_at else None,
        labels=record.labels,
        parent=record.parent or None,
    )


def _utc(micros: int) -> datetime:
    return _EPOCH + timedelta(microseconds=micros)
