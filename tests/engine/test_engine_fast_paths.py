"""What is done fast comes to the same as what it stands for, done slowly."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noetl.engine.catalog.playbook_record import PlaybookSource
from noetl.engine.effects import EFFECT_BODIES, effects_of, effects_of_row
from noetl.events.codec import FORMAT, encode
from noetl.events.event import Event
from noetl.events.event_kind import KIND_NUMBERS
from noetl.kernel.state.execution_state import ExecutionState
from noetl.local import Local
from noetl.ports.store import NO_EFFECTS, Row
from noetl.stores.sqlite.store import SqliteStore
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
WORKLOADS = st.fixed_dictionaries({"value": JSON, "items": st.lists(JSON, max_size=4)})


def play(workload: dict[str, Any]) -> tuple[ExecutionState, list[Event]]:
    """How the playbook ends with this workload, in a store of its own, and all that happened."""
    events: list[Event] = []

    def watch(_: str, written: Sequence[Event], _state: ExecutionState) -> None:
        events.extend(written)

    async def run() -> ExecutionState:
        store = SqliteStore.in_memory()
        try:
            async with Local(store, watch=watch) as local:
                source = PlaybookSource(PURE, "pure.yaml")
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


@settings(AT_ANY_SPEED)
@given(any_event())
def test_a_row_that_is_not_decoded_would_have_changed_nothing(event: Event) -> None:
    effects = effects_of(event.ts, event.body)
    row = Row(event.seq, event.ts, KIND_NUMBERS[type(event.body)], FORMAT, encode(event.body), last=True)
    assert effects_of_row(row) == effects
    assert (type(event.body) in EFFECT_BODIES) == (effects != NO_EFFECTS)
