"""The door to the kernel: `decide` answers a command, `decide_next` what the state itself demands.

An event that is too large whatever leaves it ends what it is about, with kind `limit`.
"""

from collections.abc import Sequence
from typing import assert_never

from msgspec import structs

from noetl.events.bodies import (
    CancelRequested,
    EventBody,
    LoopDone,
    LoopIterationCompleted,
    StepDone,
    StepFailed,
    StepScheduled,
    TaskStarted,
    TokenDiscarded,
)
from noetl.events.codec import encode
from noetl.events.event import Event
from noetl.events.event_kind import kind_of_body
from noetl.kernel.errors import Refused
from noetl.kernel.net import operations
from noetl.kernel.net.admission import decide_admission
from noetl.kernel.net.commands import (
    Cancel,
    ChildEnded,
    Claim,
    Command,
    CompleteStep,
    Fork,
    LeaseLost,
    PatchCtx,
    Pause,
    Redrive,
    Report,
    Request,
    Resume,
    Retry,
    Signal,
    SkipStep,
    TimerFired,
)
from noetl.kernel.net.end_by_hand import decide_end_by_hand
from noetl.kernel.net.execution_request import decide_request
from noetl.kernel.net.operations import REPORTABLE, RUN_ENDS, decide_report
from noetl.kernel.net.quiescence import decide_join, decide_quiescence
from noetl.kernel.net.routing import decide_routing, seal_run_end
from noetl.kernel.net.signal_delivery import decide_delivery, decide_signal
from noetl.kernel.pipeline.interpreter import cancel_run
from noetl.kernel.pipeline.loops import end_loop
from noetl.kernel.pipeline.waits import detached_child
from noetl.kernel.plan import Plan, StepPlan
from noetl.kernel.references.externalize import EVENT_MAX_BYTES, externalize
from noetl.kernel.references.loop_chunks import add_chunk, add_manifest
from noetl.kernel.state.agenda import AdmitToken, DeliverSignal, FireJoin, RouteRun
from noetl.kernel.state.execution_state import ExecutionState
from noetl.kernel.state.fold import FOLDS, evolve
from noetl.kernel.state.run_fold import RunEnd
from noetl.kernel.state.run_state import RunState, Shard
from noetl.model.outcome import ErrorInfo
from noetl.model.reference import encode_value

MAX_EVENTS_AT_ONCE = 10_000
"""Events after which `handle` leaves the rest for another append."""

_FROM_OUTSIDE = frozenset({Request, Signal, PatchCtx, Fork, Retry, Redrive, CompleteStep})
"""Commands that bring values along, of whatever size."""

_RECORDED_APART = RUN_ENDS | {LoopIterationCompleted}
"""Bodies that may become others when they are recorded."""


def decide(state: ExecutionState, command: Command, now: int) -> list[EventBody]:
    """What a command amounts to. The state is not changed.

    Raises Refused or NotOwner; what was done already gives no events. `now` is in microseconds.
    """
    match command:  # what comes with every task stands first
        case Report():
            return decide_report(state, command)
        case Claim():
            return operations.decide_claim(state, command)
        case Request():
            return decide_request(state, command, now)
        case LeaseLost():
            return operations.decide_lease_lost(state, command)
        case Cancel():
            return operations.decide_cancel(state, command)
        case Pause():
            return operations.decide_pause(state, command)
        case Resume():
            return operations.decide_resume(state, command)
        case Signal():
            return decide_signal(state, command)
        case Retry():
            return operations.decide_retry(state, command, now)
        case Redrive():
            return operations.decide_redrive(state, command, now)
        case CompleteStep() | SkipStep():
            return decide_end_by_hand(state, command, now)
        case PatchCtx():
            return operations.decide_patch_ctx(state, command)
        case TimerFired():
            return operations.decide_timer_fired(state, command, now)
        case ChildEnded():
            return operations.decide_child_ended(state, command)
        case Fork():
            return operations.decide_fork(state, command)
        case _:
            assert_never(command)


def decide_next(state: ExecutionState, now: int) -> list[EventBody]:
    """The next decision that the state itself demands; empty if there is none. The state is not changed."""
    if state.status != "running":
        return []
    if state.stopping:
        return _decide_stop(state) or decide_quiescence(state, now)
    if not state.agenda:
        return decide_quiescence(state, now)
    item = state.agenda.first
    match item:
        case AdmitToken():
            return decide_admission(state, state.tokens[item.token], now)
        case RouteRun():
            run = state.runs[item.run]
            if run.phase == "ended":
                return decide_routing(state, run, now)
            return [_end_by_server(run)]
        case FireJoin():
            return decide_join(state, item.step, now)
        case DeliverSignal():
            return [decide_delivery(state, item.signal)]
        case _:
            assert_never(item)


def _end_by_server(run: RunState) -> RunEnd:
    """The end of a run that no worker ends: all its shards are through, or it has no tasks."""
    if run.sharded:
        return structs.replace(end_loop(run), source="server")
    return StepDone(run=run.id, result=run.inherited, source="server")


def _decide_stop(state: ExecutionState) -> list[EventBody]:
    """After a cancel: tokens go, runs that nobody owns end, the others are waited for.

    After a timeout or a limit, tokens stay for a retry.
    """
    tokens = () if state.cut_short else state.tokens
    discarded: list[EventBody] = [TokenDiscarded(token=token, reason="cancelled") for token in tokens]
    why = state.stop_error.message if state.stop_error is not None else "the execution was cancelled"
    return discarded + [cancel_run(run, why, "server") for run in _unowned(state)]


def _unowned(state: ExecutionState) -> list[RunState]:
    return [run for run in state.runs.values() if run.phase in ("ready", "suspended")]


def handle(state: ExecutionState, command: Command, now: int) -> list[Event]:
    """Decide, and everything that follows; the state is brought up to date in place.

    All events belong into one append. Raises Refused and NotOwner with the state unchanged. After very
    many events it stops, so that an append stays small: `decision_due` is then true, and `proceed` goes on.
    `state.blobs` must be stored before the events are. What fits into no event ends with kind `limit`.
    Raises EventUnwritable if a value was let in that JSON does not know: the state is of no use then.
    """
    events: list[Event] = []
    bodies = decide(state, command, now)
    if type(command) in _FROM_OUTSIDE:
        bodies = _within_limit(state, command, bodies, now)
    sent = _unrecorded_data(state, command) if type(command) is Report and command.data and bodies else ()
    _record(state, bodies, events, now, sent)
    return _proceed(state, events, now) if events and not _rests(state) else events


def _rests(state: ExecutionState) -> bool:
    """The fast path of `decide_next`: it finds nothing where a run goes on and nothing is on the agenda."""
    return bool(state.runs) and not state.agenda and not state.stopping


def _unrecorded_data(state: ExecutionState, report: Report) -> Sequence[bytes]:
    """What a worker sent, but for what is recorded already, and what the server says instead of it."""
    owned = state.runs[report.run].owned_under(report.fence)
    start = owned.reported - report.report_no if owned is not None else 0
    end = len(report.data) - (isinstance(owned, Shard) and type(report.bodies[-1]) is StepFailed)
    return report.data[start:end]


def _within_limit(
    state: ExecutionState, command: Command, bodies: list[EventBody], now: int
) -> list[EventBody]:
    """What somebody asks for that fits into no event is refused before it is recorded."""
    for body in bodies:
        if (size := oversize(state.plan, body, state.execution_id)) == 0:
            continue
        error = oversize_error(body, size)
        if not isinstance(command, Request):
            raise Refused(error.message)
        # Without what was given, which fits into nothing; that it was refused is recorded.
        return decide(state, structs.replace(command, workload={}, ctx={}, labels={}, error=error), now)
    return bodies


def proceed(state: ExecutionState, now: int) -> list[Event]:
    """What the state itself demands, as `handle` does after a command."""
    return _proceed(state, [], now)


def decision_due(state: ExecutionState) -> bool:
    """Whether something must be decided that `handle` left for another append."""
    if state.status != "running":
        return False
    if state.cut_short:
        return not state.runs or bool(_unowned(state))
    if state.stopping and (state.tokens or _unowned(state)):
        return True
    return len(state.agenda) > 0 or not (state.runs or state.waiting)


def _proceed(state: ExecutionState, events: list[Event], now: int) -> list[Event]:
    while len(events) < MAX_EVENTS_AT_ONCE and (bodies := decide_next(state, now)):
        _record(state, bodies, events, now)
        if _rests(state):
            break
    return events


def _record(
    state: ExecutionState,
    bodies: list[EventBody],
    events: list[Event],
    now: int,
    sent: Sequence[bytes] = (),
) -> None:
    """`sent` are the first of the bodies as a worker elsewhere has encoded them; there are no events yet."""
    limit = min(state.plan.smallest_limit, EVENT_MAX_BYTES)
    for body in bodies:
        kind = type(body)
        # The fast path of `_record_apart`, for what is recorded as it was decided: most events.
        # test_kernel_fast_paths.py holds both equal.
        if sent or kind in _RECORDED_APART or len(data := encode(body)) > limit:
            if not _record_apart(state, body, events, now, sent):
                return  # what was decided with it does not follow
            continue
        # As `evolve` does it, for a number that follows: that is one call more for each event.
        seq = state.version = state.version + 1
        event = Event(seq, now, body, data)
        FOLDS[kind](state, body, event)
        state.last_ts = now
        events.append(event)
        if kind is TaskStarted and body.at:  # type: ignore[union-attr]  # its type was asked
            _note_detached(state, body)  # type: ignore[arg-type]  # likewise


def _record_apart(
    state: ExecutionState, decided: EventBody, events: list[Event], now: int, sent: Sequence[bytes]
) -> bool:
    """Records one body, whatever it is. False if another one stands in its place: it fits into no event."""
    body = decided
    kind = type(body)
    # Of a step that writes nothing the end stays as it is, but for that of a loop, which may be large.
    if kind in RUN_ENDS and (kind is LoopDone or state.runs[body.run].step.step.writes):  # type: ignore[union-attr]  # its type was asked
        body = _seal_body(state, body, now)  # type: ignore[arg-type]  # likewise
    if sent and body is decided and len(events) < len(sent):
        data = sent[len(events)]  # its sender has taken out what is large, and folded just this
    else:
        data = encode(body)
        # The fast path of `_externalize_body`: the bytes are needed anyway; so few hold nothing large.
        if len(data) > state.plan.smallest_limit:
            body, data = _externalize_body(state, body, data)
    if kind is LoopIterationCompleted:
        # Here, not by its worker: that keeps no results, and the next one may be another.
        body, data = _store_chunk(state, body, data)  # type: ignore[arg-type]  # its type was asked
    fits = len(data) <= EVENT_MAX_BYTES
    if not fits:
        body = end_oversized(state, body, len(data))
        data = encode(body)
    # Folded is what is stored, references and all, so that a replay comes to the same state.
    event = Event(state.version + 1, now, body, data)
    evolve(state, event)
    events.append(event)
    if kind is TaskStarted and body.at:  # type: ignore[union-attr]  # its type was asked
        _note_detached(state, body)  # type: ignore[arg-type]  # likewise
    return fits


def _note_detached(state: ExecutionState, body: TaskStarted) -> None:
    """A child that its task does not wait for is started whatever else is in the append."""
    run = state.runs[body.run]
    if (child := detached_child(run, run.frames[body.iteration])) is not None:
        state.pending_effects.detached.append(child)


def _seal_body(state: ExecutionState, body: RunEnd, now: int) -> EventBody:
    run = state.runs[body.run]
    if isinstance(body, LoopDone):
        body, blobs = add_manifest(run, body, state.pending_effects)
        state.blobs.extend(blobs)
    return seal_run_end(state, run, body, now)


def _externalize_body(state: ExecutionState, body: EventBody, data: bytes) -> tuple[EventBody, bytes]:
    externalized, blobs = externalize(state.plan, _step_of_body(state, body), body, state.execution_id)
    if externalized is body:
        return body, data
    state.blobs.extend(blobs)
    return externalized, encode(externalized)


def _step_of_body(state: ExecutionState, body: EventBody) -> StepPlan | None:
    if isinstance(body, StepScheduled):
        return state.plan.by_name[body.step]
    run = state.runs.get(getattr(body, "run", ""))
    return run.step if run is not None else None


def _store_chunk(
    state: ExecutionState, body: LoopIterationCompleted, data: bytes
) -> tuple[LoopIterationCompleted, bytes]:
    run = state.runs[body.run]
    chunked, blobs = add_chunk(run, body, len(data), state.pending_effects)
    if chunked is body:
        return body, data
    state.blobs.extend(blobs)
    return chunked, encode(chunked)


def oversize(plan: Plan, body: EventBody, execution_id: str) -> int:
    """The bytes that a body takes without all that can leave it, if they are too many; else 0."""
    if len(encode(body)) <= EVENT_MAX_BYTES:
        return 0
    size = len(encode(externalize(plan, None, body, execution_id)[0]))
    return size if size > EVENT_MAX_BYTES else 0


def oversize_error(body: EventBody, size: int) -> ErrorInfo:
    """What is wrong, and with which part of it."""
    sizes = {name: len(encode_value(getattr(body, name))) for name in body.__struct_fields__}
    largest = max(sizes, key=lambda name: sizes[name])
    message = (
        f"{kind_of_body(body).name} takes {size:,} bytes without its large values, and an event has "
        f"{EVENT_MAX_BYTES:,} at most: `{largest}` has too many parts; put them into one mapping or list, "
        "which is stored by itself"
    )
    return ErrorInfo(kind="limit", message=message)


def end_oversized(state: ExecutionState, body: EventBody, size: int) -> EventBody:
    """What is recorded in its place: the run that a worker speaks of fails, or else the execution."""
    error = oversize_error(body, size)
    run = state.runs.get(getattr(body, "run", ""))
    if type(body) in REPORTABLE and run is not None and run.phase == "claimed":
        return StepFailed(run=run.id, error=error, source="server")
    return CancelRequested(reason="limit", error=error)
