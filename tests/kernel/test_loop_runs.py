"""A pipeline over a collection."""

import json
from typing import Any

import pytest

from noetl.events.bodies import (
    LoopDone,
    LoopIterationCompleted,
    LoopIterationStarted,
    LoopStarted,
    StepFailed,
)
from noetl.kernel.pipeline.interpreter import advance
from noetl.kernel.pipeline.moves import Record, RunTask, Wait
from noetl.kernel.pipeline.policy import judge
from noetl.kernel.state.reducers import combine
from noetl.model.errors import ExpressionError
from noetl.model.outcome import succeeded
from tests.kernel.driver import Driver, error, run


def loop(spec: str = "", task: str = "", items: str = "[3, 4, 5]", after: str = "") -> str:
    return f"""
- step: start
  loop: {{in: "{{{{ {items} }}}}", iterator: item, spec: {{{spec}}}}}
  tool: [{{t: {{kind: python, code: "1", args: {{n: "{{{{ iter.item }}}}"}}{task}}}}}]
{after}
""".lstrip().replace("\n\n", "\n")


def doubled(call: RunTask) -> Any:
    return call.args["n"] * 2


@pytest.mark.spec("000 §7.3")
@pytest.mark.spec("000 §4.3 (3)")
def test_all_iterations_run_and_the_loop_is_done() -> None:
    driver = run(loop(), {"t": doubled})
    (done,) = driver.bodies(LoopDone)
    assert (done.total, done.succeeded, done.failed, done.result) == (3, 3, 0, [6, 8, 10])
    assert driver.state.result == [6, 8, 10]
    assert "StepDone" not in driver.names


@pytest.mark.spec("000 §7.1")
def test_each_iteration_has_its_own_scope() -> None:
    text = """
- step: start
  loop: {in: "{{ ['a', 'b'] }}", iterator: item}
  tool:
    - s: {kind: noop, args: {seen: "{{ iter.mine | default('none') }}"}, spec: {policy: {rules: [{when: true, then: {do: continue, set_iter: {mine: "{{ item }}"}}}]}}}
    - t: {kind: noop, args: {seen: "{{ s.seen }}", mine: "{{ iter.mine }}", i: "{{ iter.index }}", n: "{{ iter.count }}", first: "{{ iter.first }}", last: "{{ iter.last }}"}}
""".lstrip()
    assert run(text).state.result == [
        {"seen": "none", "mine": "a", "i": 0, "n": 2, "first": True, "last": False},
        {"seen": "none", "mine": "b", "i": 1, "n": 2, "first": False, "last": True},
    ]


@pytest.mark.parametrize(
    ("items", "results"),
    [
        ("[]", []),
        ("{'a': 1}", [{"key": "a", "value": 1}]),
        ("'[1, 2]'", [1, 2]),
        ("range(3) | list", [0, 1, 2]),
    ],
)
def test_what_a_loop_runs_over(items: str, results: list[Any]) -> None:
    driver = run(loop(items=items), {"t": lambda call: call.args["n"]})
    assert driver.state.result == results
    assert driver.bodies(LoopStarted)[0].total == len(results)


@pytest.mark.parametrize("items", ["5", "'text'", "nothing"])
def test_anything_else_is_an_error(items: str) -> None:
    driver = run(loop(items=items))
    assert driver.error.kind == "expression"


def test_fail_fast_starts_nothing_new_and_publishes_no_loop_done() -> None:
    driver = run(loop(), {"t": [1, error("sql", "bad"), 3]})
    assert len(driver.calls) == 2
    (failure,) = driver.bodies(StepFailed)
    assert (failure.error.kind, failure.error.details["index"], failure.task) == ("iteration_failed", 1, "t")
    assert "LoopDone" not in driver.names
    assert [body.status for body in driver.bodies(LoopIterationCompleted)] == ["success", "error"]


def test_best_effort_runs_all_and_leaves_none_in_place() -> None:
    after = '  next: {arcs: [{step: b, args: {n: "{{ event.loop.failed }}", first: "{{ event.loop.failures[0].index }}"}}]}\n- step: b\n  tool: {kind: noop, args: {n: "{{ args.n }}", first: "{{ args.first }}"}}'
    driver = run(loop("policy: {failure: {mode: best_effort}}", after=after), {"t": [1, error(), 3]})
    assert driver.bodies(LoopDone)[0].result == [1, None, 3]
    assert driver.state.status == "completed"
    assert driver.state.result == {"n": 1, "first": 1}


def test_break_ends_the_iteration_and_not_the_loop() -> None:
    task = ', spec: {policy: {rules: [{when: "{{ iter.index == 1 }}", then: {do: break}}]}}'
    assert run(loop(task=task), {"t": doubled}).state.result == [6, 8, 10]


def test_a_sequential_loop_sees_what_earlier_iterations_wrote() -> None:
    task = ', set: {ctx.sum: "{{ (ctx.sum | default(0)) + iter.item }}"}'
    driver = run(loop(task=task))
    assert driver.ctx == {"sum": 12}


@pytest.mark.spec("000 §7.2 (1)")
def test_a_parallel_loop_keeps_to_max_in_flight_and_the_window() -> None:
    driver = Driver(loop("mode: parallel, max_in_flight: 2, window: 3", items="range(5) | list")).start()
    state = driver.claim(driver.state.ready.first)
    flying: list[RunTask] = []

    def take_off() -> None:
        while not isinstance(move := advance(state, driver.now), Wait):
            if isinstance(move, RunTask):
                flying.append(move)
                driver.report(state, *move.begins)
            elif isinstance(move, Record):
                driver.report(state, move.body)

    take_off()
    assert [call.iteration for call in flying] == [0, 1]
    for _ in range(3):  # the later one is quick, the first one hangs
        call = flying.pop()
        driver.report(state, judge(state, call.iteration, succeeded(1), driver.now))
        take_off()
        if len(flying) == 1:
            break
    assert [body.index for body in driver.bodies(LoopIterationStarted)] == [0, 1, 2]


def test_max_in_flight_may_be_an_expression_and_is_recorded() -> None:
    driver = run(loop('mode: parallel, max_in_flight: "{{ 1 + 1 }}"'), {"t": doubled})
    assert driver.bodies(LoopStarted)[0].max_in_flight == 2
    assert driver.state.result == [6, 8, 10]


@pytest.mark.parametrize(
    ("reducer", "base", "reduced"),
    [
        ("sum", 100, 112),
        ("sum", None, 12),
        ("count", 1, 4),
        ("min", 10, 3),
        ("max", 1, 5),
        ("append", [0], [0, 3, 4, 5]),
        ("union", [4], [4, 3, 5]),
        ("first", None, 3),
        ("last", 9, 5),
    ],
)
@pytest.mark.parametrize("mode", ["sequential", "parallel"])
@pytest.mark.spec("000 §7.2 (2)")
def test_reducers_combine_in_index_order_onto_the_value_at_the_end(
    reducer: str, base: Any, reduced: Any, mode: str
) -> None:
    task = ', set: {ctx.out: "{{ iter.item }}"}'
    ctx = {} if base is None else {"out": base}
    driver = run(loop(f"mode: {mode}, reduce: {{out: {reducer}}}", task), ctx=ctx)
    assert driver.ctx == {"out": reduced}
    assert [patch.value for patch in driver.bodies(LoopDone)[0].patches] == [reduced]


@pytest.mark.parametrize(
    ("reducer", "base", "writes", "reduced"),
    [
        ("union", None, [1, True, 1.0, "1", 0, False, None, ""], [1, True, "1", 0, False, None, ""]),
        ("union", [True, 0], [1, False, True], [True, 0, 1, False]),
        ("union", None, [[[1], [True], [1.0]]], [[1], [True]]),
        ("union", None, [{"x": 1}, {"x": True}, {"x": 1.0}, {"y": 1}], [{"x": 1}, {"x": True}, {"y": 1}]),
        ("union", None, [{"x": [0]}, {"x": [False]}, {"x": [0]}], [{"x": [0]}, {"x": [False]}]),
        ("union", None, [[[]], {}, [[]]], [[], {}]),
        ("union", [2, 2], [1, 2], [2, 2, 1]),
        ("min", None, [1.0, 1], 1.0),
        ("max", 1, [1.0], 1),
        ("max", None, ["9", "10"], "9"),
        ("first", True, [1, True], 1),
        ("last", 0, [1, False], False),
        ("append", [True], [1, [1]], [True, 1, [1]]),
        ("concat", [True], [[1], [], [[1]]], [True, 1, [1]]),
        ("merge", {"x": True}, [{"x": 1}, {"y": {"a": 1}}, {"y": {"b": 2}}], {"x": 1, "y": {"b": 2}}),
        ("count", 1, [None, False, 0], 4),
    ],
)
def test_reducers_tell_true_from_1_and_a_number_from_no_other_way_to_write_it(
    reducer: str, base: Any, writes: list[Any], reduced: Any
) -> None:
    # As text: for Python 1 and true are equal.
    assert json.dumps(combine(reducer, base, writes)) == json.dumps(reduced)


@pytest.mark.parametrize("values", [[True], [1, False], ["1"], [None]])
@pytest.mark.parametrize("base", [None, 1])
def test_what_is_no_number_has_no_sum(base: Any, values: list[Any]) -> None:
    with pytest.raises(ExpressionError, match="reducer `sum`"):
        combine("sum", base, values)


def test_lists_are_concatenated_and_mappings_merged() -> None:
    task = ', set: {ctx.l: "{{ [iter.item, 0] }}", run.m: "{{ {iter.index | string: iter.item} }}"}'
    after = '  next: {arcs: [{step: b, args: {m: "{{ run.m }}"}}]}\n- step: b\n  tool: {kind: noop, args: {m: "{{ args.m }}"}}'
    driver = run(loop("mode: parallel, reduce: {ctx.l: concat, run.m: merge}", task, after=after))
    assert driver.ctx == {"l": [3, 0, 4, 0, 5, 0]}
    assert driver.state.result == {"m": {"0": 3, "1": 4, "2": 5}}


def test_failed_iterations_contribute_nothing_and_a_failed_loop_publishes_nothing() -> None:
    rules = ', spec: {policy: {rules: [{when: "{{ outcome.status == \'ok\' }}", then: {do: continue, set_ctx: {out: "{{ iter.item }}"}}}, {else: {then: {do: fail, set_ctx: {out: 1000}}}}]}}'
    best = run(
        loop("reduce: {out: sum}, policy: {failure: {mode: best_effort}}", rules), {"t": [1, error(), 1]}
    )
    assert best.ctx == {"out": 8}
    fast = run(loop("reduce: {out: sum}", rules), {"t": [1, error(), 1]})
    assert fast.ctx == {}


def test_an_iteration_reads_the_base_plus_its_own() -> None:
    text = """
- step: start
  loop: {in: "{{ [1, 2] }}", iterator: item, spec: {mode: parallel, reduce: {total: sum}}}
  tool:
    - a: {kind: noop, set: {ctx.total: "{{ iter.item }}"}}
    - b: {kind: noop, args: {total: "{{ ctx.total }}"}}
""".lstrip()
    driver = run(text, ctx={"total": 10})
    assert driver.state.result == [{"total": 11}, {"total": 12}]
    assert driver.ctx == {"total": 13}


def test_values_that_a_reducer_cannot_combine_fail_the_step() -> None:
    driver = run(loop("reduce: {out: sum}", ", set: {ctx.out: \"{{ 'x' }}\"}"))
    assert driver.error.details["cause"]["kind"] == "expression"
    assert "reducer `sum`" in driver.error.message


def test_retries_count_for_each_iteration() -> None:
    task = ", spec: {policy: {rules: [{when: \"{{ outcome.status == 'error' }}\", then: {do: retry, attempts: 2}}]}}"
    driver = run(loop(task=task), {"t": [error(), 1, error(), 2, 3]})
    assert driver.state.result == [1, 2, 3]
