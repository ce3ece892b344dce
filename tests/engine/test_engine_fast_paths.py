"""What is done fast comes to the same as what it stands for, done slowly."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import noetl
from noetl.engine.catalog.playbook_record import PlaybookSource
from noetl.engine.effects import EFFECT_BODIES, effects_of, effects_of_row
from noetl.engine.history.lookup import decode_rows
from noetl.events import bodies as of
from noetl.events.codec import FORMAT, encode
from noetl.events.event import Event
from noetl.events.event_kind import KIND_NUMBERS
from noetl.kernel.net.commands import Cancel, Pause
from noetl.kernel.state.execution_state import ExecutionState
from noetl.local import Local
from noetl.ports.store import NO_EFFECTS, Row
from noetl.stores.sqlite.store import SqliteStore
from noetl.tools import kind_registry
from noetl.tools.host.worker_tools import Tools
from noetl.worker import runner
from tests.events.any_event import AT_ANY_SPEED, JSON, any_event

PURE = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: pure, path: pure}
workload: {value: null, items: []}
workflow:
- step: start
  tool:
  - first: {kind: noop, args: {value: "{{ workload.value }}"}}
  - second:
      kind: noop
      args: {again: "{{ first.value }}", sum: "{{ workload.value + 1 }}"}
      spec: {policy: {rules: [{when: "{{ outcome.status == 'error' }}", then: {do: continue}}]}}
  next: {arcs: [{step: each, args: {value: "{{ event.result }}"}}, {step: other}]}
- step: each
  loop: {in: "{{ workload.items }}", iterator: item, spec: {mode: parallel, max_in_flight: 2}}
  tool: [{pass: {kind: noop, args: {item: "{{ iter.item }}", at: "{{ iter.index }}"}}}]
  next: {arcs: [{step: end}]}
- step: other
  tool: [{pass: {kind: noop, args: {value: "{{ workload.value }}"}}}]
  next: {arcs: [{step: end}]}
- step: end
  spec: {policy: {join: all}}
  tool: [{gather: {kind: noop, args: {joined: "{{ joined | map(attribute='step') | list }}"}}}]
"""
CONSTANT = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: constant, path: constant}
workflow:
- step: start
  loop: {in: "{{ workload.items }}", iterator: item, spec: {mode: parallel, max_in_flight: MOST}}
  tool: {kind: KIND}
"""
WORKLOADS = st.fixed_dictionaries({"value": JSON, "items": st.lists(JSON, max_size=4)})


def play(workload: dict[str, Any], text: str = PURE) -> tuple[ExecutionState, list[Event]]:
    """How the playbook ends with this workload, in a store of its own, and all that happened."""
    events: list[Event] = []

    def watch(_: str, written: Sequence[Event], _state: ExecutionState) -> None:
        events.extend(written)

    async def run() -> ExecutionState:
        store = SqliteStore.in_memory()
        try:
            async with Local(store, watch=watch) as local:
                source = PlaybookSource(text, "pure.yaml")
                return await local.wait_for_end(await local.start(source, workload=workload))
        finally:
            await store.close()

    return asyncio.run(run()), events


def summary(state: ExecutionState, events: list[Event]) -> tuple[Any, ...]:
    """What must be the same, whatever the order of what has none."""
    steps = {name: (step.status, step.runs) for name, step in state.summaries.items()}
    return state.status, state.result, state.error, steps, Counter(type(event.body) for event in events)


@settings(AT_ANY_SPEED, max_examples=10, deadline=None)
@given(WORKLOADS)
def test_a_pure_task_done_at_once_gives_what_an_awaited_one_gives(workload: dict[str, Any]) -> None:
    fast = summary(*play(workload))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Tools, "immediate", lambda *_: False)
        slow = summary(*play(workload))
    assert fast == slow


@settings(AT_ANY_SPEED, max_examples=10, deadline=None)
@given(WORKLOADS)
def test_a_run_claimed_with_the_end_of_another_goes_as_one_that_the_scheduler_claims(
    workload: dict[str, Any],
) -> None:
    fast = summary(*play(workload))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "MOST_CHAINED", 0)
        slow = summary(*play(workload))
    assert fast == slow


@settings(AT_ANY_SPEED, max_examples=10, deadline=None)
@given(st.integers(0, 60), st.sampled_from([5, 50]), st.booleans())
def test_iterations_that_begin_and_end_with_one_report_go_as_those_that_have_one_each(
    count: int, in_flight: int, repeatable: bool
) -> None:
    workload = {"items": list(range(count))}
    text = CONSTANT.replace("KIND", "noop").replace("MOST", str(in_flight))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Tools, "immediate", lambda *_: False)
        patch.setattr(Tools, "repeatable", lambda *_: repeatable)
        fast = play(workload, text)
        patch.setattr(runner, "MOST_OPENED", 1)
        patch.setattr(runner, "MOST_ENDED", 0)
        slow = play(workload, text)
    assert summary(*fast) == summary(*slow)
    assert max(most_in_flight(fast[1]), most_in_flight(slow[1])) <= in_flight


@pytest.mark.parametrize("commands", ["interrupt", "pause", "cancel", "pause and interrupt"])
@pytest.mark.parametrize("most_ended", [0, 1, runner.MOST_ENDED])
def test_what_has_ended_is_recorded_whatever_is_asked_at_the_same_time(
    commands: str, most_ended: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kind_registry, "_declared", {})
    monkeypatch.setattr(runner, "MOST_ENDED", most_ended)
    calls: list[int] = []

    async def run() -> list[Event]:
        store = SqliteStore.in_memory()

        @noetl.tool("counted")
        async def counted() -> None:
            calls.append(len(calls))
            if len(calls) == 3:  # the others of this turn end after it, and nothing is recorded yet
                if "pause" in commands:
                    ask(Pause())
                if "cancel" in commands:
                    ask(Cancel())
                if "interrupt" in commands:
                    local.interrupt()

        def ask(command: Pause | Cancel) -> None:
            submissions.append(asyncio.get_running_loop().create_task(local.submit(execution_id, command)))

        submissions: list[asyncio.Task[None]] = []
        try:
            async with Local(store) as local:
                text = CONSTANT.replace("KIND", "counted").replace("MOST", "5")
                execution_id = await local.start(PlaybookSource(text, "p.yaml"), workload={"items": [0] * 30})
                if "pause" in commands and "interrupt" not in commands:
                    await until_paused(store, execution_id)
                else:
                    await local.wait_for_end(execution_id)
                await asyncio.gather(*submissions, return_exceptions=True)
                return decode_rows(execution_id, await store.read(execution_id))
        finally:
            await store.close()

    kinds = Counter(type(event.body) for event in asyncio.run(run()))
    assert 5 <= len(calls) < 30
    assert kinds[of.TaskProcessed] == len(calls)


async def until_paused(store: SqliteStore, execution_id: str) -> None:
    """Waits until its run has let go."""
    while not any(
        isinstance(event.body, of.RunSuspended)
        for event in decode_rows(execution_id, await store.read(execution_id))
    ):
        await asyncio.sleep(0)


def most_in_flight(events: list[Event]) -> int:
    steps = {of.LoopIterationStarted: 1, of.LoopIterationCompleted: -1}
    return max(accumulate((steps.get(type(event.body), 0) for event in events), initial=0))


@settings(AT_ANY_SPEED)
@given(any_event())
def test_a_row_that_is_not_decoded_would_have_changed_nothing(event: Event) -> None:
    effects = effects_of(event.ts, event.body)
    row = Row(event.seq, event.ts, KIND_NUMBERS[type(event.body)], FORMAT, encode(event.body), last=True)
    assert effects_of_row(row) == effects
    assert (type(event.body) in EFFECT_BODIES) == (effects != NO_EFFECTS)
