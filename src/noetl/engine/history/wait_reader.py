"""What waits for a person: tasks that wait for a signal, and gates that one would open."""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from noetl.dsl.document.signals import signal_names
from noetl.engine.history.lookup import decode_rows
from noetl.engine.history.read import read_plan, read_state
from noetl.kernel.explain.run_notes import admission_conditions
from noetl.kernel.net.signal_delivery import OpenWait, open_waits
from noetl.kernel.plan import Plan
from noetl.kernel.state.execution_state import ExecutionState, Token
from noetl.model.timestamp import iso_time, optional_time
from noetl.model.wait_question import WaitQuestion
from noetl.ports.page_api import WaitItem
from noetl.ports.store import ExecutionQuery, ExecutionRecord, Store

MOST_PLANS = 256
"""Playbooks whose plans are kept."""
_OPEN = ("running", "paused")
_PAGE = 1_000

LiveStates: TypeAlias = Callable[[str], ExecutionState | None]
"""The state of an execution, if it is in memory; it may be ahead of what is durable."""


class Answerer(NamedTuple):
    """Who asks what waits, and what they may."""

    name: str
    is_operator: bool
    is_admin: bool


class _KnownWaits(Struct, frozen=True):
    """Those of an execution at a version. `times` says when the tokens came that wait at gates."""

    version: int
    items: list[WaitItem]
    times: dict[str, int]


_NO_WAITS = _KnownWaits(0, [], {})


class WaitReader:
    """The waits of a store. What was read of an execution is kept until something happens to it.

    What happens, happens to executions that are in memory: their states are taken as they are there, so an
    execution is folded here once, when it is first asked for, and a playbook that waits for nothing is not.
    """

    def __init__(
        self, store: Store, allow_kinds: Iterable[str] = (), live_states: LiveStates = lambda _: None
    ) -> None:
        self._store = store
        self._allow_kinds = tuple(allow_kinds)
        self._live_states = live_states
        self._known: dict[str, _KnownWaits] = {}
        self._plans: dict[str, Plan | None] = {}
        """By the hash of the playbook; None for one that waits for nothing."""

    async def read(self, asker: Answerer, execution_id: str = "") -> list[WaitItem]:
        """All of them, or those of one execution; the oldest first."""
        records = await self._open_executions(execution_id)
        items: list[WaitItem] = []
        fresh: dict[str, _KnownWaits] = {}
        for record in records:
            plan = await self._plan_of(record)
            if plan is None:
                continue
            known = self._known.get(record.execution_id, _NO_WAITS)
            if known.version != record.version:
                known = await self._waits_of(record, plan, known)
            fresh[record.execution_id] = known
            items += known.items
        # Of all that were asked for, those that are over are forgotten.
        self._known = {**self._known, **fresh} if execution_id else fresh
        items.sort(key=lambda item: (item.since, item.execution_id, item.wait))
        return [_for_asker(item, asker) for item in items]

    def has_gate(self, execution_id: str) -> bool:
        """Whether somebody was told of a gate that waits in it."""
        return bool(self._known.get(execution_id, _NO_WAITS).times)

    async def _open_executions(self, execution_id: str) -> list[ExecutionRecord]:
        query = ExecutionQuery(execution_id=execution_id, status=_OPEN, limit=_PAGE)
        records: list[ExecutionRecord] = []
        while True:
            page = await self._store.executions(query)
            records += page.executions
            if not page.next:
                return records
            query = replace(query, cursor=page.next)

    async def _plan_of(self, record: ExecutionRecord) -> Plan | None:
        """None if its playbook waits for nothing: its history need not be read."""
        if record.playbook not in self._plans:
            plan = await read_plan(self._store, record, self._allow_kinds)
            names = signal_names(plan.playbook)
            self._plans[record.playbook] = None if names is not None and not names else plan
            if len(self._plans) > MOST_PLANS:
                del self._plans[next(iter(self._plans))]
        return self._plans[record.playbook]

    async def _waits_of(self, record: ExecutionRecord, plan: Plan, known: _KnownWaits) -> _KnownWaits:
        state = self._live_states(record.execution_id)
        if state is None or state.version != record.version:
            state = await read_state(self._store, plan, record.execution_id)
        tokens = [token for token in state.tokens.values() if _waits_for_signal(state, token)]
        times = {token.id: known.times.get(token.id, 0) for token in tokens}
        # All that needs the state comes before the next await: it may change there.
        items = [*_task_items(record, state), *(_gate_item(record, state, token) for token in tokens)]
        for token_id, came_at in times.items():
            times[token_id] = came_at or await self._time_of(record.execution_id, token_id)
        items = [
            replace(item, since=iso_time(times[item.wait])) if item.kind == "gate" else item for item in items
        ]
        return _KnownWaits(record.version, items, times)

    async def _time_of(self, execution_id: str, token_id: str) -> int:
        """When a token came: it is called by the number of that event."""
        rows = await self._store.read(execution_id, after=int(token_id[1:]) - 1, limit=1)
        return decode_rows(execution_id, rows)[0].ts


def _waits_for_signal(state: ExecutionState, token: Token) -> bool:
    admit = state.step_of(token).step.admit
    return token.stage == "waiting" and admit is not None and admit.signals is not None


def _task_items(record: ExecutionRecord, state: ExecutionState) -> Iterator[WaitItem]:
    for signal in state.listeners:
        for wait in open_waits(state, signal):
            yield _task_item(record, state, signal, wait)


def _task_item(record: ExecutionRecord, state: ExecutionState, signal: str, wait: OpenWait) -> WaitItem:
    run, frame = wait
    suspension = frame.suspension
    question = (suspension.question if suspension is not None else None) or WaitQuestion()
    return WaitItem(
        kind="task",
        wait=wait.id,
        execution_id=record.execution_id,
        path=record.path,
        step=run.step.name,
        task=run.task(frame).label,
        iteration=frame.index if run.loop is not None else None,
        signal=signal,
        signals=[signal],
        title=question.title,
        description=question.description,
        schema=question.schema,
        assignee=list(question.assignee),
        answerable=False,
        since=iso_time(frame.began_at or state.started_at),
        until=optional_time(suspension.until or 0) if suspension is not None else None,
        rules=[],
        labels=record.labels,
    )


def _gate_item(record: ExecutionRecord, state: ExecutionState, token: Token) -> WaitItem:
    step = state.step_of(token).step
    signals = (step.admit.signals if step.admit is not None else None) or ()
    came = state.ctx.values.get("signals") or {}
    missing = [name for name in signals if name not in came]
    return WaitItem(
        kind="gate",
        wait=token.id,
        execution_id=record.execution_id,
        path=record.path,
        step=step.name,
        task="",
        iteration=None,
        signal=next(iter((*missing, *signals)), ""),
        signals=list(signals),
        title="",
        description=step.desc or "",
        schema=None,
        assignee=[],
        answerable=False,
        since="",
        until=optional_time(token.deadline or 0),
        rules=list(admission_conditions(state, token, state.last_ts)),
        labels=record.labels,
    )


def _for_asker(item: WaitItem, asker: Answerer) -> WaitItem:
    may = asker.is_operator and (asker.is_admin or not item.assignee or asker.name in item.assignee)
    return replace(item, answerable=may) if may else item
