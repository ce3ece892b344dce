"""What can be seen of executions in a store: one place for servers and for commands beside them."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, ParamSpec, TypeVar
from weakref import WeakValueDictionary

import msgspec

from noetl.dsl.document.playbook import Playbook
from noetl.engine.catalog.playbooks import PlaybookDocument
from noetl.engine.history.event_index import EventIndexer
from noetl.engine.history.execution_detail import execution_detail
from noetl.engine.history.execution_diff import diff_executions
from noetl.engine.history.expression_answer import answer_expression
from noetl.engine.history.family_log import FamilyLine, FamilyLog
from noetl.engine.history.lookup import CHECK, HistoryUnreadable, list_children
from noetl.engine.history.read import HistoryCache, RecordedHistory
from noetl.engine.history.repair import fold_with_repair, retried_runs
from noetl.engine.history.rerun_preview import preview_fork, preview_reopening
from noetl.engine.history.run_bars import RunTimeline, run_page
from noetl.engine.history.run_detail import run_detail
from noetl.engine.history.time_travel import state_document
from noetl.engine.task_log import TaskLog
from noetl.events.event import envelope
from noetl.kernel.errors import WrongSequence
from noetl.kernel.explain.explainer import explain
from noetl.kernel.explain.explanation_parts import Explanation, StepExplanation
from noetl.kernel.explain.step_explainer import explain_step
from noetl.kernel.net.commands import Redrive, Retry
from noetl.kernel.net.operations import redrivable_runs
from noetl.kernel.state.execution_state import ExecutionState
from noetl.kernel.verify.verification import Verification, verify
from noetl.loader import installed_kinds
from noetl.model.errors import NoetlError
from noetl.model.secret import printable_value
from noetl.model.table_reader import decode_value_or_table
from noetl.model.timestamp import iso_time, now_micros
from noetl.ports.execution_views import (
    EvaluatedExpression,
    EvaluateRequest,
    ExecutionDiff,
    ExecutionExport,
    ForkPreview,
    HistoryIndex,
    ReopenPreview,
    RunDetail,
    RunPage,
    VerificationAnswer,
)
from noetl.ports.results import ResultError, ResultStore
from noetl.ports.store import ExecutionRecord, Store
from noetl.stores.results.result_reader import read_result

P = ParamSpec("P")
T = TypeVar("T")

KEPT_INDEXES = 16
EXPORTED_EVENTS = 10_000
EXPORTED_LINES = 10_000


class ViewRequestWrong(NoetlError):
    """Something was asked about that the execution does not have; `parameter` is what named it."""

    def __init__(self, parameter: str, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.parameter = parameter
        self.hint = hint


class HistoryViews:
    """Views of executions, each computed beside the event loop. Names are as for `find_execution`.

    `at` is the number of an event: the execution is seen as it was after it; 0 is the last one.
    Every method raises ExecutionUnknown, StoreError and ViewRequestWrong. `replica`: see `HistoryCache`.
    """

    def __init__(
        self,
        store: Store,
        results: ResultStore,
        allow_kinds: Iterable[str] = (),
        replica: Store | None = None,
    ) -> None:
        self._store = store
        self._results = results
        kinds = tuple(allow_kinds)
        self._histories = HistoryCache(store, kinds, replica)
        self._indexers: dict[str, EventIndexer] = {}
        self._indexes: dict[str, HistoryIndex] = {}
        self._timelines: dict[str, RunTimeline] = {}
        self._timeline_turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def index(self, execution_id: str, *, after: int = 0) -> HistoryIndex:
        """The events above `after` as columns. Whoever follows an execution asks with `last`."""
        history = await self._histories.read(execution_id)
        execution_id = history.record.execution_id
        if after > len(history.events):
            raise _no_event("after", after, history)
        known = self._indexes.get(execution_id)
        playbook = history.plan.playbook.hash
        # Whoever opens an execution asks for all of it, and most have ended: it is as it was.
        if known is not None and (known.after, known.last, known.hash) == (
            after,
            len(history.events),
            playbook,
        ):
            return known
        # It is at one event of one history: nobody else may have it until it is at the next.
        indexer = self._indexers.pop(execution_id, None)
        if indexer is None or indexer.last > after or indexer.hash != playbook:
            indexer = EventIndexer(history)
        index = await _beside_loop(indexer.index, history, after)
        _keep(self._indexers, execution_id, indexer)
        if after == 0:
            _keep(self._indexes, execution_id, index)
        return index

    async def runs(self, execution_id: str, *, at: int = 0, cursor: str = "", limit: int = 1_000) -> RunPage:
        """The runs in time, in the order in which they began."""
        offset = _offset(cursor)
        if at:
            history, seq = await self._read(execution_id, at)
            children = await list_children(self._store, history.record.execution_id)
            return await _beside_loop(run_page, history, seq, offset, limit, children)
        async with self._newest_timeline(execution_id) as (history, timeline):
            children = await list_children(self._store, history.record.execution_id)
            return await _beside_loop(timeline.page, offset, limit, children)

    async def ask_watched(
        self, execution_id: str, question: Callable[[RecordedHistory, ExecutionState], T]
    ) -> T | None:
        """What `question` says of the newest state, if somebody looks at the runs of that execution.

        None for any other: what is kept for those who look would be kept for nobody. The state is not to be
        changed, nor kept.
        """
        if execution_id not in self._timelines and execution_id not in self._timeline_turns:
            return None
        async with self._newest_timeline(execution_id) as (history, timeline):
            return question(history, timeline.state)

    @asynccontextmanager
    async def _newest_timeline(self, execution_id: str) -> AsyncIterator[tuple[RecordedHistory, RunTimeline]]:
        """At the last event. It is of one history: who asks at the same time waits, and finds it there.

        Who follows an execution asks after every few events, and to fold all before them would take longer
        than they did.
        """
        turn = self._timeline_turns.setdefault(execution_id, asyncio.Lock())
        async with turn:
            history = await self._histories.read(execution_id)
            last, playbook = len(history.events), history.plan.playbook.hash
            # What fails in between leaves none behind that has gone only a part of the way.
            timeline = self._timelines.pop(execution_id, None)
            if timeline is None or timeline.hash != playbook:
                timeline = await _beside_loop(RunTimeline, history, last)
            else:
                await _beside_loop(timeline.advance, history, last)
            yield history, timeline
            _keep(self._timelines, execution_id, timeline)

    async def run(
        self, execution_id: str, run: str, *, at: int = 0, cursor: str = "", limit: int = 100
    ) -> RunDetail:
        """One run with a page of its iterations, and their attempts."""
        history, seq = await self._read(execution_id, at)
        try:
            return await _beside_loop(run_detail, history, run, seq, _offset(cursor), limit)
        except KeyError:
            raise ViewRequestWrong("run", f"no run `{run}` has begun by event {seq}") from None

    async def state(self, execution_id: str, *, at: int = 0) -> dict[str, Any]:
        """Status, ctx, tokens and runs."""
        history, seq = await self._read(execution_id, at)
        return await _beside_loop(state_document, history, seq)

    async def playbook(self, execution_id: str) -> Playbook:
        """The document that it runs, or went on with."""
        return (await self._histories.read(execution_id)).plan.playbook

    async def explanation(self, execution_id: str, *, at: int = 0) -> Explanation:
        """Why it stands where it does."""
        history, seq = await self._read(execution_id, at)
        return await _beside_loop(_masked_explanation, history, seq)

    async def step_explanation(self, execution_id: str, step: str, *, at: int = 0) -> StepExplanation:
        """Why a step ran, runs, waits, or was not reached."""
        history, seq = await self._read(execution_id, at)
        _require_step(history, step)
        return await _beside_loop(_masked_step_explanation, history, seq, step)

    async def evaluate(
        self, execution_id: str, expr: str, *, at: int = 0, step: str = "", iteration: int | None = None
    ) -> EvaluatedExpression:
        """The value of an expression; with `step`, as its last run sees it. Raises ExpressionError, too."""
        history, seq = await self._read(execution_id, at)
        if step:
            _require_step(history, step)
        request = EvaluateRequest(expr=expr, at=seq, step=step, iteration=iteration)
        return await answer_expression(history, request, seq, self._results)

    async def diff(self, execution_id: str, other: str) -> ExecutionDiff:
        """Where two executions part, and what came out differently."""
        history = await self._histories.read(execution_id)
        return await _beside_loop(diff_executions, history, await self._histories.read(other))

    async def verify(self, execution_id: str) -> VerificationAnswer:
        """What deciding all of it again shows."""
        history = await self._histories.read(execution_id)
        verification = await verify_history(history, self._results)
        fields = printable_value(msgspec.to_builtins(verification))
        return msgspec.convert({"ok": not verification.differences, **fields}, VerificationAnswer)

    async def export(self, execution_id: str, logs: TaskLog) -> ExecutionExport:
        """All that there is to see of it, in one document."""
        history = await self._histories.read(execution_id)
        explanation = await self.explanation(execution_id)
        children = await list_children(self._store, history.record.execution_id)
        lines = await FamilyLog(self._store, logs, history.record).read()
        return await _beside_loop(_export, history, explanation, children, lines)

    async def preview_fork(
        self, execution_id: str, at: int, document: PlaybookDocument | None = None
    ) -> ForkPreview:
        """What a fork would keep and repeat, perhaps with another document. Raises CannotFork, too."""
        history = await self._histories.read(execution_id)
        plan, name = (document.plan, document.source.name) if document is not None else (None, "")
        return await _beside_loop(preview_fork, history, at, installed_kinds(), plan, name)

    async def preview_retry(
        self, execution_id: str, document: PlaybookDocument | None = None
    ) -> ReopenPreview:
        """What a retry would open again. Raises Refused, too."""
        history = await self._histories.read(execution_id)
        state = await _beside_loop(history.state_at, len(history.events))
        if document is not None and document.playbook.hash != history.record.playbook:
            state = await fold_with_repair(self._store, state, document, retried_runs)
        return await _beside_loop(preview_reopening, history, state, Retry(), installed_kinds())

    async def preview_redrive(
        self, execution_id: str, step: str = "", document: PlaybookDocument | None = None
    ) -> ReopenPreview:
        """What a redrive would open again. Raises Refused, too."""
        history = await self._histories.read(execution_id)
        state = await _beside_loop(history.state_at, len(history.events))
        if document is not None and document.playbook.hash != history.record.playbook:
            state = await fold_with_repair(self._store, state, document, partial(redrivable_runs, step=step))
        return await _beside_loop(preview_reopening, history, state, Redrive(step), installed_kinds())

    async def _read(self, execution_id: str, at: int) -> tuple[RecordedHistory, int]:
        """The history and the number of the event that is meant."""
        history = await self._histories.read(execution_id)
        if at > len(history.events):
            raise _no_event("at", at, history)
        return history, at or len(history.events)


async def verify_history(history: RecordedHistory, results: ResultStore) -> Verification:
    """As `kernel.verify`, beside the event loop: it takes as long as the history is."""
    loop = asyncio.get_running_loop()

    def read(key: str) -> Any:
        try:
            data = asyncio.run_coroutine_threadsafe(read_result(results, key), loop).result()
        except ResultError as error:
            raise LookupError(str(error)) from error
        return decode_value_or_table(data)

    return await asyncio.to_thread(verify, history.plan, history.record.execution_id, history.events, read)


def _export(
    history: RecordedHistory,
    explanation: Explanation,
    children: Sequence[ExecutionRecord],
    lines: Sequence[FamilyLine],
) -> ExecutionExport:
    last = len(history.events)
    state = history.state_at(last)
    execution_id, trace_id = state.execution_id, history.request.trace_id
    return ExecutionExport(
        exported_at=iso_time(now_micros()),
        execution=execution_detail(
            history.record, history.request, state, history.source, until=state.last_ts
        ),
        source=history.source.text,
        index=EventIndexer(history).index(history, 0),
        runs=run_page(history, last, 0, last, children),
        explanation=explanation,
        events=[
            printable_value(envelope(event, execution_id, trace_id))
            for event in history.events[:EXPORTED_EVENTS]
        ],
        lines=[
            {**msgspec.to_builtins(written.line), "execution_id": written.execution_id}
            for written in lines[:EXPORTED_LINES]
        ],
    )


async def _beside_loop(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """In a thread: to fold a long history takes longer than a loop may stand still."""
    try:
        return await asyncio.to_thread(function, *args, **kwargs)
    except WrongSequence as fault:
        message = f"the history does not fit together: {fault}"
        raise HistoryUnreadable(message, CHECK) from fault


def _keep(kept_views: dict[str, T], execution_id: str, view: T) -> None:
    """That which was made first goes, where there are too many."""
    kept_views.pop(execution_id, None)
    kept_views[execution_id] = view
    while len(kept_views) > KEPT_INDEXES:
        del kept_views[next(iter(kept_views))]


def _no_event(parameter: str, seq: int, history: RecordedHistory) -> ViewRequestWrong:
    last = len(history.events)
    return ViewRequestWrong(
        parameter, f"there is no event {seq}, the last one is {last}", f"a number from 1 to {last}"
    )


def _require_step(history: RecordedHistory, step: str) -> None:
    if step not in history.plan.by_name:
        steps = ", ".join(plan.name for plan in history.plan.by_number[:20])
        raise ViewRequestWrong("step", f"the playbook has no step `{step}`", f"it has: {steps}")


def _offset(cursor: str) -> int:
    if cursor and not (cursor.isascii() and cursor.isdigit() and len(cursor) < 16):
        raise ViewRequestWrong("cursor", f"`{cursor}` is no cursor of this list")
    return int(cursor or 0)


def _masked_explanation(history: RecordedHistory, seq: int) -> Explanation:
    explanation = explain(history.plan, history.record.execution_id, history.events[:seq])
    return msgspec.convert(printable_value(_plain(explanation)), Explanation)


def _masked_step_explanation(history: RecordedHistory, seq: int, step: str) -> StepExplanation:
    explanation = explain(history.plan, history.record.execution_id, history.events[:seq])
    step_explanation = explain_step(history.plan, step, explanation)
    return msgspec.convert(printable_value(_plain(step_explanation)), StepExplanation)


def _plain(explanation: Explanation | StepExplanation) -> Any:
    return msgspec.json.decode(msgspec.json.encode(explanation))
