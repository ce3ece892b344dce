"""Where two histories part: the first event that one of them has otherwise, or alone."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from noetl.events import bodies as of
from noetl.events.bodies import EventBody
from noetl.events.event import Event
from noetl.events.event_kind import kind_of_body
from noetl.events.identifiers import run_id, token_id
from noetl.kernel.expression_reads import truncate_value
from noetl.model.outcome import ErrorInfo, Outcome
from noetl.model.secret import printable_value
from noetl.ports.execution_views import Divergence, EventSide

_COMPARED: dict[type[EventBody], tuple[str, ...]] = {
    of.PlaybookExecutionRequested: ("path", "workload", "ctx"),
    of.PlaybookRequestEvaluated: ("error",),
    of.WorkflowStarted: ("workload", "ctx"),
    of.WorkflowFinished: ("status",),
    of.PlaybookProcessed: ("status", "result", "error"),
    of.TokenEnqueued: ("args", "arc"),
    of.TokenParked: ("mode",),
    of.TokenAdmitted: (),
    of.TokenDiscarded: ("reason",),
    of.StepScheduled: ("args", "final"),
    of.TaskStarted: ("input",),
    of.TaskProcessed: ("outcome", "do", "to", "patches"),
    of.LoopStarted: ("total", "items"),
    of.LoopIterationStarted: (),
    of.LoopIterationCompleted: ("status", "result", "error"),
    of.RunSuspended: ("reason", "signal"),
    of.RunResumed: ("reason", "payload"),
    of.StepDone: ("result", "patches"),
    of.StepFailed: ("error", "task", "patches"),
    of.LoopDone: ("total", "succeeded", "failed", "result", "patches"),
    of.StepCompletedByHand: ("result",),
    of.StepSkipped: (),
    of.NextEvaluated: ("event", "verdicts", "selected", "error", "patches"),
    of.CtxPatched: ("patches",),
    of.SignalReceived: ("signal", "payload"),
    of.CancelRequested: ("reason", "error"),
    of.ExecutionPaused: (),
    of.ExecutionResumed: (),
    of.ExecutionRetried: ("steps",),
    of.IterationsRedriven: ("steps", "iterations"),
    of.ExecutionForked: ("workload",),
}
"""What of an event has to be the same. Who had a run when, and for how long, does not matter."""
_STORED_KEY = re.compile(rb'"key":"[^"]*/([0-9a-f]{64})')
EventKey = tuple[object, ...]


class ComparedEvent(NamedTuple):
    """An event that must have its like: `data` are the bytes of what has to be the same."""

    event: Event
    step: str | None
    run: str | None
    data: bytes

    def side(self, path: tuple[str | int, ...] = ()) -> EventSide:
        value: Any = msgspec.json.decode(self.data)
        for key in path:
            value = value[key] if _has(value, key) else None
        return EventSide(
            seq=self.event.seq,
            name=kind_of_body(self.event.body).name,
            step=self.step,
            run=self.run,
            value=truncate_value(printable_value(value)),
        )


def find_divergence(
    a: Iterable[Event], b: Iterable[Event], execution_ids: tuple[str, str]
) -> Divergence | None:
    """The first difference; None if there is none.

    Events are compared run by run and not in the order of the log: what runs at the same time comes in any.
    """
    names = tuple(name.encode() for name in execution_ids)
    events_a, events_b = _compared_events(a, names), _compared_events(b, names)
    first_a = next(_unlike(events_a, events_b), None)
    first_b = next(_unlike(events_b, events_a), None)
    if first_a is None and first_b is None:
        return None
    compared_a = events_a[first_a] if first_a is not None else None
    compared_b = events_b[first_b] if first_b is not None else None
    if compared_a is not None and (compared_b is None or compared_a.event.seq <= compared_b.event.seq):
        if first_a in events_b:
            return _different_values(compared_a, events_b[first_a])
    elif compared_b is not None and first_b in events_a:
        return _different_values(events_a[first_b], compared_b)
    # A difference in value comes later than what one of them has alone: there is nothing to set against it.
    alone_a = compared_a if first_a not in events_b else None
    alone_b = compared_b if first_b not in events_a else None
    return Divergence(
        what=_alone_text(alone_a, alone_b),
        path="",
        a=alone_a.side() if alone_a is not None else None,
        b=alone_b.side() if alone_b is not None else None,
    )


def _unlike(
    events: Mapping[EventKey, ComparedEvent], others: Mapping[EventKey, ComparedEvent]
) -> Iterator[EventKey]:
    """Those that the others have not, or otherwise, in their order."""
    for key, compared in events.items():
        other = others.get(key)
        if other is None or other.data != compared.data:
            yield key


def _different_values(a: ComparedEvent, b: ComparedEvent) -> Divergence:
    path = _first_path(msgspec.json.decode(a.data), msgspec.json.decode(b.data))
    name = kind_of_body(a.event.body).name
    where = f" of `{a.step}`" if a.step else ""
    dotted = ".".join(map(str, path))
    return Divergence(
        what=f"`{dotted}` differs in {name}{where}" if dotted else f"{name}{where} differs",
        path=dotted,
        a=a.side(path),
        b=b.side(path),
    )


def _alone_text(a: ComparedEvent | None, b: ComparedEvent | None) -> str:
    def text(compared: ComparedEvent) -> str:
        where = f" of `{compared.step}`" if compared.step else ""
        return f"{kind_of_body(compared.event.body).name}{where}"

    if a is not None and b is not None:
        return f"the first goes on with {text(a)}, the second with {text(b)}"
    if a is not None:
        return f"only the first has {text(a)}"
    return f"only the second has {text(b)}" if b is not None else ""


def _first_path(a: Any, b: Any) -> tuple[str | int, ...]:
    """The way to the first part that differs."""
    if isinstance(a, dict) and isinstance(b, dict):
        keys: list[Any] = [*a, *(key for key in b if key not in a)]
    elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        keys = list(range(len(a)))
    else:
        return ()
    for key in keys:
        if not (_has(a, key) and _has(b, key)):
            return (key,)
        if a[key] != b[key]:
            return (key, *_first_path(a[key], b[key]))
    return ()


def _has(value: Any, key: str | int) -> bool:
    if isinstance(value, dict):
        return key in value
    return isinstance(value, list) and isinstance(key, int) and key < len(value)


def _compared_events(events: Iterable[Event], names: tuple[bytes, ...]) -> dict[EventKey, ComparedEvent]:
    """By what they are about, whatever number that has in its own history."""
    subjects = _Subjects()
    repeats: Counter[EventKey] = Counter()
    compared: dict[EventKey, ComparedEvent] = {}
    for event in events:
        fields = _COMPARED.get(type(event.body))
        if fields is None:
            continue
        step, run, occurrence = subjects.of_event(event)
        subject: EventKey = (type(event.body), step, occurrence, *_inner_key(event.body))
        repeats[subject] += 1
        data = _comparable(event.body, fields, names)
        compared[(*subject, repeats[subject])] = ComparedEvent(event, step, run, data)
    return compared


def _inner_key(body: EventBody) -> EventKey:
    match body:
        case of.TaskStarted() | of.TaskProcessed():
            return body.iteration, body.task, body.visit, body.attempt
        case of.LoopIterationStarted() | of.LoopIterationCompleted():
            return (body.index,)
        case of.RunSuspended() | of.RunResumed():
            return (body.iteration,)
        case _:
            return ()


class _Subjects:
    """The step of each token and run, and how many there were at it before."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[str, int]] = {}
        self._counts: Counter[tuple[str, str]] = Counter()

    def of_event(self, event: Event) -> tuple[str | None, str | None, int]:
        """The step, the run and which of the step's it is, of the run or else of the token."""
        body = event.body
        if isinstance(body, of.TokenEnqueued):
            return self._add(body.step, "token", token_id(event.seq), run=None)
        if isinstance(body, of.StepScheduled):
            name = run_id(event.seq)
            return self._add(body.step, "run", name, run=name)
        run = getattr(body, "run", "")
        known = self._known.get(run or getattr(body, "token", ""))
        return (known[0], run or None, known[1]) if known is not None else (None, None, 0)

    def _add(self, step: str, sort: str, name: str, *, run: str | None) -> tuple[str, str | None, int]:
        self._counts[step, sort] += 1
        self._known[name] = step, self._counts[step, sort]
        return step, run, self._counts[step, sort]


def _comparable(body: EventBody, fields: tuple[str, ...], names: tuple[bytes, ...]) -> bytes:
    """What has to be the same, without what names an execution or where its values are stored."""
    data = msgspec.json.encode({name: _plain(getattr(body, name)) for name in fields}, order="sorted")
    for name in names:
        data = data.replace(name, b"EXECUTION")
    return _STORED_KEY.sub(rb'"key":"\1', data)


def _plain(value: Any) -> Any:
    match value:
        case Outcome():
            return {"status": value.status, "result": value.result, "error": _plain(value.error)}
        case ErrorInfo():
            return {"kind": value.kind, "message": value.message}
        case {"execution_id": str(), "status": _, **rest}:
            return rest  # how a child has ended, whatever its id
        case _:
            return value
