"""What is fetched for tasks and policies, and what is not."""

import pytest

from noetl.events.bodies import LoopDone
from noetl.kernel.pipeline.interpreter import advance
from noetl.kernel.pipeline.moves import Fetch, RunTask
from noetl.kernel.pipeline.policy import judge
from noetl.kernel.references.resolve import Unfetched
from noetl.model.outcome import succeeded
from noetl.model.reference import is_manifest
from tests.kernel.driver import Driver, run
from tests.kernel.large_values import PAGE, ROWS, two


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
    driver.report(state, *driver.advance(state).begins)  # type: ignore[union-attr]  # a task is next
    assert isinstance(judge(state, 0, succeeded(1), driver.now, fetched={}), Fetch)
    with pytest.raises(Unfetched):
        judge(state, 0, succeeded(1), driver.now)
    assert driver.judge(state, 0, succeeded(1)).do == "break"
