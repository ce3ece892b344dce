"""What waits for a person: the tasks of running executions that wait for a signal."""

from collections.abc import Iterable
from typing import NamedTuple

from msgspec.structs import replace

from noetl.dsl.document.signals import signal_names
from noetl.engine.history.read import read_plan, read_state
from noetl.kernel.net.signal_delivery import OpenWait, open_waits
from noetl.kernel.state.execution_state import ExecutionState
from noetl.model.timestamp import iso_time, optional_time
from noetl.model.wait_question import WaitQuestion
from noetl.ports.page_api import WaitItem
from noetl.ports.store import ExecutionQuery, ExecutionRecord, Store

_OPEN = ("running", "paused")
_PAGE = 1_000


class Answerer(NamedTuple):
    """Who asks what waits, and what they may."""

    name: str
    is_operator: bool
    is_admin: bool


class WaitReader:
    """The waits of a store. What was read of an execution is kept until something happens to it."""

    def __init__(self, store: Store, allow_kinds: Iterable[str] = ()) -> None:
        self._store = store
        self._allow_kinds = tuple(allow_kinds)
        self._known: dict[str, tuple[int, list[WaitItem]]] = {}

    async def read(self, asker: Answerer, execution_id: str = "") -> list[WaitItem]:
        """All of them, or those of one execution; the oldest first."""
        records = await self._open_executions(execution_id)
        known = self._known
        items: list[WaitItem] = []
        fresh: dict[str, tuple[int, list[WaitItem]]] = {}
        for record in records:
            entry = known.get(record.execution_id)
            if entry is None or entry[0] != record.version:
                entry = record.version, await self._waits_of(record)
            fresh[record.execution_id] = entry
            items += entry[1]
        self._known = {**known, **fresh} if execution_id else fresh
        items.sort(key=lambda item: (item.since, item.execution_id, item.wait))
        return [_for_asker(item, asker) for item in items]

    async def _open_executions(self, execution_id: str) -> list[ExecutionRecord]:
        query = ExecutionQuery(execution_id=execution_id, status=_OPEN, limit=_PAGE)
        records: list[ExecutionRecord] = []
        while True:
            page = await self._store.executions(query)
            records += page.executions
            if not page.next:
                return records
            query = ExecutionQuery(execution_id=execution_id, status=_OPEN, limit=_PAGE, cursor=page.next)

    async def _waits_of(self, record: ExecutionRecord) -> list[WaitItem]:
        plan = await read_plan(self._store, record, self._allow_kinds)
        names = signal_names(plan.playbook)
        if names is not None and not names:
            return []  # its playbook waits for nothing: its history need not be read
        state = await read_state(self._store, plan, record.execution_id)
        return [
            _wait_item(record, state, signal, wait)
            for signal in state.listeners
            for wait in open_waits(state, signal)
        ]


def _wait_item(record: ExecutionRecord, state: ExecutionState, signal: str, wait: OpenWait) -> WaitItem:
    run, frame = wait
    suspension = frame.suspension
    question = (suspension.question if suspension is not None else None) or WaitQuestion()
    return WaitItem(
        wait=wait.id,
        execution_id=record.execution_id,
        path=record.path,
        step=run.step.name,
        task=run.task(frame).label,
        iteration=frame.index if run.loop is not None else None,
        signal=signal,
        title=question.title,
        description=question.description,
        schema=question.schema,
        assignee=list(question.assignee),
        answerable=False,
        since=iso_time(frame.began_at or state.started_at),
        until=optional_time(suspension.until or 0) if suspension is not None else None,
        labels=record.labels,
    )


def _for_asker(item: WaitItem, asker: Answerer) -> WaitItem:
    may = asker.is_operator and (asker.is_admin or not item.assignee or asker.name in item.assignee)
    return replace(item, answerable=may) if may else item
