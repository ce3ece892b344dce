"""Large values leave the events, and everything works as if they had not."""

import asyncio
from typing import Any

import pytest
from msgspec import structs

from noetl.events.bodies import LoopDone, LoopIterationCompleted, LoopStarted, StepDone, TaskProcessed
from noetl.kernel import Blob, Unfetched, judge, lighten, resolve
from noetl.kernel.errors import Refused
from noetl.kernel.net.commands import ChildEnded, PatchCtx, Signal
from noetl.kernel.pipeline.advance import advance
from noetl.kernel.pipeline.moves import Fetch, Finish, RunTask
from noetl.kernel.references.rules import INLINE_MAX_BYTES
from noetl.model.outcome import succeeded
from noetl.model.reference import Stored, escape, is_manifest, is_reference
from tests.kernel.driver import Driver, run

ROWS = [{"id": number, "text": "x" * 100} for number in range(1_000)]
PAGE = {"n": 3, "rows": ROWS, "data": {"total": 1_000}}


def two(arc: str, task: str = "kind: noop", more: str = "") -> str:
    return f"""
- step: start
  tool: [{{t: {{kind: python, code: "1"{more}}}}}]
  next: {{arcs: [{{step: b, {arc}}}]}}
- step: b
  tool: [{{u: {{{task}}}}}]
""".lstrip()


def test_a_large_result_leaves_the_log() -> None:
    driver = run('- step: start\n  tool: {kind: python, code: "1"}\n', {"task_0": PAGE})
    result = driver.state.result
    assert is_reference(result)
    assert (result["type"], result["length"], result["size"] > INLINE_MAX_BYTES) == ("mapping", 3, True)
    assert result["preview"].startswith('{"n":3,"rows":[{"id":0,')
    assert len(result["preview"]) == 1_025
    assert driver.whole(result) == PAGE
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
    assert isinstance(call.args["page"], Stored), "what is stored by itself comes to Python by reference"
    assert driver.whole(escape(call.args["page"])) == PAGE
    assert is_reference(driver.ctx["page"])
    assert driver.whole(driver.ctx) == {"page": PAGE}


def test_a_task_sees_whole_values_and_fetches_only_what_it_reads() -> None:
    text = """
- step: start
  tool:
    - a: {kind: python, code: "1"}
    - b: {kind: python, code: "1", args: {n: "{{ iter.index }}"}}
    - c: {kind: python, code: "1", args: {last: "{{ a.rows[999].id }}", n: "{{ a.n }}"}}
""".lstrip()
    driver = run(text, {"a": PAGE, "b": 5})
    assert driver.calls[2].args == {"last": 999, "n": 3}
    (key,) = driver.stored
    assert driver.fetches == [(key,)], "for c; nobody shows `_prev` to b"


@pytest.mark.parametrize(
    "task",
    [
        "kind: noop",
        "kind: http, url: 'http://x'",
        "kind: postgres, command: SELECT 1, auth: {host: x}",
        "kind: shell, command: ls",
    ],
)
def test_args_and_prev_are_not_fetched_for_tools_that_do_not_look_at_them(task: str) -> None:
    text = f"""
- step: start
  loop: {{in: "{{{{ range(40) | list }}}}", iterator: n}}
  spec: {{result: {{inline_max_bytes: 64}}}}
  tool: [{{a: {{kind: noop, args: {{n: "{{{{ n }}}}"}}}}}}]
  next: {{arcs: [{{step: b, args: {{all: "{{{{ event.result }}}}", rows: "{{{{ workload.rows }}}}"}}}}]}}
- step: b
  tool:
    - c: {{kind: shell, command: ls}}
    - d: {{{task}}}
""".lstrip()
    driver = Driver(text, {"c": PAGE, "d": 1}).start(workload={"rows": ROWS})
    driver.step()
    (all_of_them,) = (event.body.result for event in driver.events if isinstance(event.body, LoopDone))
    assert is_manifest(all_of_them)
    driver.fetches.clear()
    driver.run()
    assert driver.ran[-2:] == ["c", "d"]
    assert driver.fetches == []


def test_a_worker_asks_for_what_it_needs_and_is_given_it() -> None:
    driver = Driver(
        two(
            'args: {rows: "{{ event.result.rows }}"}',
            'kind: python, code: "1", args: {n: "{{ rows[1].id }}"}',
        ),
        {"t": PAGE},
    ).start()
    driver.work(driver.claim(driver.state.ready.first))
    state = driver.claim(driver.state.ready.first)
    move = advance(state, driver.now)
    assert isinstance(move, Fetch)
    assert move == Fetch(tuple(driver.stored))
    assert advance(state, driver.now) == move, "asking again gives the same answer"
    again = advance(state, driver.now, None, driver.fetch(move.keys))
    assert isinstance(again, RunTask)
    assert again.args == {"rows": ROWS, "n": 1}


def test_a_policy_reads_what_is_stored() -> None:
    rules = ", spec: {policy: {rules: [{when: \"{{ a.rows[0].id == 0 and outcome.status == 'ok' }}\", then: {do: break}}]}}"
    text = f'- step: start\n  tool:\n    - a: {{kind: python, code: "1"}}\n    - b: {{kind: noop, args: {{x: 1}}{rules}}}\n    - c: {{kind: noop}}\n'
    driver = Driver(text, {"a": PAGE}).start()
    state = driver.claim(driver.state.ready.first)
    driver.move(state)
    driver.report(state, *driver.advance(state).begins)  # type: ignore[union-attr]
    assert isinstance(judge(state, 0, succeeded(1), driver.now, fetched={}), Fetch)
    with pytest.raises(Unfetched):
        judge(state, 0, succeeded(1), driver.now)
    assert driver.judge(state, 0, succeeded(1)).do == "break"


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
    assert driver.whole(driver.ctx) == {"c": [fake]}
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
    driver.give(Signal("go", PAGE))
    driver.run()
    (state,) = driver.state.runs.values()
    child = state.frames[0].suspension
    assert child is not None
    driver.give(ChildEnded(state.id, 0, child.child, "completed", PAGE))
    driver.run()
    assert driver.calls[-1].args["got"] == 6
    assert driver.calls[-1].args["rows"] == ROWS
    assert is_reference(driver.ctx["signals"]["go"])


LOOP = """
- step: start
  tool: [{t: {kind: python, code: "1"}}]
  next: {arcs: [{step: each, args: {rows: "{{ event.result }}"}}]}
- step: each
  loop: {in: "{{ args.rows }}", iterator: row, spec: {mode: %s, max_in_flight: 4}}
  tool: [{u: {kind: python, code: "1", args: {id: "{{ row.id }}"}}}]
  next: {arcs: [{step: again, args: {n: "{{ event.result | length }}"}}]}
- step: again
  loop: {in: "{{ steps.each.result }}", iterator: one}
  tool: [{v: {kind: python, code: "1", args: {one: "{{ one }}"}}}]
"""


@pytest.mark.parametrize("mode", ["sequential", "parallel"])
def test_a_loop_goes_through_its_items_and_its_results_chunk_by_chunk(mode: str) -> None:
    script = {
        "t": [ROWS],
        "u": lambda call: {"id": call.args["id"], "pad": "y" * 1_000},
        "v": lambda call: call.args["one"]["id"],
    }
    driver = run((LOOP % mode).lstrip(), script)
    items, results = driver.bodies(LoopStarted)
    (done, _) = driver.bodies(LoopDone)
    assert is_manifest(items.items)
    assert items.total == 1_000
    assert all(chunk["size"] <= INLINE_MAX_BYTES for chunk in items.items["chunks"])
    assert is_manifest(done.result)
    assert (done.result["total"], len(done.result["chunks"]) > 2) == (1_000, True)
    assert [body.chunk for body in driver.bodies(LoopIterationCompleted) if body.chunk] == done.result[
        "chunks"
    ][:-1]
    assert results.items == done.result, "a manifest is gone through as it is"
    assert max(len(keys) for keys in driver.fetches) <= 2
    assert driver.whole(done.result) == [{"id": number, "pad": "y" * 1_000} for number in range(1_000)]
    assert driver.state.result == list(range(1_000))


def test_a_long_loop_is_small_in_memory() -> None:
    text = '- step: start\n  loop: {in: "{{ range(15000) | list }}", iterator: n}\n  tool: [{t: {kind: noop, args: {n: "{{ iter.n }}", text: "0123456789"}}}]\n'
    driver = Driver(text)
    most = [0, 0]

    def measure(_: Any) -> None:
        for state in driver.state.runs.values():
            if state.loop is not None:
                assert not isinstance(state.loop.items, list)
                most[0] = max(most[0], len(state.loop.results))
                most[1] = max(most[1], len(state.loop.ended))

    driver.on_append = measure
    driver.run()
    assert most[0] < 10_000
    assert most[1] <= 1
    assert driver.state.result["total"] == 15_000
    assert driver.whole(driver.state.result)[-1] == {"n": 14_999, "text": "0123456789"}


def test_a_reducer_appends_to_what_is_stored() -> None:
    text = """
- step: start
  loop: {in: "{{ range(700) | list }}", iterator: n, spec: {mode: parallel, reduce: {all: append}}}
  tool: [{t: {kind: noop, set: {ctx.all: "{{ ('x' * 100) ~ iter.n }}"}}}]
  next: {arcs: [{step: more, when: "{{ ctx.all | length == 700 }}"}]}
- step: more
  loop: {in: "{{ [1, 2] }}", iterator: n, spec: {reduce: {all: append}}}
  tool: [{t: {kind: noop, set: {ctx.all: "{{ iter.n }}"}}}]
  next: {arcs: [{step: last, when: "{{ ctx.all | length == 702 }}"}]}
- step: last
  tool: [{u: {kind: python, code: "1", args: {tail: "{{ ctx.all[-3:] }}"}}}]
""".lstrip()
    driver = run(text)
    assert is_reference(driver.ctx["all"])
    assert driver.calls[-1].args["tail"] == ["x" * 100 + "699", 1, 2]


def test_a_part_of_a_stored_value_can_be_written() -> None:
    text = """
- step: start
  tool: [{t: {kind: python, code: "1", set: {ctx.page: "{{ outcome.result }}"}}}]
  next: {arcs: [{step: b, set: {ctx.page.n: 4, ctx.page.more.deep: 5}}]}
- step: b
  tool: [{u: {kind: python, code: "1", args: {n: "{{ ctx.page.n }}", all: "{{ ctx.page }}"}}}]
""".lstrip()
    driver = run(text, {"t": PAGE})
    assert driver.calls[1].args["n"] == 4
    assert driver.calls[1].args["all"] == {**PAGE, "n": 4, "more": {"deep": 5}}
    assert driver.whole(driver.ctx["page"]) == {**PAGE, "n": 4, "more": {"deep": 5}}


def test_ctx_is_bounded_and_the_error_names_the_key() -> None:
    writes = ", ".join(f"ctx.k{number}: \"{{{{ 'x' * 60000 }}}}\"" for number in range(20))
    driver = run(f"- step: start\n  tool: [{{t: {{kind: noop, set: {{{writes}}}}}}}]\n")
    error = driver.state.error
    assert error is not None
    assert error.kind == "limit"
    assert "`ctx.k17`" in error.message
    assert "1,048,576 bytes" in error.message


def test_large_values_count_for_what_stays_of_them() -> None:
    writes = ", ".join(f"ctx.k{number}: \"{{{{ 'x' * 90000 }}}}\"" for number in range(20))
    driver = run(f"- step: start\n  tool: [{{t: {{kind: noop, set: {{{writes}}}}}}}]\n")
    assert driver.status == "completed"
    assert driver.state.ctx.size < 60_000


def test_what_comes_from_outside_must_fit_into_ctx() -> None:
    driver = run(
        "- step: start\n  tool: {kind: wait, signal: go}\n",
        ctx={f"k{number}": "x" * 60_000 for number in range(17)},
    )
    with pytest.raises(Refused, match=r"ctx\.signals\.other"):
        driver.give(Signal("other", "x" * 60_000))
    from noetl.events.bodies import Patch

    with pytest.raises(Refused, match=r"ctx\.a\.b"):
        driver.give(PatchCtx((Patch(scope="ctx", path=("a", "b"), value="x" * 60_000),)))
    refused = run(
        "- step: start\n  tool: {kind: noop}\n", ctx={f"k{number}": "x" * 60_000 for number in range(18)}
    )
    assert refused.state.error is not None
    assert refused.state.error.kind == "limit"


def test_lightening_is_a_function_of_the_body() -> None:
    driver = run("- step: start\n  tool: {kind: noop}\n")
    body = StepDone(run="r1", result=PAGE)
    light, blobs = lighten(driver.plan, driver.plan.entry, body, "E")
    assert isinstance(light, StepDone)
    assert isinstance(blobs[0], Blob)
    assert light.result["key"] == blobs[0].key
    assert blobs[0].key.startswith("E/")
    assert lighten(driver.plan, driver.plan.entry, light, "E") == (light, [])
    small = StepDone(run="r1", result=1)
    assert lighten(driver.plan, None, small, "E")[0] is small


def test_resolving_gives_whole_values_as_users_gave_them() -> None:
    stored = {
        blob.key: blob.data
        for blob in lighten(
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
    assert asyncio.run(resolve(value, get)) == {"a": [{"$noetl": "ref"}] * 9_000, "b": [{"$noetl": "ref"}]}


def test_a_worker_need_not_know_of_the_chunks() -> None:
    text = '- step: start\n  loop: {in: "{{ range(300) | list }}", iterator: n}\n  tool: [{t: {kind: python, code: "1"}}]\n'
    driver = Driver(text, {"t": lambda call: f"{call.iteration}" + "x" * 2_000}).start()
    state = driver.claim(driver.state.ready.first)
    while not isinstance(move := driver.advance(state), Finish):
        driver.move(state)
    assert state.loop is not None
    assert state.loop.chunks
    everything = [f"{number}" + "x" * 2_000 for number in range(300)]
    driver.report(state, structs.replace(move.body, result=everything))
    assert driver.whole(driver.state.result) == everything


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


@pytest.mark.parametrize("size", [10, 5_000, 40_000])
def test_parts_of_what_a_loop_gave_are_selected_at_any_size(size: int) -> None:
    text = """
- step: start
  loop: {in: "{{ range(SIZE) | list }}", iterator: n}
  spec: {result: {select: [{path: "$[*].odd", as: odd}, {path: "$[3].n", as: third}, {path: "$[-1].n", as: last}]}}
  tool: [{t: {kind: python, code: "1"}}]
  next: {arcs: [{step: b, args: {odd: "{{ event.result.extracted.odd }}", third: "{{ event.result.extracted.third }}", last: "{{ event.result.extracted.last }}"}}]}
- step: b
  tool: [{u: {kind: noop, args: {odd: "{{ args.odd | length }}", third: "{{ args.third }}", last: "{{ args.last }}"}}}]
""".lstrip().replace("SIZE", str(size))

    def give(call: RunTask) -> dict[str, Any]:
        number = call.iteration
        return {"n": number, "text": "x" * 100, **({"odd": number} if number % 2 else {})}

    driver = run(text, {"t": give})
    assert driver.state.result == {"odd": size // 2, "third": 3, "last": size - 1}
    results = [
        event.body for events in driver.appends for event in events if isinstance(event.body, LoopDone)
    ]
    assert is_manifest(results[0].result) is (size > 1_000)
