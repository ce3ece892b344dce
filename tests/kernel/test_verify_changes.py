"""Nothing that was changed in a history goes unnoticed."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from noetl.events.bodies import (
    CtxPatched,
    SignalReceived,
)
from noetl.events.event import Event
from noetl.kernel.verify.verification import verify
from tests.golden.golden_files import history
from tests.golden.golden_scenarios import SCENARIOS


def _leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from _leaves(item, (*path, key))
    elif isinstance(value, list) and value:
        for index, item in enumerate(value):
            yield from _leaves(item, (*path, index))
    else:
        yield path, value


def _other(value: Any) -> Iterator[Any]:
    match value:
        case bool():
            yield not value
        case int() | float():
            yield value + 1_000_000_000_000
        case str():
            yield value + "x"
            yield from ("park", "wait", "retry", "fail", "continue", "error", "success", "failed", "timer")
        case None | [] | {}:
            yield from ("x", {"x": 1}, [1])


def _put(value: Any, path: tuple[Any, ...], leaf: Any) -> Any:
    if not path:
        return leaf
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = _put(copy[path[0]], path[1:], leaf)
    return copy


def tampered(event: Event) -> Iterator[tuple[tuple[Any, ...], Event]]:
    """The event with one thing in it changed, for every thing in it."""
    body = event.body
    plain = {name: msgspec.to_builtins(getattr(body, name)) for name in body.__struct_fields__}
    for path, leaf in _leaves(plain):
        for changed_leaf in _other(leaf):
            if changed_leaf == leaf:
                continue
            try:
                wrong = msgspec.convert(_put(plain, path, changed_leaf), type(body))
            except msgspec.ValidationError:
                continue
            yield path, Event(event.seq, event.ts, wrong)
            break


INPUTS: dict[str, tuple[str, ...]] = {
    "PlaybookExecutionRequested": (
        "version",
        "workload",
        "ctx",
        "labels",
        "parent",
        "idempotency_key",
        "requested_by",
        "decider",
        "trace_id",
        "file",
        "priority",
    ),
    "WorkflowStarted": ("deadline",),
    "TokenClaimed": ("session", "worker"),
    "TaskStarted": ("at",),
    "TaskProcessed": ("outcome",),
    "SignalReceived": ("signal", "payload", "by", "by_admin"),
    "CtxPatched": ("patches", "by"),
    "CancelRequested": ("by", "reason", "error"),
    "ExecutionPaused": ("by",),
    "ExecutionResumed": ("by",),
    "ExecutionRetried": ("by", "children", "file"),
    "IterationsRedriven": ("by", "children", "file"),
    "ExecutionForked": ("source", "at", "by", "hash", "file", "workload", "shift"),
}
"""What came from outside: if it is changed, what follows from it may differ, or nothing does.

So may the playbook before a fork: it can be another one.
"""


def _is_input(event: Event, path: tuple[Any, ...], *, forked: bool) -> bool:
    body = event.body
    if path == ("hash",):
        return forked
    if body.__class__.__name__ == "RunResumed" and body.reason == "child":  # type: ignore[union-attr]  # the class was asked
        return path[0] == "payload" and path[1:] != ("execution_id",)
    if body.__class__.__name__ == "StepFailed" and body.error.kind == "cancelled":  # type: ignore[union-attr]  # the class was asked
        return True
    return path[0] in INPUTS.get(type(body).__name__, ())


@pytest.mark.parametrize("name", SCENARIOS)
@pytest.mark.no_cover
def test_every_change_to_a_history_is_found_where_it_was_made(name: str) -> None:
    golden = history(name)
    changes_found = 0
    for position, event in enumerate(golden.events):
        for path, wrong in tampered(event):
            if _is_input(event, path, forked=name == "fork"):
                continue
            events = [*golden.events[:position], wrong, *golden.events[position + 1 :]]
            differences = verify(golden.plan, golden.execution_id, events).differences
            assert [difference.seq for difference in differences] == [event.seq], (event, path, differences)
            changes_found += 1
    assert changes_found > len(golden.events)


@pytest.mark.parametrize("name", SCENARIOS)
@pytest.mark.no_cover
def test_an_event_that_is_missing_twice_there_or_renumbered_is_found(name: str) -> None:
    golden = history(name)
    events = golden.events
    for position, event in enumerate(events):
        renumbered = Event(event.seq + 1, event.ts, event.body)
        without = [*events[:position], *events[position + 1 :]]
        counted = [Event(seq, event.ts, event.body) for seq, event in enumerate(without, 1)]
        twice = [*events[: position + 1], renumbered, *events[position + 1 :]]
        for wrong in ([*events[:position], renumbered, *events[position + 1 :]], without, twice):
            if wrong and position < len(events) - 1:
                assert verify(golden.plan, golden.execution_id, wrong).differences
        if counted and _matters(event) and name not in CUT_OFF:
            assert verify(golden.plan, golden.execution_id, counted).differences, event


CUT_OFF = ("cancel", "deadlines")
"""Where runs are cut off: what they did last before that may be missing."""


def _matters(event: Event) -> bool:
    """Without these a history can still be one: nobody asked."""
    return not isinstance(event.body, CtxPatched | SignalReceived)
