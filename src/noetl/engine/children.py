"""Executions that tasks of other executions start (semantics §9)."""

import json
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from noetl.credentials.resolver import uses_secrets
from noetl.dsl.document.problem import PlaybookInvalid
from noetl.engine.catalog.playbook_record import PlaybookSource
from noetl.engine.catalog.playbooks import PlaybookDocument, PlaybookMissing
from noetl.engine.execution import ExecutionOrigin, LiveExecution
from noetl.engine.value_transfer import transfer_value
from noetl.events.bodies import ParentTask, TaskStarted
from noetl.events.identifiers import task_run_id
from noetl.kernel import ExecutionState
from noetl.kernel.net.commands import Cancel, ChildEnded, Request
from noetl.kernel.pipeline.waits import child_id, waits_for_child
from noetl.kernel.state.run_state import Frame, RunState
from noetl.model.outcome import ErrorInfo
from noetl.model.reference import escape, may_hold_marker
from noetl.ports.results import ResultError
from noetl.ports.store import ExecutionQuery, ExecutionRecord

if TYPE_CHECKING:
    from noetl.engine.service import Service

_ENDED = frozenset({"completed", "failed", "cancelled"})

_REFUSED = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: refused, path: %s}
workflow:
- step: start
  tool: {kind: noop}
"""


class Children:
    """Starts children, tells parents of their end, and stops those nobody waits for any more."""

    def __init__(self, service: "Service") -> None:
        self._service = service

    def on_task_started(self, live: LiveExecution, body: TaskStarted) -> None:
        """A task began: one that starts a child without waiting for it starts it here."""
        if not body.at:
            return  # it does not wait, so it is no child
        run = live.state.runs[body.run]
        if run.step.step.tasks[run.step.label_at[body.task]].kind != "playbook":
            return
        frame = run.frames[body.iteration]
        if not waits_for_child(run, frame):
            self._start(live, run, frame)

    def start_awaited(self, live: LiveExecution, run: str, iteration: int) -> None:
        """A run waits for its child, which may be there from before a crash."""
        run_state = live.state.runs[run]
        self._start(live, run_state, run_state.frames[iteration])

    def notify_parent(self, live: LiveExecution) -> None:
        """An execution is over: its parent hears of it."""
        parent = live.origin.parent
        above = self._service.registry.get(parent.execution_id) if parent is not None else None
        if parent is None or above is None:
            return
        if may_hold_marker(live.state.result):
            self._service.spawn(self._tell(above, parent, live))
        else:
            above.submit(_end(parent, live))

    async def _tell(self, above: LiveExecution, parent: ParentTask, child: LiveExecution) -> None:
        """The end of a child whose result is stored: what is stored belongs to one execution."""
        end = _end(parent, child)
        try:
            results = self._service.results
            result = await transfer_value(end.result, child.read_blob, results, above.execution_id)
            above.submit(replace(end, result=escape(result)))
        except ResultError as error:
            fault = ErrorInfo(kind="not_found", message=f"the child's result cannot be read: {error}")
            above.submit(replace(end, status="failed", result=None, error=fault))

    def cancel_abandoned(self, live: LiveExecution, run: str, iteration: int | None = None) -> None:
        """Nobody waits any more for what this run, or one iteration of it, started."""
        place = f"{run}/" if iteration is None else f"{run}/{iteration}/"
        for child, parent in self._of(live):
            if parent.task_run_id.startswith(place):
                child.submit(Cancel(reason="its parent no longer waits for it"))

    def cancel_all(self, live: LiveExecution, *, by: str, reason: str) -> None:
        """An execution is cancelled, and with it all that it started."""
        for child, _ in self._of(live):
            child.submit(Cancel(by=by, reason=f"its parent was stopped: {reason or 'cancelled'}"))

    def _of(self, live: LiveExecution) -> list[tuple[LiveExecution, ParentTask]]:
        """The children that have not ended."""
        found = self._service.registry.children_of(live.execution_id)
        return [(one, one.origin.parent) for one in found if one.origin.parent and not one.state.over]

    async def resume_children(self, live: LiveExecution) -> None:
        """After a crash: children go on, and the end of those that ended meanwhile is told."""
        await self._take_up(live.execution_id, live, _awaited(live.state))
        for run in list(live.state.runs.values()):
            for frame in list(run.frames.values()):
                if frame.suspension is not None and frame.suspension.child == child_id(run, frame):
                    self._start(live, run, frame)

    async def _take_up(self, execution_id: str, live: LiveExecution, awaited: frozenset[str]) -> None:
        """Those that this execution started: `live` itself, or one below it that is over."""
        service = self._service
        for record in await self._records(execution_id):
            live.started_children.add(record.execution_id)
            if record.status not in _ENDED:
                if record.execution_id not in awaited and service.runs_elsewhere(record.execution_id):
                    continue
                child = await service.open(record.execution_id)
                child.root = live.root
                await service.resume(child)
                continue
            if record.execution_id in awaited:
                child = await service.open(record.execution_id)
                child.release()
                assert child.origin.parent is not None  # noqa: S101 -- its record says so
                await self._tell(live, child.origin.parent, child)
            await self._take_up(record.execution_id, live, frozenset())

    async def _records(self, parent: str) -> list[ExecutionRecord]:
        found: list[ExecutionRecord] = []
        cursor = ""
        while True:
            page = await self._service.store.executions(
                ExecutionQuery(parent=parent, cursor=cursor, limit=1_000)
            )
            found += page.executions
            cursor = page.next
            if not cursor:
                return found

    def _start(self, live: LiveExecution, run: RunState, frame: Frame) -> None:
        execution_id = child_id(run, frame)
        if execution_id in self._service.registry or execution_id in live.started_children:
            return
        live.started_children.add(execution_id)
        task = run.task(frame).label
        place = task_run_id(run.id, frame.index, task, frame.visits[task], frame.attempt)
        given = frame.input or {}
        if may_hold_marker(given):
            self._soon(live, self._begin_whole(live, execution_id, place, given))
        else:
            self._begin(live, execution_id, place, given)

    def _soon(self, live: LiveExecution, begin: Coroutine[None, None, None]) -> None:
        """Begins a child that something has to be known for; what its parent decided waits to be written."""
        journal = self._service.commit_log

        async def whole() -> None:
            try:
                await begin
            finally:
                journal.release(live)
                self._service.wake(live)

        journal.hold(live)
        self._service.spawn(whole())

    async def _begin_whole(
        self, live: LiveExecution, execution_id: str, place: str, given: dict[str, Any]
    ) -> None:
        """The same for a child that gets stored values: it gets all of them."""
        try:
            whole = await transfer_value(given, live.read_blob, self._service.results, execution_id)
        except ResultError as error:
            message = f"what it is given cannot be read: {error}"
            self._begin(live, execution_id, place, {}, ErrorInfo(kind=error.kind, message=message))
            return
        assert isinstance(whole, dict)  # noqa: S101 -- the inputs of a task are a mapping
        self._begin(live, execution_id, place, whole)

    def _begin(
        self,
        live: LiveExecution,
        execution_id: str,
        place: str,
        given: dict[str, Any],
        fault: ErrorInfo | None = None,
    ) -> None:
        document, error = (self._stand_in(""), fault) if fault else self._document(live, given)
        origin = ExecutionOrigin(
            file=document.source.file or live.origin.file,
            parent=ParentTask(execution_id=live.execution_id, task_run_id=place),
            depth=live.origin.depth + 1,
            trace_id=live.trace_id,
            root=live.root,
        )
        request = Request(
            version=document.playbook.metadata.version or "",
            workload=dict(given.get("args") or {}),
            parent=origin.parent,
            trace_id=origin.trace_id,
            file=origin.file,
            error=error,
        )
        if error is None and self._service.preflight is not None and uses_secrets(document.playbook):
            self._soon(live, self._begin_proven(live, document, request, origin, execution_id))
        else:
            self._service.begin(document, request, origin, execution_id)

    async def _begin_proven(
        self,
        live: LiveExecution,
        document: PlaybookDocument,
        request: Request,
        origin: ExecutionOrigin,
        execution_id: str,
    ) -> None:
        """The same for a child that uses credentials: whether they can be had is known before its request."""
        assert self._service.preflight is not None  # noqa: S101 -- asked before
        awaited = execution_id in _awaited(live.state)
        error = await self._service.preflight(document.playbook, str(origin.folder))
        forsaken = awaited and execution_id not in _awaited(live.state)
        if not live.stopping and not forsaken:
            self._service.begin(document, replace(request, error=error), origin, execution_id)

    def _document(
        self, live: LiveExecution, given: dict[str, Any]
    ) -> tuple[PlaybookDocument, ErrorInfo | None]:
        """The child's playbook; one that only stands for it, and why, if it cannot run."""
        playbooks = self._service.playbooks
        path = str(given.get("path") or "")
        most = live.playbook.executor.max_depth
        if live.origin.depth >= most:
            message = f"more than {most} executions start one another (`executor.spec.max_depth`)"
            return self._stand_in(path), ErrorInfo(kind="limit", message=message)
        try:
            if (inline := given.get("document")) is not None:
                text = json.dumps(inline, indent=1, ensure_ascii=False)
                return playbooks.read(PlaybookSource(text, "<inline>", live.origin.file)), None
            return playbooks.find(path, given.get("version"), live.folder), None
        except PlaybookMissing as missing:
            message = f"{missing}; {missing.hint}" if missing.hint else str(missing)
            error = ErrorInfo(kind="not_found", message=message)
        except (PlaybookInvalid, OSError, UnicodeDecodeError) as invalid:
            error = ErrorInfo(kind="input", message=f"the playbook `{path}` cannot run: {invalid}")
        return self._stand_in(path), error

    def _stand_in(self, path: str) -> PlaybookDocument:
        return self._service.playbooks.read(
            PlaybookSource(_REFUSED % json.dumps(path or "inline"), "<refused>")
        )


def _end(parent: ParentTask, child: LiveExecution) -> ChildEnded:
    run, iteration = parent.task_run_id.split("/")[:2]
    state = child.state
    assert state.status in ("completed", "failed", "cancelled")  # noqa: S101 -- asked when it is over
    return ChildEnded(run, int(iteration), child.execution_id, state.status, state.result, state.error)


def _awaited(state: ExecutionState) -> frozenset[str]:
    """The children that runs wait for."""
    frames = [frame for run in state.runs.values() for frame in run.frames.values()]
    return frozenset(frame.suspension.child for frame in frames if frame.suspension is not None)
