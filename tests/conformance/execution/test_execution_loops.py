"""Loops (000 §4.3, §7; 001 §6.6; 002 §3)."""

import pytest

from noetl import PlaybookInvalid
from noetl.kernel.net.commands import Signal
from tests.conformance.execution.conformance_engine import Engine, LiveConversation


def loop(
    spec: str = "", task: str = '{kind: noop, args: {n: "{{ iter.item }}"}}', *, items: str = "[1, 2, 3]"
) -> str:
    return f"""
- step: start
  loop:
    in: {items}
    iterator: item
    {spec}
  tool:
  - {task}
"""


MODES = pytest.mark.parametrize("mode", ["sequential", "parallel"])


def spec(mode: str, more: str = "") -> str:
    return f"spec: {{mode: {mode}{more}}}"


@pytest.mark.spec("000 §4.3 (3)")
@pytest.mark.spec("000 §7.1")
@pytest.mark.spec("001 §6.6")
@MODES
@pytest.mark.spec("000 §12")
def test_each_element_has_an_iteration_of_its_own(engine: Engine, mode: str) -> None:
    task = """{kind: noop, args: {item: "{{ iter.item }}", bare: "{{ item }}", at: "{{ iter.index }}",
      of: "{{ iter.count }}", first: "{{ iter.first }}", last: "{{ iter.last }}"}}"""
    ran = engine(loop(spec(mode), task, items="[a, b, c]"))
    assert ran.result == [
        {"item": item, "bare": item, "at": index, "of": 3, "first": index == 0, "last": index == 2}
        for index, item in enumerate("abc")
    ]


@pytest.mark.spec("000 §7.1")
@MODES
@pytest.mark.parametrize("name", ["run", "steps", "joined"])
def test_an_iterator_may_have_the_name_of_a_namespace(engine: Engine, mode: str, name: str) -> None:
    """In the tasks the name is the item; before and after them it is the namespace."""
    ran = engine(
        f"""
- step: start
  tool: {{kind: noop, args: {{list: [{{n: 1}}, {{n: 2}}]}}}}
  next: {{arcs: [{{step: sweep}}]}}
- step: sweep
  spec: {{policy: {{join: all}}}}
  loop:
    in: "{{{{ steps.start.result.list if joined | length == 1 else run.nothing }}}}"
    iterator: {name}
    {spec(mode, ", reduce: {run.total: sum}")}
  tool:
  - name: add
    kind: noop
    args: {{bare: "{{{{ {name}.n }}}}", whole: "{{{{ {name} }}}}", named: "{{{{ iter.{name}.n }}}}", list: "{{{{ start.list | length }}}}"}}
    set: {{run.total: "{{{{ {name}['n'] + outcome.result.bare }}}}"}}
    spec: {{policy: {{rules: [{{when: "{{{{ {name}.n > 5 }}}}", then: {{do: fail}}}}, {{else: {{then: {{do: continue}}}}}}]}}}}
  next: {{arcs: [{{step: end, args: {{total: "{{{{ run.total }}}}", status: "{{{{ steps.start.status }}}}", gathered: "{{{{ joined | length }}}}"}}}}]}}
- step: end
  tool: {{kind: noop, args: {{all: "{{{{ args }}}}", items: "{{{{ sweep }}}}"}}}}
"""
    )
    assert ran.result == {
        "all": {"total": 6, "status": "completed", "gathered": 1},
        "items": [{"bare": n, "whole": {"n": n}, "named": n, "list": 2} for n in (1, 2)],
    }


ISOLATED = """{name: mark, kind: noop, args: {before: "{{ iter.mine | default('none') }}"}, set: {iter.mine: "{{ iter.item }}"}}
  - {name: see, kind: noop, args: {before: "{{ mark.before }}", mine: "{{ iter.mine }}"}}"""


@pytest.mark.spec("000 §7.1")
@pytest.mark.spec("000 §7.2 (1)")
@pytest.mark.spec("002 §3 (3)")
@MODES
def test_what_an_iteration_writes_is_its_own(engine: Engine, mode: str) -> None:
    ran = engine(loop(spec(mode), ISOLATED))
    assert ran.result == [{"before": "none", "mine": item} for item in (1, 2, 3)]


@pytest.mark.spec("000 §7.3")
@pytest.mark.spec("000 §11.2")
@MODES
def test_a_loop_ends_with_loop_done_alone(engine: Engine, mode: str) -> None:
    ran = engine(loop(spec(mode)))
    loop_events = [event for event in ran.events if event["entity"] == "loop"]
    assert {event["source"] for event in loop_events} == {"worker"}
    assert [event["name"] for event in loop_events].count("LoopIterationStarted") == 3
    assert [event["name"] for event in loop_events].count("LoopIterationCompleted") == 3
    assert (loop_events[0]["name"], loop_events[-1]["name"]) == ("LoopStarted", "LoopDone")
    assert not ran.of("StepDone", "StepFailed")
    done = loop_events[-1]["data"]
    assert (done["total"], done["succeeded"], done["failed"]) == (3, 3, 0)
    assert done["result"] == ran.result == [{"n": 1}, {"n": 2}, {"n": 3}]


@pytest.mark.spec("000 §7.3")
@MODES
@pytest.mark.parametrize("items", ["[]", "{}", '"{{ [] }}"'])
def test_an_empty_loop_is_done_at_once(engine: Engine, mode: str, items: str) -> None:
    ran = engine(loop(spec(mode), items=items))
    assert (ran.status, ran.result, ran.tasks()) == ("completed", [], [])
    assert ran.data("LoopDone")[0]["total"] == 0


@pytest.mark.spec("000 §2.3")
@pytest.mark.parametrize(
    ("items", "seen"),
    [
        ('"{{ workload.list }}"', [1, {"a": 2}]),
        ('"{{ workload.map }}"', [{"key": "x", "value": 1}, {"key": "y", "value": 2}]),
        ('"{{ workload.text }}"', [5, 6]),
        ('"{{ range(3) }}"', [0, 1, 2]),
        ("[1, '{{ workload.text }}']", [1, "[5, 6]"]),
    ],
)
def test_what_a_loop_runs_over(engine: Engine, items: str, seen: list[object]) -> None:
    text = loop(items=items).replace(
        "\n- step", "workload: {list: [1, {a: 2}], map: {x: 1, y: 2}, text: '[5, 6]'}\nworkflow:\n- step", 1
    )
    assert [iteration["n"] for iteration in engine(text).result] == seen


@pytest.mark.spec("000 §2.3")
@pytest.mark.parametrize("items", ['"{{ 5 }}"', '"{{ ctx.nothing }}"', "\"{{ 'words' }}\""])
def test_what_is_no_collection_fails_the_step(engine: Engine, items: str) -> None:
    ran = engine(loop(items=items))
    assert (ran.status, ran.error["kind"], ran.error["step"]) == ("failed", "expression", "start")


@pytest.mark.spec("000 §2.3")
@pytest.mark.spec("000 §4.3 (2)")
def test_sequential_is_the_default_and_strict(engine: Engine) -> None:
    ran = engine(
        loop(
            task='{kind: noop, args: {sum: "{{ ctx.sum | default(0) + item }}"}, set: {ctx.sum: "{{ outcome.result.sum }}"}}'
        )
    )
    assert [iteration["sum"] for iteration in ran.result] == [1, 3, 6]
    assert ran.ctx == {"sum": 6}
    names = [event["name"] for event in ran.of("LoopIterationStarted", "LoopIterationCompleted")]
    assert names == ["LoopIterationStarted", "LoopIterationCompleted"] * 3


def most_at_once(events: list[dict[str, object]]) -> int:
    open_now = highest = 0
    for event in events:
        open_now += {"LoopIterationStarted": 1, "LoopIterationCompleted": -1}.get(str(event["name"]), 0)
        highest = max(highest, open_now)
    return highest


@pytest.mark.spec("000 §2.3")
@pytest.mark.parametrize(
    ("mode", "more", "most"),
    [("sequential", "", 1), ("parallel", ", max_in_flight: 2", 2), ("parallel", "", 6)],
)
def test_parallel_keeps_to_max_in_flight(engine: Engine, mode: str, more: str, most: int) -> None:
    """Iterations wait for a signal each, which comes when as many are open as may be."""

    async def go(talk: LiveConversation) -> None:
        await talk.wait_for("RunSuspended", most)
        for _ in range(6):
            await talk.local.submit(talk.id, Signal("go"))

    ran = engine.run_with(loop(spec(mode, more), "{kind: wait, signal: go}", items="[1, 2, 3, 4, 5, 6]"), go)
    assert ran.status == "completed"
    assert most_at_once(ran.events) == most
    assert ran.data("LoopStarted")[0]["max_in_flight"] == (10 if (mode, more) == ("parallel", "") else most)


@pytest.mark.spec("000 §7.1")
def test_results_are_in_the_order_of_the_elements_however_they_end(engine: Engine) -> None:
    async def backwards(talk: LiveConversation) -> None:
        await talk.wait_for("RunSuspended", 3)
        for done, item in enumerate("cab", start=1):
            await talk.local.submit(talk.id, Signal(item, item))
            await talk.wait_for("LoopIterationCompleted", done)

    waiting = '{kind: wait, signal: "{{ item }}"}\n  - {kind: noop, args: {n: "{{ _prev }}"}}'
    ran = engine.run_with(loop(spec("parallel"), waiting, items="[a, b, c]"), backwards)
    assert ran.result == [{"n": "a"}, {"n": "b"}, {"n": "c"}]
    assert [data["index"] for data in ran.data("LoopIterationCompleted")] == [2, 0, 1]


@pytest.mark.spec("000 §7.2 (2)")
@pytest.mark.spec("001 §6.6")
def test_set_ctx_in_a_parallel_loop_is_refused_without_a_reducer(engine: Engine) -> None:
    with pytest.raises(PlaybookInvalid) as caught:
        engine(loop(spec("parallel"), "{kind: noop, set: {ctx.n: 1}}"))
    assert [problem.code for problem in caught.value.problems] == ["parallel-set-ctx"]
    assert engine.command_output("executions", "list")["executions"] == []


@pytest.mark.spec("000 §7.2 (2)")
@MODES
@pytest.mark.parametrize(
    ("reducer", "value", "reduced"),
    [
        ("sum", "{{ item }}", 10 + 6),
        ("count", "{{ item }}", 10 + 3),
        ("min", "{{ item }}", 1),
        ("max", "{{ item }}", 10),
        ("first", "{{ item }}", 1),
        ("last", "{{ item }}", 3),
    ],
)
def test_reducers_make_one_value_of_all(
    engine: Engine, mode: str, reducer: str, value: str, reduced: object
) -> None:
    task = f'{{kind: noop, set: {{ctx.k: "{value}"}}}}'
    ran = engine(loop(spec(mode, f", reduce: {{k: {reducer}}}"), task), ctx={"k": 10})
    assert ran.ctx == {"k": reduced}
    assert ran.data("LoopDone")[0]["patches"] == [{"scope": "ctx", "path": ["k"], "value": reduced}]


@pytest.mark.spec("000 §7.2 (2)")
@pytest.mark.parametrize(
    ("reducer", "value", "reduced"),
    [
        ("append", "{{ item }}", [1, 2, 3]),
        ("concat", "{{ [item, 0] }}", [1, 0, 2, 0, 3, 0]),
        ("union", "{{ [item, 1] }}", [1, 2, 3]),
        ("merge", "{{ {'k' ~ item: item} }}", {"k1": 1, "k2": 2, "k3": 3}),
    ],
)
def test_reducers_of_collections_keep_the_order_of_the_elements(
    engine: Engine, reducer: str, value: str, reduced: object
) -> None:
    task = f'{{kind: wait, seconds: "{{{{ (3 - item) / 100 }}}}", set: {{ctx.k: "{value}"}}}}'
    assert engine(loop(spec("parallel", f", reduce: {{k: {reducer}}}"), task)).ctx == {"k": reduced}


PICKY = '{name: pick, kind: noop, args: {n: "{{ 6 // (item - 2) }}"}%s}'


@pytest.mark.spec("000 §6.4")
@pytest.mark.spec("000 §7.3")
def test_fail_fast_starts_nothing_new_and_fails_the_step(engine: Engine) -> None:
    ran = engine(loop(spec("sequential"), PICKY % ""))
    assert (ran.status, ran.error["kind"]) == ("failed", "iteration_failed")
    assert [data["status"] for data in ran.data("LoopIterationCompleted")] == ["success", "error"]
    assert not ran.of("LoopDone")
    assert (ran.data("StepFailed")[0]["task"], ran.data("StepFailed")[0]["error"]["index"]) == ("pick", 1)


@pytest.mark.spec("000 §7.3")
@MODES
@pytest.mark.parametrize("level", ["loop", "step"])
def test_best_effort_runs_all_and_says_what_failed(engine: Engine, mode: str, level: str) -> None:
    failure = "policy: {failure: {mode: best_effort}}"
    text = loop(spec(mode, f", {failure}" if level == "loop" else ""), PICKY % "")
    if level == "step":
        text = text.replace("  loop:", f"  spec: {{{failure}}}\n  loop:")
    text += "  next: {arcs: [{step: after, args: {loop: '{{ event.loop }}', result: '{{ event.result }}'}}]}\n- step: after\n  tool: {kind: noop, args: {got: '{{ args }}'}}\n"
    ran = engine(text)
    assert ran.status == "completed"
    got = ran.result["got"]
    assert got["result"] == [{"n": -6}, None, {"n": 6}]
    assert (got["loop"]["total"], got["loop"]["succeeded"], got["loop"]["failed"]) == (3, 2, 1)
    assert [failure["index"] for failure in got["loop"]["failures"]] == [1]


@pytest.mark.spec("000 §7.2 (2)")
def test_a_failed_iteration_gives_nothing_to_reducers_and_a_failed_loop_publishes_nothing(
    engine: Engine,
) -> None:
    task = '{kind: noop, set: {ctx.k: "{{ item }}"}}\n  - ' + PICKY % ""
    reduce = ", reduce: {k: sum}"
    effort = engine(loop(spec("parallel", reduce + ", policy: {failure: {mode: best_effort}}"), task))
    fast = engine(loop(spec("parallel", reduce), task))
    assert (effort.ctx, fast.ctx, fast.status) == ({"k": 4}, {}, "failed")


@pytest.mark.spec("000 §6.4")
@MODES
def test_break_ends_the_iteration_and_not_the_loop(engine: Engine, mode: str) -> None:
    task = """{name: one, kind: noop, args: {n: "{{ item }}"}, spec: {policy: {rules: [{when: "{{ item == 2 }}", then: {do: break}}]}}}
  - {name: two, kind: noop, args: {n: "{{ item * 10 }}"}}"""
    ran = engine(loop(spec(mode), task))
    assert ran.result == [{"n": 10}, {"n": 2}, {"n": 30}]
    assert {data["status"] for data in ran.data("LoopIterationCompleted")} == {"success"}


@pytest.mark.spec("000 §7.1")
@pytest.mark.spec("001 §9.2")
@MODES
def test_pagination_within_each_iteration(engine: Engine, mode: str) -> None:
    task = """{name: init, kind: noop, set: {iter.page: 1, iter.got: []}}
  - {name: fetch, kind: noop, args: {row: "{{ item }}.{{ iter.page }}"}, set: {iter.got: "{{ iter.got + [outcome.result.row] }}"}}
  - name: paginate
    kind: noop
    spec:
      policy:
        rules:
        - {when: "{{ iter.page < item }}", then: {do: jump, to: fetch, set_iter: {page: "{{ iter.page + 1 }}"}}}
        - else: {then: {do: continue}}
  - {name: rows, kind: noop, args: {rows: "{{ iter.got }}"}}"""
    ran = engine(loop(spec(mode), task))
    assert [iteration["rows"] for iteration in ran.result] == [
        [f"{item}.{page}" for page in range(1, item + 1)] for item in (1, 2, 3)
    ]


@pytest.mark.spec("000 §7.1")
def test_a_collection_is_evaluated_once(engine: Engine) -> None:
    ran = engine(
        loop(task='{kind: noop, set: {ctx.list: "{{ ctx.list + [9] }}"}}', items='"{{ ctx.list }}"'),
        ctx={"list": [1, 2]},
    )
    assert ran.ctx == {"list": [1, 2, 9, 9]}
    assert ran.data("LoopStarted")[0]["items"] == [1, 2]
