"""Large items and large results of loops: chunk by chunk."""

from typing import Any

import pytest
from msgspec import structs

from noetl.events.bodies import LoopDone, LoopIterationCompleted, LoopStarted
from noetl.kernel.net.commands import Retry
from noetl.kernel.pipeline.moves import Finish, RunTask, Wait
from noetl.kernel.references.loop_chunks import LIMITS_IN_CHUNK
from noetl.kernel.result_rules import INLINE_MAX_BYTES
from noetl.kernel.state.run_state import LoopState, RunState
from noetl.model.outcome import succeeded
from noetl.model.reference import encode_value, is_manifest, is_reference
from tests.kernel.driver import Driver, error, run
from tests.kernel.large_values import ROWS

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
    assert driver.resolve(done.result) == [{"id": number, "pad": "y" * 1_000} for number in range(1_000)]
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
    assert driver.resolve(driver.state.result)[-1] == {"n": 14_999, "text": "0123456789"}


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
    assert driver.resolve(driver.state.result) == everything


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


def in_flight(text: str) -> tuple[Driver, RunState]:
    """An execution whose one run has begun all its iterations."""
    driver = Driver(text).start()
    run_state = driver.claim(driver.state.ready.first)
    while not isinstance(move := driver.advance(run_state), Wait):
        driver.report(run_state, *(move.begins if isinstance(move, RunTask) else [move.body]))  # type: ignore[union-attr]  # nothing ends yet
    return driver, run_state


def bytes_without_gap(loop: LoopState) -> int:
    """What the loop holds that could be stored."""
    return sum(len(encode_value(result)) for result in loop.results[: loop.low - loop.base])


@pytest.mark.parametrize("forgets", [False, True])
def test_what_waited_behind_a_gap_is_stored_when_the_gap_is_closed(*, forgets: bool) -> None:
    text = '- step: start\n  loop: {in: "{{ range(120) | list }}", iterator: n, spec: {mode: parallel, max_in_flight: 120}}\n  tool: [{t: {kind: python, code: "1"}}]\n'
    driver, run_state = in_flight(text)
    assert run_state.loop is not None
    for block in range(0, 120, 40):
        for index in (*range(block + 2, block + 40), block, block + 1):
            driver.report(
                run_state, driver.judge(run_state, index, succeeded({"n": index, "pad": "y" * 10_000}))
            )
            driver.move(run_state)
            assert bytes_without_gap(run_state.loop) <= INLINE_MAX_BYTES * LIMITS_IN_CHUNK, index
            if forgets:  # as after a restart
                driver.state.pending_effects.loop_bytes.clear()
        assert run_state.loop.base == block + 40, "all of the block is stored"
    driver.work(run_state)
    assert [result["n"] for result in driver.resolve(driver.state.result)] == list(range(120))


def test_a_loop_that_is_opened_again_stores_what_waits_behind_its_new_gaps() -> None:
    text = '- step: start\n  loop: {in: "{{ range(40) | list }}", iterator: n, spec: {mode: parallel, max_in_flight: 40}}\n  tool: [{t: {kind: python, code: "1"}}]\n'
    driver, run_state = in_flight(text)
    for index in (1, 3, *range(4, 40), 0, 2):
        outcome = error() if index in {1, 3} else succeeded("y" * 10_000)
        driver.report(run_state, driver.judge(run_state, index, outcome))
        driver.move(run_state)
    driver.work(run_state)
    assert driver.status == "failed"
    driver.script["t"] = "again"
    driver.submit(Retry())
    run_state = driver.claim(run_state.id)
    while run_state.loop is not None and run_state.loop.low < 40:
        driver.move(run_state)
    assert run_state.loop is not None
    assert (run_state.loop.base, run_state.loop.results) == (40, []), "all of it is stored"
