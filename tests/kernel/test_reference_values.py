"""Large values leave the events, and everything works as if they had not."""

import asyncio
import re
from typing import Any

import pytest

from noetl.events.bodies import StepDone, TaskProcessed
from noetl.events.codec import decode
from noetl.events.event import Event
from noetl.events.event_kind import kind_of_body
from noetl.kernel.net.commands import ChildEnded, Signal
from noetl.kernel.references.externalize import externalize
from noetl.kernel.references.resolve import resolve_references
from noetl.kernel.result_rules import INLINE_MAX_BYTES
from noetl.kernel.state.execution_state import Blob
from noetl.kernel.state.replay import replay
from noetl.kernel.verify.verification import verify
from noetl.model.reference import StoredReference, decode_value, escape, is_reference
from tests.kernel.driver import EXECUTION, Driver, run
from tests.kernel.large_values import PAGE, ROWS, two


def test_a_large_result_leaves_the_log() -> None:
    driver = run('- step: start\n  tool: {kind: python, code: "1"}\n', {"task_0": PAGE})
    result = driver.state.result
    assert is_reference(result)
    assert (result["type"], result["length"], result["size"] > INLINE_MAX_BYTES) == ("mapping", 3, True)
    assert result["preview"].startswith('{"n":3,"rows":[{"id":0,')
    assert len(result["preview"]) == 1_025
    assert driver.resolve(result) == PAGE
    assert all(len(event.data) < 4_096 for event in driver.events)
    assert len(driver.stored) == 1, "the same value is stored once"


def test_a_small_one_stays() -> None:
    driver = run('- step: start\n  tool: {kind: python, code: "1"}\n', {"task_0": "x" * 65_000})
    assert driver.state.result == "x" * 65_000
    assert not driver.stored


@pytest.mark.parametrize(
    "arc",
    [
        'when: "{{ event.result.n == 3 }}"',
        'when: "{{ event.result.extracted.n == 3 }}"',
        'when: "{{ event.result.data.total == 1000 }}"',
        'when: "{{ event.result.rows | length == 1000 }}"',
        'when: "{{ event.result | length == 3 }}"',
        'when: "{{ event.result.missing is undefined and not event.result.data.missing }}"',
        'when: "{{ start.n == 3 and steps.start.result.n == 3 and start.data.total == 1000 }}"',
        'when: "{{ event.result_ref.size > 65536 and event.result_ref.key is string }}"',
        'when: "{{ event.data.result.n == 3 }}"',
    ],
)
def test_arcs_read_what_they_need_at_any_size(arc: str) -> None:
    driver = run(two(arc), {"t": PAGE})
    assert driver.ran == ["t", "u"]
    assert not driver.fetches or driver.fetches[-1]


@pytest.mark.parametrize(("result", "limit"), [(PAGE, ""), ({"n": 3, "data": {"total": 8}}, "")])
def test_what_is_selected_is_at_hand_at_any_size(result: Any, limit: str) -> None:
    select = (
        ", spec: {result: {select: [{path: $.data.total, as: sum}, $.n, {path: '$.rows[*].id', as: ids}]}}"
    )
    arc = 'args: {sum: "{{ event.result.extracted.sum }}", n: "{{ event.result.extracted.n }}", first: "{{ event.result.extracted.ids[:2] }}"}'
    driver = run(two(arc, 'kind: noop, args: {got: "{{ args }}"}', select), {"t": result})
    total = result["data"]["total"]
    first = [0, 1] if "rows" in result else []
    assert driver.state.result == {"got": {"sum": total, "n": 3, "first": first}}


def test_a_part_that_nobody_said_he_reads_is_an_error_and_not_undefined() -> None:
    driver = run(two('when: "{{ event.result.rows[0].id == 0 }}"'), {"t": PAGE})
    error = driver.state.error
    assert error is not None
    assert (error.kind, driver.ran) == ("limit", ["t"])
    assert "stored by reference" in error.message
    assert "spec.result.select" in error.details["hint"]


def test_a_reference_is_handed_on_and_its_parts_are_still_at_hand() -> None:
    text = """
- step: start
  tool: [{t: {kind: python, code: "1"}}]
  next: {arcs: [{step: b, args: {page: "{{ event.result }}", rows: "{{ event.result.rows }}"}, set: {ctx.page: "{{ event.result }}"}}]}
- step: b
  spec: {policy: {admit: {rules: [{when: "{{ args.page.data.total == 1000 and ctx.page.n == 3 and args.rows | length == 1000 }}", then: {allow: true}}]}}}
  tool: [{u: {kind: python, code: "1", args: {rows: "{{ args.rows }}"}}}]
""".lstrip()
    driver = run(text, {"t": PAGE})
    call = driver.calls[1]
    assert call.args["rows"] == ROWS
    assert isinstance(call.args["page"], StoredReference), (
        "what is stored by itself comes to Python by reference"
    )
    assert driver.resolve(escape(call.args["page"])) == PAGE
    assert is_reference(driver.ctx["page"])
    assert driver.resolve(driver.ctx) == {"page": PAGE}


def test_a_limit_of_the_task_is_its_own() -> None:
    driver = run(
        two("args: {}", more=", spec: {result: {inline_max_bytes: 20, preview_max_bytes: 4}}"),
        {"t": {"text": "x" * 30}},
    )
    (body, _) = driver.bodies(TaskProcessed)
    assert is_reference(body.outcome.result)
    assert body.outcome.result["preview"] == '{"te…'


def test_what_comes_with_a_request_leaves_the_log_too() -> None:
    text = '- step: start\n  spec: {policy: {admit: {rules: [{when: "{{ workload.page.n == ctx.page.n }}", then: {allow: true}}]}}}\n  tool: [{t: {kind: python, code: "1", args: {rows: "{{ workload.page.rows }}"}}}]\n'
    driver = run(text, workload={"page": PAGE}, ctx={"page": PAGE})
    assert driver.calls[0].args["rows"] == ROWS
    assert max(len(event.data) for event in driver.events) < 8_192


def test_user_data_that_looks_like_a_reference_is_only_data() -> None:
    fake = {"$noetl": "ref", "key": "x/y", "extracted": {"n": 1}}
    driver = run(
        two(
            'args: {given: "{{ event.result }}", w: "{{ workload.w }}"}',
            'kind: python, code: "1", args: {given: "{{ args.given }}", own: {$noetl: ref}}',
        ),
        {"t": fake},
        workload={"w": fake},
        ctx={"c": [fake]},
    )
    call = driver.calls[1]
    assert call.args == {"given": fake, "w": fake, "own": {"$noetl": "ref"}}
    assert driver.resolve(driver.ctx) == {"c": [fake]}
    assert not any(map(is_reference, [driver.bodies(StepDone)[0].result, driver.ctx["c"][0]]))


def test_signals_and_children_may_bring_large_values() -> None:
    text = """
- step: start
  tool:
    - w: {kind: wait, signal: go}
    - c: {kind: playbook, path: a/b}
    - t: {kind: python, code: "1", args: {got: "{{ w.n + c.n }}", rows: "{{ c.rows }}", also: "{{ ctx.signals.go.n | default(0) }}"}}
""".lstrip()
    driver = Driver(text).run()
    driver.submit(Signal("go", PAGE))
    driver.run()
    (state,) = driver.state.runs.values()
    child = state.frames[0].suspension
    assert child is not None
    driver.submit(ChildEnded(state.id, 0, child.child, "completed", PAGE))
    driver.run()
    assert driver.calls[-1].args["got"] == 6
    assert driver.calls[-1].args["rows"] == ROWS
    assert is_reference(driver.ctx["signals"]["go"])


def test_lightening_is_a_function_of_the_body() -> None:
    driver = run("- step: start\n  tool: {kind: noop}\n")
    body = StepDone(run="r1", result=PAGE)
    externalized, blobs = externalize(driver.plan, driver.plan.entry, body, "E")
    assert isinstance(externalized, StepDone)
    assert isinstance(blobs[0], Blob)
    assert externalized.result["key"] == blobs[0].key
    assert blobs[0].key.startswith("E/")
    assert externalize(driver.plan, driver.plan.entry, externalized, "E") == (externalized, [])
    small = StepDone(run="r1", result=1)
    assert externalize(driver.plan, None, small, "E")[0] is small


def test_resolving_gives_whole_values_as_users_gave_them() -> None:
    stored = {
        blob.key: blob.data
        for blob in externalize(
            run("- step: start\n  tool: {kind: noop}\n").plan,
            None,
            StepDone(run="r1", result=[{"$$noetl": "ref"}] * 9_000),
            "E",
        )[1]
    }

    async def get(key: str) -> bytes:
        return stored[key]

    (key,) = stored
    value = {"a": {"$noetl": "ref", "key": key}, "b": [{"$noetl": "ref", "key": key, "path": [1]}]}
    assert asyncio.run(resolve_references(value, get)) == {
        "a": [{"$noetl": "ref"}] * 9_000,
        "b": [{"$noetl": "ref"}],
    }


def test_what_is_selected_and_too_large_to_be_at_hand_is_stored_by_itself() -> None:
    select = ", spec: {result: {select: [{path: '$.rows[*].text', as: texts}, {path: $.n, as: count}]}}"
    arc = (
        'when: "{{ event.result.extracted.texts | length == 1000 }}", '
        'args: {texts: "{{ event.result.extracted.texts }}", count: "{{ event.result.extracted.count }}"}'
    )
    task = 'kind: noop, args: {last: "{{ args.texts[-1] }}", count: "{{ args.count }}"}'
    driver = run(two(arc, task, select), {"t": PAGE})
    assert driver.state.result == {"last": "x" * 100, "count": 3}
    refused = run(two('when: "{{ event.result.extracted.texts[0] == 1 }}"', more=select), {"t": PAGE})
    assert refused.state.error is not None
    assert refused.state.error.kind == "limit"


def test_a_preview_is_never_larger_than_a_value_in_the_log() -> None:
    driver = run(two("", more=", spec: {result: {preview_max_bytes: 1000000}}"), {"t": PAGE})
    (preview,) = {
        event.body.outcome.result["preview"]
        for event in driver.events
        if isinstance(event.body, TaskProcessed) and is_reference(event.body.outcome.result)
    }
    assert len(preview.removesuffix("…")) == INLINE_MAX_BYTES


def test_references_of_older_events_are_read_and_verified() -> None:
    arc = 'when: "{{ event.result.n == 3 }}", args: {p: "{{ event.result }}"}'
    driver = run(two(arc, more=", args: {a: \"{{ 'x' * 70000 }}\"}"), {"t": PAGE})
    former = []
    for event in driver.events:
        data = re.sub(rb'"store":"auto","checksum":"sha256:\w+",', b"", event.body_bytes)
        body = decode(kind_of_body(event.body).number, data, 1)
        former.append(Event(event.seq, event.ts, body))
    assert former != driver.events
    state = replay(driver.plan, EXECUTION, former)
    assert state.status == driver.state.status == "completed"
    read = verify(driver.plan, EXECUTION, former, lambda key: decode_value(driver.stored[key]))
    now = verify(driver.plan, EXECUTION, driver.events, lambda key: decode_value(driver.stored[key]))
    assert (read.differences, read.unjudged) == ((), now.unjudged)
