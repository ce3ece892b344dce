"""Inside a step: outcomes, rules, directives."""

import itertools
import json

import pytest
from msgspec import structs

from noetl.events.bodies import RunSuspended, StepFailed, TaskProcessed, TaskStarted
from noetl.events.event import Event
from noetl.kernel.net.commands import Request
from noetl.kernel.net.decider import handle
from noetl.kernel.net.execution_request import DECIDER
from noetl.kernel.pipeline.policy import SECOND
from noetl.kernel.state.execution_state import HOLDING_BACK
from noetl.kernel.state.replay import dump_state, encode_run, load_run, load_state, replay
from noetl.kernel.state.run_state import ExecutionInputs
from noetl.model.outcome import Outcome, succeeded
from tests.kernel.driver import Driver, error, run


def pipeline(tasks: str, after: str = "") -> str:
    return f"- step: start\n  tool:\n{tasks}{after}"


def policy(rules: str, extra: str = "") -> str:
    return pipeline(
        "    - first: {kind: python, code: '1', spec: {policy: {rules: [" + rules + "]" + extra + "}}}\n"
        "    - second: {kind: python, code: '1'}\n"
        "    - third: {kind: python, code: '1'}\n"
    )


@pytest.mark.spec("000 §6.3 (3)")
def test_without_a_policy_success_continues_and_an_error_fails() -> None:
    text = pipeline("    - a: {kind: python, code: '1'}\n    - b: {kind: python, code: '1'}\n")
    assert run(text).ran == ["a", "b"]
    failed = run(text, {"a": error()})
    assert (failed.ran, failed.state.status) == (["a"], "failed")


@pytest.mark.spec("000 §6.3 (1)")
def test_the_first_matching_rule_wins() -> None:
    text = policy('{when: "{{ outcome.result > 5 }}", then: {do: break}}, {when: true, then: {do: continue}}')
    assert run(text, {"first": 9}).ran == ["first"]
    driver = run(text, {"first": 1})
    assert driver.ran == ["first", "second", "third"]
    assert driver.bodies(TaskProcessed)[0].rule == 1


@pytest.mark.spec("000 §6.3 (2)")
def test_else_applies_if_no_rule_matches() -> None:
    driver = run(policy("{when: false, then: {do: continue}}, {else: {then: {do: break}}}"))
    assert driver.ran == ["first"]
    assert driver.bodies(TaskProcessed)[0].rule == -1


@pytest.mark.spec("000 §6.3 (4)")
def test_no_match_and_no_else_continues_even_after_an_error() -> None:
    driver = run(policy("{when: false, then: {do: break}}"), {"first": error()})
    assert driver.ran == ["first", "second", "third"]
    assert driver.state.status == "completed"


def test_on_unmatched_fail_stops_errors() -> None:
    driver = run(policy("{when: false, then: {do: break}}", ", on_unmatched: fail"), {"first": error()})
    assert (driver.ran, driver.state.status) == (["first"], "failed")


@pytest.mark.spec("000 §6.4")
def test_jump_sets_the_program_counter_and_starts_a_new_visit() -> None:
    text = pipeline(
        "    - a: {kind: python, code: '1'}\n"
        "    - b: {kind: python, code: '1', spec: {policy: {rules: [{when: \"{{ outcome.result < 2 }}\", then: {do: jump, to: a}}]}}}\n"
    )
    driver = run(text, {"b": [0, 1, 2]})
    assert driver.ran == ["a", "b"] * 3
    assert [body.visit for body in driver.bodies(TaskStarted)] == [1, 1, 2, 2, 3, 3]


def test_endless_jumps_are_bounded() -> None:
    text = pipeline(
        "    - a: {kind: python, code: '1', spec: {max_transitions: 10, policy: {rules: [{when: \"{{ ctx.stop is not defined }}\", then: {do: jump, to: a}}]}}}\n"
    )
    driver = run(text)
    assert len(driver.calls) == 11
    assert driver.error.kind == "jump_limit"


RETRY = "{when: \"{{ outcome.status == 'error' }}\", then: {do: retry, %s}}"


@pytest.mark.spec("000 §6.4")
@pytest.mark.spec("001 §9.1")
def test_retry_counts_all_tries_and_fails_with_the_last_error() -> None:
    driver = run(
        policy(RETRY % "attempts: 3"),
        {"first": [error("timeout", "one"), error("timeout", "two"), error("sql", "three")]},
    )
    failure = driver.state.error
    assert failure is not None
    assert driver.ran == ["first"] * 3
    assert (failure.kind, failure.message) == ("sql", "three")
    assert failure.details["exhausted"] is True
    assert failure.details["attempts"] == 3
    assert [body.attempt for body in driver.bodies(TaskStarted)] == [1, 2, 3]


def test_a_retry_that_succeeds_goes_on() -> None:
    driver = run(policy(RETRY % "attempts: 3"), {"first": [error(), 5]})
    assert driver.ran == ["first", "first", "second", "third"]


@pytest.mark.parametrize(
    ("options", "waits"),
    [
        ("delay: 2", [2, 2, 2]),
        ("delay: 1, backoff: linear", [1, 2, 3]),
        ("delay: 1, backoff: exponential", [1, 2, 4]),
        ("delay: 1, backoff: exponential, max_delay: 3", [1, 2, 3]),
        ('delay: "{{ outcome.error.wait }}"', [3, 3, 3]),
    ],
)
@pytest.mark.spec("000 §6.2 (2)")
def test_the_wait_before_the_next_try(options: str, waits: list[int]) -> None:
    driver = run(policy(RETRY % f"attempts: 4, {options}"), {"first": error(wait="3")})
    times = [event.ts for event in driver.events if isinstance(event.body, TaskStarted)]
    assert [round((b - a) / SECOND) for a, b in itertools.pairwise(times)] == waits


def test_a_date_is_a_delay() -> None:
    driver = run(
        policy(RETRY % 'attempts: 2, delay: "{{ outcome.error.at }}"'),
        {"first": error(at="Tue, 14 Nov 2023 22:14:20 GMT")},
    )
    assert driver.bodies(TaskProcessed)[0].retry_at == 1_700_000_060 * SECOND


def test_jitter_is_the_same_whenever_it_is_asked() -> None:
    text = policy(RETRY % "attempts: 3, delay: 1, jitter: 1")
    first, second = (run(text, {"first": error()}).bodies(TaskProcessed) for _ in range(2))
    assert [body.retry_at for body in first] == [body.retry_at for body in second]


def test_jitter_differs_between_tries_tasks_iterations_and_runs_and_keeps_to_its_bound() -> None:
    rules = "spec: {policy: {rules: [{when: \"{{ outcome.status == 'error' and _attempt < 4 }}\", then: {do: retry, attempts: 9, delay: 1, jitter: 2}}, {else: {then: {do: continue}}}]}}"
    text = f"""
- step: start
  loop: {{in: [1, 2], iterator: item}}
  tool:
    - a: {{kind: python, code: "1", {rules}}}
    - b: {{kind: python, code: "1", {rules}}}
  next: {{arcs: [{{step: start, when: "{{{{ not args.again }}}}", args: {{again: true}}}}]}}
""".lstrip()
    driver = run(text, {"a": error(), "b": error()})
    waits = [
        (event.body.retry_at - event.ts) / SECOND
        for event in driver.events
        if isinstance(event.body, TaskProcessed) and event.body.retry_at is not None
    ]
    assert len(waits) == 2 * 2 * 2 * 3  # runs, iterations, tasks, tries
    assert len(set(waits)) == len(waits)
    assert all(1 <= wait < 3 for wait in waits)


def test_a_long_wait_suspends_the_run_and_holds_no_worker() -> None:
    driver = Driver(policy(RETRY % "attempts: 2, delay: 60"), {"first": [error(), 1]}).start()
    driver.step()
    (suspended,) = driver.bodies(RunSuspended)
    assert suspended.reason == "retry"
    assert driver.statuses == {"start": "waiting"}
    assert next(iter(driver.state.runs.values())).fence == 0
    assert driver.run().state.status == "completed"


def test_polling_that_never_ends_is_retry_exhausted() -> None:
    rule = "{when: \"{{ outcome.result.state != 'done' }}\", then: {do: retry, attempts: 2}}"
    driver = run(policy(rule), {"first": {"state": "busy"}})
    assert driver.error.kind == "retry_exhausted"


def test_a_retry_after_an_error_keeps_the_key_and_polling_gets_a_new_one() -> None:
    errors = run(policy(RETRY % "attempts: 3"), {"first": error()})
    assert len({call.idempotency_key for call in errors.calls}) == 1
    rule = "{when: true, then: {do: retry, attempts: 3}}"
    polls = run(policy(rule), {"first": 1})
    assert len({call.idempotency_key for call in polls.calls}) == 3
    each = run(
        policy(RETRY % "attempts: 3").replace("spec: {policy", "spec: {idempotency: per_attempt, policy"),
        {"first": error()},
    )
    assert len({call.idempotency_key for call in each.calls}) == 3


def test_what_was_polled_before_is_not_in_the_key_of_the_next_task_or_visit() -> None:
    """The key says what work it is. How often another task, visit or iteration was asked is no part of that."""
    rules = "spec: {policy: {rules: [{when: \"{{ outcome.result == 'busy' }}\", then: {do: retry, attempts: 9}}, {when: \"{{ outcome.result == 'back' }}\", then: {do: jump, to: a}}]}}"
    text = f"""
- step: start
  loop: {{in: [1, 2], iterator: item}}
  tool:
    - a: {{kind: python, code: "1", {rules}}}
    - b: {{kind: python, code: "1", {rules}}}
""".lstrip()
    calm = {"a": ["ok", "ok", "ok", "ok"], "b": ["back", "ok", "back", "ok"]}
    busy = {"a": ["busy", "busy", "ok", "ok", "ok", "busy", "ok"], "b": ["back", "ok", "busy", "back", "ok"]}
    keys = [
        {
            (call.started.iteration, call.started.task, call.started.visit): call.idempotency_key
            for call in reversed(run(text, script).calls)  # of a visit, its first attempt
        }
        for script in (calm, busy)
    ]
    assert keys[0] == keys[1]
    assert len(set(keys[0].values())) == len(keys[0]) == 2 * 2 * 2


def test_fail_on_success_is_kind_policy() -> None:
    driver = run(
        policy('{when: true, then: {do: fail, message: "too few: {{ outcome.result }}"}}'), {"first": 3}
    )
    failure = driver.state.error
    assert failure is not None
    assert (failure.kind, failure.message) == ("policy", "too few: 3")
    silent = run(policy("{when: true, then: {do: fail}}"), {"first": 3})
    assert "rule in line" in silent.error.message


@pytest.mark.spec("000 §6.2 (3)")
@pytest.mark.spec("003 §3.2")
def test_writes_are_made_in_order_and_seen_at_once() -> None:
    rule = '{when: true, then: {do: continue, set_iter: {c: "{{ outcome.result - 1 }}"}, set_ctx: {a: "{{ iter.c + 1 }}", b: "{{ ctx.a + 1 }}"}}}'
    driver = Driver(policy(rule), {"first": 1}).run()
    assert driver.ctx == {"a": 1, "b": 2}
    assert [(patch.scope, patch.path, patch.value) for patch in driver.bodies(TaskProcessed)[0].patches] == [
        ("iter", ("c",), 0),
        ("ctx", ("a",), 1),
        ("ctx", ("b",), 2),
    ]


def test_a_path_under_a_scalar_makes_it_a_mapping() -> None:
    driver = run(
        policy("{when: true, then: {do: continue, set_ctx: {a.b.c: 1, d: {e: 1}}}}"),
        ctx={"a": 5, "d": {"f": 2}},
    )
    assert driver.ctx == {"a": {"b": {"c": 1}}, "d": {"e": 1}}


def test_writes_stay_if_the_step_fails_later() -> None:
    driver = run(policy("{when: true, then: {do: continue, set_ctx: {a: 1}}}"), {"second": error()})
    assert (driver.state.status, driver.ctx) == ("failed", {"a": 1})


PREV = pipeline(
    "    - a: {kind: python, code: '1', spec: {policy: {rules: [{when: false, then: {do: break}}]}}}\n"
    "    - b: {kind: noop}\n"
    '    - c: {kind: noop, args: {prev: "{{ _prev }}", a: "{{ a | default(\'none\') }}", task: "{{ _task }}"}}\n'
)


@pytest.mark.spec("001 §6.3")
def test_prev_threads_results_and_labels_name_them() -> None:
    assert run(PREV, {"a": 4}).state.result == {"prev": 4, "a": 4, "task": "c"}
    assert run(PREV, {"a": error()}).state.result == {"prev": None, "a": "none", "task": "c"}


@pytest.mark.spec("001 §6.3")
def test_an_error_that_has_a_result_hands_it_on() -> None:
    answer = structs.replace(error("http_status"), result={"status": 404, "data": "gone"})
    assert run(PREV, {"a": answer}).state.result == {
        "prev": {"status": 404, "data": "gone"},
        "a": "none",
        "task": "c",
    }


def test_a_run_takes_its_rules_to_its_worker() -> None:
    driver = Driver(PREV).start()
    run_state = driver.claim(driver.state.ready.first)
    inputs = ExecutionInputs(driver.state.execution_id, {})
    load_run(driver.plan, inputs, json.loads(encode_run(run_state)))
    assert inputs.decider == DECIDER


@pytest.mark.parametrize(("decider", "prev"), [(HOLDING_BACK, None), (DECIDER, {"status": 404})])
def test_an_execution_goes_on_by_the_rules_it_began_with(decider: int, prev: object) -> None:
    answer = structs.replace(error("http_status"), result={"status": 404})
    driver = Driver(PREV, {"a": answer})
    events = handle(driver.state, Request(), driver.now)
    requested = structs.replace(events[0].body, decider=decider)
    history = [Event(1, driver.now, requested), *events[1:]]
    driver.state = replay(driver.plan, driver.state.execution_id, history)
    driver.state = load_state(driver.plan, json.loads(json.dumps(dump_state(driver.state))))
    driver.run()
    assert driver.state.result == {"prev": prev, "a": "none", "task": "c"}


def test_set_prev_overrides_prev_and_set_run_is_seen_by_arcs() -> None:
    text = pipeline(
        "    - a: {kind: noop, args: {x: 1}, spec: {policy: {rules: [{when: true, then: {do: continue, set_prev: 9, set_run: {k: 2}}}]}}}\n"
        "    - b: {kind: noop}\n",
        '  next: {arcs: [{step: c, args: {k: "{{ run.k }}", r: "{{ event.result }}"}}]}\n'
        '- step: c\n  tool: {kind: noop, args: {k: "{{ args.k }}", r: "{{ args.r }}"}}\n',
    )
    assert run(text).state.result == {"k": 2, "r": 9}


def test_task_args_lie_over_the_tokens_for_inputs_and_policy() -> None:
    text = """
- step: start
  next: {arcs: [{step: b, args: {x: 1, y: 2}}]}
- step: b
  tool:
    - t: {kind: python, code: '1', args: {x: 5}, spec: {policy: {rules: [{when: "{{ args.x == 5 and args.y == 2 }}", then: {do: continue, set_ctx: {seen: true}}}]}}}
    - u: {kind: noop, args: {x: "{{ args.x }}"}}
""".lstrip()
    driver = run(text)
    assert driver.ctx == {"seen": True}
    assert driver.state.result == {"x": 1}
    assert dict(driver.calls[0].args) == {"x": 5, "y": 2}


def test_task_level_set_applies_after_success_before_the_rules() -> None:
    text = pipeline(
        '    - a: {kind: python, code: \'1\', set: {ctx.n: "{{ outcome.result }}"}, spec: {policy: {rules: [{when: "{{ ctx.n is defined }}", then: {do: continue, set_ctx: {m: "{{ ctx.n + 1 }}"}}}]}}}\n'
    )
    assert run(text, {"a": 1}).ctx == {"n": 1, "m": 2}
    assert run(text, {"a": error()}).ctx == {}


@pytest.mark.parametrize(
    "broken",
    [
        '{when: "{{ 1 / 0 }}", then: {do: continue}}',
        '{when: true, then: {do: continue, set_ctx: {a: "{{ nothing }}"}}}',
        '{when: true, then: {do: retry, delay: "{{ outcome.nothing }}"}}',
        '{when: true, then: {do: retry, delay: "soon"}}',
    ],
)
def test_an_expression_that_raises_fails_the_pipeline(broken: str) -> None:
    loaded = Driver(policy(broken.replace('"soon"', "\"{{ 'soon' }}\""))).run()
    (failure,) = loaded.bodies(StepFailed)
    assert failure.error.kind == "expression"
    assert failure.task == "first"


def test_an_input_that_raises_fails_the_pipeline_before_the_task_starts() -> None:
    text = pipeline(
        '    - a: {kind: shell, command: "echo {{ nothing }}"}\n',
        "  next: {arcs: [{step: b, when: \"{{ event.error.kind == 'expression' }}\"}]}\n- step: b\n  tool: {kind: noop}\n",
    )
    driver = run(text)
    assert driver.state.status == "completed"
    assert driver.names.count("TaskStarted") == 1
    assert driver.statuses == {"start": "failed", "b": "completed"}


@pytest.mark.spec("000 §5 (1)")
def test_every_attempt_is_one_start_and_one_end() -> None:
    driver = run(policy(RETRY % "attempts: 3"), {"first": [error(), error(), 1]})
    assert driver.names.count("TaskStarted") == driver.names.count("TaskProcessed") == 5


def test_a_run_reads_the_ctx_pinned_when_it_was_scheduled_plus_its_own_writes() -> None:
    text = """
- step: start
  next: {spec: {mode: inclusive}, arcs: [{step: a}, {step: b}]}
- step: a
  tool: {kind: python, code: '1', set: {ctx.n: 1}}
- step: b
  tool: {kind: noop, args: {n: "{{ ctx.n | default('unset') }}"}}
""".lstrip()
    assert run(text).state.result == {"n": "unset"}


def test_timeouts_and_spec_are_given_with_the_task() -> None:
    text = pipeline(
        "    - a: {kind: python, code: '1'}\n    - b: {kind: python, code: '1', spec: {timeout: 7}}\n"
    )
    assert [call.timeout for call in run(text).calls] == [300.0, 7.0]


def test_helpers_of_a_kind_are_beside_the_result() -> None:
    outcome = Outcome(status="ok", result=1, helpers={"http": {"status": 429}})
    driver = run(policy('{when: "{{ outcome.http.status == 429 }}", then: {do: break}}'), {"first": outcome})
    assert driver.ran == ["first"]
    assert succeeded(1).status == "ok"


def test_ctx_has_a_bounded_number_of_keys() -> None:
    text = policy("{when: true, then: {do: continue, set_ctx: {one_more: 1}}}")
    driver = run(text, ctx={f"k{number}": number for number in range(1000)})
    assert "more than 1000 keys" in driver.error.message
