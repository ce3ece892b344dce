"""Executions that tasks of other executions start (semantics §9)."""

import json
from collections.abc import Coroutine, Mapping, Sequence
from functools import partial
from typing import Any, Literal, assert_never

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from noetl.credentials.resolver import uses_secrets
from noetl.dsl.document.playbook import Playbook
from noetl.dsl.document.problem import PlaybookInvalid
from noetl.engine.catalog.playbook_record import INLINE, PlaybookSource
from noetl.engine.catalog.playbooks import (
    LOCAL_HINT,
    LOCAL_REFUSED,
    PlaybookDocument,
    PlaybookMissing,
    refused_document,
)
from noetl.engine.execution import ExecutionOrigin, LiveExecution
from noetl.engine.history.lookup import list_children
from noetl.engine.listener import EngineListener, EventHandler
from noetl.engine.retry import reopen_execution
from noetl.engine.service import AlreadyRunning, Service
from noetl.engine.value_transfer import transfer_value
from noetl.events import bodies as of
from noetl.events.bodies import EventBody, ParentTask
from noetl.kernel.errors import Refused
from noetl.kernel.net.commands import Cancel, ChildEnded, Request
from noetl.kernel.pipeline.waits import child_id, child_start
from noetl.kernel.references.resolve import resolve_references
from noetl.kernel.state.execution_state import ChildStart, ExecutionState
from noetl.kernel.state.run_fold import EndByHand
from noetl.model.outcome import ErrorInfo
from noetl.model.reference import escape, may_hold_marker
from noetl.ports.results import ResultError
from noetl.ports.store import ENDED_STATUSES, OutboxMessage, StoreError
from noetl.tools.python.lib_modules import names_modules

_ABANDONED = "its parent no longer waits for it"


class Children(EngineListener):
    """Starts children, tells parents of their end, and stops those nobody waits for any more."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def handlers(self) -> Mapping[type[EventBody], EventHandler]:
        return {
            of.TaskStarted: self._on_task_started,
            of.RunSuspended: self._on_suspended,
            of.RunResumed: self._on_resumed,
            of.StepFailed: self._on_step_failed,
            of.StepCompletedByHand: self._on_ended_by_hand,
            of.StepSkipped: self._on_ended_by_hand,
            of.CancelRequested: self._on_cancel,
            of.PlaybookProcessed: lambda live, *_: self._notify_parent(live),
        }

    async def deliver(self, message: OutboxMessage) -> None:
        """Does what one execution wants of others that were not in memory with it. Raises StoreError.

        A second time changes nothing: what was done is found done.
        """
        request = msgspec.json.decode(message.body, type=_ChildMessage)
        match request.do:
            case "end":
                await self._deliver_end(message)
            case "cancel":
                await self._deliver_cancel(message, request)
            case "start":
                await self._deliver_start(message, request)
            case "retry":
                await self._deliver_retry(message, request)
            case _:
                assert_never(request.do)

    async def _deliver_cancel(self, message: OutboxMessage, request: "_ChildMessage") -> None:
        for record in await list_children(self._service.store, message.execution_id):
            child = None if record.ended_at else await self._service.load(record.execution_id)
            if child is None or child.origin.parent is None or child.stopping:
                continue
            if child.origin.parent.task_run_id.startswith(request.task_runs):
                child.submit(Cancel(by=request.by, reason=request.reason))
        await self._service.commit_log.flush()
        await self._service.store.sent([message])

    async def _deliver_end(self, message: OutboxMessage) -> None:
        """The message goes with the append of the parent: so it hears of the end once."""
        service = self._service
        # It may live again: then its end is yet to come.
        lives = service.shared is not None and await service.load(message.execution_id) is not None
        if not lives:
            child = await service.open(message.execution_id)
            child.release()
            if child.origin.parent is not None and await self._submit_end(child, [message.id]):
                return
        await service.store.sent([message])

    async def _deliver_start(self, message: OutboxMessage, request: "_ChildMessage") -> None:
        """Begins a child whose parent has written that it wants it, unless that has changed its mind."""
        service, start = self._service, request.start
        assert start is not None  # noqa: S101 - it is a message that says so
        record = await service.store.execution(start.execution_id)
        live = await self._load_parent(message, request)
        if record is None and live is not None and _wants(live.state, request):
            with service.pinned(live.execution_id):
                await self._begin_with_stored(live, start.execution_id, start.task_run_id, start.inputs)
                await service.commit_log.flush()
                # What cancelled the parent meanwhile may not have seen the child.
                live = await self._load_parent(message, request)
        elif record is not None and record.ended_at and live is not None and _wants(live.state, request):
            await self._submit_end(await service.open(start.execution_id))  # told to an attempt that was lost
        child = await service.load(start.execution_id)
        if child is not None and not child.stopping and (live is None or not _wants(live.state, request)):
            child.submit(Cancel(reason=_ABANDONED))
            await service.commit_log.flush()
        await service.store.sent([message])

    async def _load_parent(self, message: OutboxMessage, request: "_ChildMessage") -> LiveExecution | None:
        """None if it is over, and with it whoever waited for a child. One without a waiter may outlive it."""
        service = self._service
        live = await service.load(message.execution_id)
        if live is None and not request.waits and await service.store.execution(message.execution_id):
            live = await service.open(message.execution_id)
            live.release()
        return live

    async def _deliver_retry(self, message: OutboxMessage, request: "_ChildMessage") -> None:
        """Goes on with a child that its parent waits for once more; what opens it takes the message away."""
        live = await self._service.load(message.execution_id)
        retry = request.retry
        if retry is not None and live is not None and retry.child in _awaited(live.state):
            with self._service.pinned(live.execution_id):
                await self._retry(live, retry, [message.id])
                await self._service.commit_log.flush()
        await self._service.store.sent([message])

    async def resumed(self, live: LiveExecution) -> None:
        """After a crash: children go on, and the end of those that ended meanwhile is told."""
        await self._resume_below(live.execution_id, live, _awaited(live.state), _retried(live.state))
        for run in list(live.state.runs.values()):
            for frame in list(run.frames.values()):
                if frame.suspension is not None and frame.suspension.child == child_id(run, frame):
                    self._start_here(live, child_start(run, frame))

    def _on_task_started(self, live: LiveExecution, body: of.TaskStarted, _: int) -> None:
        """A task began: one that starts a child without waiting for it starts it here."""
        if not body.at:
            return  # it does not wait, so it is no child
        # Not by the state, which is that after the append: its run may be further, or over.
        started, live.state.pending_effects.detached = live.state.pending_effects.detached, []
        for child in started:
            self._start(live, child, waits=False)

    def _on_suspended(self, live: LiveExecution, body: of.RunSuspended, _: int) -> None:
        """A run may wait for its child, which may be there from before a crash."""
        if not body.child:
            return
        run = live.state.runs.get(body.run)
        frame = run.frames.get(body.iteration) if run is not None else None
        if run is None or frame is None:
            return  # it was stopped in the same append, so nobody waits
        child = child_start(run, frame)
        if body.child == child.execution_id:
            self._start(live, child, waits=True)
        elif self._service.shared is not None:
            retry = ChildRetry(body.run, body.iteration, body.child)
            self._put_message(live, f"retry {body.child}", _ChildMessage(do="retry", retry=retry))
        else:
            self._hold_for(live, self._retry(live, ChildRetry(body.run, body.iteration, body.child)))

    def _on_resumed(self, live: LiveExecution, body: of.RunResumed, _: int) -> None:
        if body.reason == "timeout":
            self._cancel_abandoned(live, f"{body.run}/{body.iteration}/")

    def _on_step_failed(self, live: LiveExecution, body: of.StepFailed, _: int) -> None:
        if body.source == "server":
            self._cancel_abandoned(live, f"{body.run}/")

    def _on_ended_by_hand(self, live: LiveExecution, body: EndByHand, _: int) -> None:
        self._cancel_abandoned(live, f"{body.run}/")

    def _on_cancel(self, live: LiveExecution, body: of.CancelRequested, _: int) -> None:
        """An execution is cancelled, and with it all that it started."""
        self._cancel_children(live, "", body.by, f"its parent was stopped: {body.reason or 'cancelled'}")

    def _notify_parent(self, live: LiveExecution) -> None:
        """An execution is over: its parent hears of it."""
        service, parent = self._service, live.origin.parent
        above = service.registry.get(parent.execution_id) if parent is not None else None
        if parent is None:
            return
        stored = may_hold_marker(live.state.result)
        if service.shared is not None:
            # Not into one commit: of the two, one may lose against what another server writes.
            self._put_message(live, "end", _ChildMessage(do="end"))
        elif above is not None and not stored and not service.commit_log.is_held(above):
            # The two go into one commit, also if the parent is held from here on.
            above.submit(_child_ended(parent, live))
            service.commit_log.tie(live, above)
        elif service.serves:
            self._put_message(live, "end", _ChildMessage(do="end"))
        elif above is not None:
            service.spawn(self._submit_later(live))

    async def _submit_later(self, child: LiveExecution) -> None:
        await self._submit_end(child)

    async def _submit_end(self, child: LiveExecution, delivered: Sequence[int] = ()) -> bool:
        """The end of a child whose result may be stored: what is stored belongs to one execution.

        False if its parent does not live, or no longer waits for it.
        """
        service, parent = self._service, child.origin.parent
        assert parent is not None  # noqa: S101 - it is a child
        end = _child_ended(parent, child)
        try:
            result = await transfer_value(end.result, child.read_blob, service.results, parent.execution_id)
            end = replace(end, result=escape(result))
        except ResultError as error:
            fault = ErrorInfo(kind="not_found", message=f"the child's result cannot be read: {error}")
            end = replace(end, status="failed", result=None, error=fault)
        above = await service.load(parent.execution_id)
        if above is None:
            return False
        above.delivered += delivered
        if not above.submit(end):
            above.delivered = [number for number in above.delivered if number not in delivered]
            return False
        return True

    def _cancel_abandoned(self, live: LiveExecution, task_run_prefix: str) -> None:
        """Nobody waits any more for what a run, or one iteration of it, started."""
        self._cancel_children(live, task_run_prefix, "", _ABANDONED)

    def _cancel_children(self, live: LiveExecution, task_run_prefix: str, by: str, reason: str) -> None:
        for child, parent in self._living(live):
            if parent.task_run_id.startswith(task_run_prefix):
                child.submit(Cancel(by=by, reason=reason))
        if self._service.serves and _starts_children(live.playbook):
            # There may be others, which are not in memory.
            message = _ChildMessage(do="cancel", task_runs=task_run_prefix, by=by, reason=reason)
            self._put_message(live, f"cancel {task_run_prefix}", message)

    def _living(self, live: LiveExecution) -> list[tuple[LiveExecution, ParentTask]]:
        """The children that have not ended."""
        children = self._service.registry.children_of(live.execution_id)
        living = [child for child in children if not child.state.over]
        return [(child, child.origin.parent) for child in living if child.origin.parent]

    @staticmethod
    def _put_message(live: LiveExecution, key: str, message: "_ChildMessage") -> None:
        """It is sent when what is being decided is durable."""
        live.outbox[key] = msgspec.json.encode(message)

    async def _retry(self, live: LiveExecution, body: "ChildRetry", delivered: Sequence[int] = ()) -> None:
        """Goes on with a child that a task failed with before; its end is told if it came meanwhile."""
        try:
            await self._go_on(live, body, delivered)
        except (AlreadyRunning, PlaybookInvalid, Refused, ResultError, StoreError) as error:
            fault = ErrorInfo(kind="child_failed", message=f"the child {body.child} cannot go on: {error}")
            live.submit(ChildEnded(body.run, body.iteration, body.child, "failed", error=fault))

    async def _go_on(self, live: LiveExecution, body: "ChildRetry", delivered: Sequence[int]) -> None:
        service = self._service
        record = await service.store.execution(body.child)
        if record is not None and record.status == "failed":
            inputs = live.state.runs[body.run].frames[body.iteration].input or {}
            child = await reopen_execution(service, body.child, repaired=await self._inline(live, inputs))
            if service.shared is not None:
                child.delivered += delivered
            else:
                # Durable is first that the child goes on, then that it is waited for: after a crash in
                # between it is waited for anew, while the other order would take its old failure for the new
                # one.
                service.commit_log.hold(live)
                child.when_durable(partial(self._release, live))
        else:
            child = await service.load(body.child) or await service.open(body.child)
        child.root = live.root
        if child.state.over:
            child.release()
            await self._submit_end(child)
            return
        await service.resume(child)
        if live.stopping or body.child not in _awaited(live.state):
            child.submit(Cancel(reason=_ABANDONED))

    async def _inline(self, live: LiveExecution, inputs: dict[str, Any]) -> PlaybookDocument | None:
        """The document that a task holds for its child: the parent's playbook may have been repaired there.

        Raises PlaybookInvalid, ResultError.
        """
        if (inline := inputs.get("document")) is None:
            return None
        return self._read_inline(live, await resolve_references(inline, live.read_blob))

    def _read_inline(self, live: LiveExecution, document: Any) -> PlaybookDocument:
        text = json.dumps(document, indent=1, ensure_ascii=False)
        return self._service.playbooks.read(PlaybookSource(text, INLINE, live.origin.file))

    async def _resume_below(
        self,
        execution_id: str,
        live: LiveExecution,
        awaited: frozenset[str],
        retried: frozenset[str] = frozenset(),
    ) -> None:
        """Those that this execution started: `live` itself, or one below it that is over.

        Those that are `retried` go on when they are waited for, not before: nobody would hear of their end.
        """
        service = self._service
        for record in await list_children(service.store, execution_id):
            live.started_children.add(record.execution_id)
            if record.execution_id in retried:
                continue
            if record.status not in ENDED_STATUSES:
                if record.execution_id not in awaited and service.runs_elsewhere(record):
                    continue
                child = await service.open(record.execution_id)
                child.root = live.root
                await service.resume(child)
                continue
            if record.execution_id in awaited:
                child = await service.open(record.execution_id)
                child.release()
                await self._submit_end(child)
            await self._resume_below(record.execution_id, live, frozenset())

    def _start(self, live: LiveExecution, child: ChildStart, *, waits: bool) -> None:
        if self._service.shared is None:
            self._start_here(live, child)
            return
        # When what the parent decided is written: it may have to be decided again, otherwise.
        message = _ChildMessage(do="start", start=child, waits=waits)
        self._put_message(live, f"start {child.execution_id}", message)

    def _start_here(self, live: LiveExecution, child: ChildStart) -> None:
        execution_id, task_run, inputs = child.execution_id, child.task_run_id, child.inputs
        if execution_id in self._service.registry or execution_id in live.started_children:
            return
        live.started_children.add(execution_id)
        # A server looks first whether the child is there: after a restart its task may begin again while the
        # child is not in memory. Its playbook has to be fetched from the catalog, too.
        if may_hold_marker(inputs) or self._service.serves:
            self._hold_for(live, self._begin_with_stored(live, execution_id, task_run, inputs))
        else:
            self._begin(live, execution_id, task_run, inputs)

    def _hold_for(self, live: LiveExecution, begin: Coroutine[None, None, None]) -> None:
        """Begins a child that something has to be known for; what its parent decided waits to be written."""

        async def begin_and_release() -> None:
            try:
                await begin
            finally:
                self._release(live)

        # The parent's event and its child's first one go into one commit: a crash leaves both or neither.
        self._service.commit_log.hold(live)
        self._service.spawn(begin_and_release())

    def _release(self, live: LiveExecution) -> None:
        self._service.commit_log.release(live)
        self._service.wake(live)

    async def _begin_with_stored(
        self, live: LiveExecution, execution_id: str, task_run: str, inputs: dict[str, Any]
    ) -> None:
        """The same for a child that gets stored values: it gets all of them."""
        if self._service.serves and (record := await self._service.store.execution(execution_id)) is not None:
            if record.ended_at:  # its end was told to an attempt that was lost
                await self._submit_end(await self._service.open(execution_id))
            return
        if path := inputs.get("path"):
            # What was current when the parent began: what is registered later is for those that begin then.
            began = live.state.began_at
            version = await self._service.playbooks.fetch(str(path), inputs.get("version"), began)
            inputs = {**inputs, "version": version}
        try:
            resolved = await transfer_value(inputs, live.read_blob, self._service.results, execution_id)
        except ResultError as error:
            message = f"what it is given cannot be read: {error}"
            info = ErrorInfo(kind=error.kind, message=message, retryable=error.retryable)
            self._begin(live, execution_id, task_run, {}, info)
            return
        assert isinstance(resolved, dict)  # noqa: S101 - the inputs of a task are a mapping
        self._begin(live, execution_id, task_run, resolved)

    def _begin(
        self,
        live: LiveExecution,
        execution_id: str,
        task_run: str,
        inputs: dict[str, Any],
        fault: ErrorInfo | None = None,
    ) -> None:
        refused = refused_document(self._service.playbooks, "") if fault is not None else None
        document, error = (refused, fault) if refused is not None else self._document(live, inputs)
        origin = ExecutionOrigin(
            file=document.source.file or live.origin.file,
            parent=ParentTask(execution_id=live.execution_id, task_run_id=task_run),
            depth=live.origin.depth + 1,
            trace_id=live.trace_id,
            root=live.root,
        )
        request = Request(
            version=document.playbook.metadata.version or "",
            workload=dict(inputs.get("args") or {}),
            parent=origin.parent,
            trace_id=origin.trace_id,
            file=origin.file,
            priority=live.state.priority,
            error=error,
        )
        if error is None and self._service.check_needs is not None and _has_needs(document.playbook):
            self._hold_for(live, self._begin_with_needs(live, document, request, origin, execution_id))
        else:
            child = self._service.begin(document, request, origin, execution_id)
            if live.stopping and not child.state.over:
                # What this execution had started was cancelled before there was this one.
                child.submit(Cancel(reason=_ABANDONED))

    async def _begin_with_needs(
        self,
        live: LiveExecution,
        document: PlaybookDocument,
        request: Request,
        origin: ExecutionOrigin,
        execution_id: str,
    ) -> None:
        """The same for a child with needs: whether they are met is known before its request."""
        assert self._service.check_needs is not None  # noqa: S101 - asked before
        awaited = execution_id in _awaited(live.state)
        error = await self._service.check_needs(document.playbook, str(origin.folder))
        abandoned = awaited and execution_id not in _awaited(live.state)
        if not live.stopping and not abandoned:
            self._service.begin(document, replace(request, error=error), origin, execution_id)

    def _document(
        self, live: LiveExecution, inputs: dict[str, Any]
    ) -> tuple[PlaybookDocument, ErrorInfo | None]:
        """The child's playbook; one that only stands for it, and why, if it cannot run."""
        playbooks = self._service.playbooks
        path = str(inputs.get("path") or "")
        most = live.playbook.executor.max_depth
        if live.origin.depth >= most:
            message = f"more than {most} executions start one another (`executor.spec.max_depth`)"
            return refused_document(playbooks, path), ErrorInfo(kind="limit", message=message)
        try:
            if (inline := inputs.get("document")) is not None:
                document = self._read_inline(live, inline)
            else:
                document = playbooks.find(path, inputs.get("version"), live.folder)
            if playbooks.allow_local or document.playbook.executor.kind != "local":
                return document, None
            error = ErrorInfo(kind="input", message=f"{LOCAL_REFUSED}; {LOCAL_HINT}")
        except PlaybookMissing as missing:
            message = f"{missing}; {missing.hint}" if missing.hint else str(missing)
            error = ErrorInfo(kind="not_found", message=message)
        except (PlaybookInvalid, OSError, UnicodeDecodeError) as invalid:
            error = ErrorInfo(kind="input", message=f"the playbook `{path}` cannot run: {invalid}")
        return refused_document(playbooks, path), error


class ChildRetry(Struct, frozen=True):
    """An iteration of a run that waits once more for a child that it failed with."""

    run: str
    iteration: int
    child: str


class _ChildMessage(Struct, frozen=True, omit_defaults=True):
    """In the outbox of an execution: that it has ended, or what of its children is to be done."""

    do: Literal["end", "cancel", "start", "retry"]
    task_runs: str = ""
    """What the ids of the task runs begin with that started these children."""
    by: str = ""
    reason: str = ""
    start: ChildStart | None = None
    waits: bool = False
    """Whether the task that starts it waits for its end."""
    retry: ChildRetry | None = None


def _wants(state: ExecutionState, request: _ChildMessage) -> bool:
    """Whether the child that it asks for should live."""
    if state.stopping or request.start is None:
        return False
    return not request.waits or request.start.execution_id in _awaited(state)


def _has_needs(playbook: Playbook) -> bool:
    return uses_secrets(playbook) or names_modules(playbook.workflow)


def _starts_children(playbook: Playbook) -> bool:
    return any(task.kind == "playbook" for step in playbook.steps.values() for task in step.tasks)


def _child_ended(parent: ParentTask, child: LiveExecution) -> ChildEnded:
    run, iteration = parent.task_run_id.split("/")[:2]
    state = child.state
    assert state.status in ("completed", "failed", "cancelled")  # noqa: S101 - asked when it is over
    return ChildEnded(run, int(iteration), child.execution_id, state.status, state.result, state.error)


def _retried(state: ExecutionState) -> frozenset[str]:
    """The children that runs will wait for once more."""
    frames = [frame for run in state.runs.values() for frame in run.frames.values()]
    idle = [frame for frame in frames if frame.suspension is None and frame.resumption is None]
    return frozenset(frame.child for frame in idle if frame.child)


def _awaited(state: ExecutionState) -> frozenset[str]:
    """The children that runs wait for."""
    frames = [frame for run in state.runs.values() for frame in run.frames.values()]
    return frozenset(frame.suspension.child for frame in frames if frame.suspension is not None)
