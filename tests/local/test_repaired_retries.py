"""`retry --playbook`: a failed execution goes on with a repaired document (semantics §10)."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from noetl.dsl.document.problem import PlaybookInvalid
from noetl.engine.history.repair import CannotRepair
from noetl.events.bodies import ExecutionRetried
from noetl.kernel.errors import Refused
from noetl.kernel.state.execution_state import STATE_FORMAT, ExecutionState
from noetl.kernel.state.replay import dump_state
from noetl.kernel.verify.verification import Verification, verify
from noetl.local import Local
from noetl.ports.store import ExecutionRecord, Snapshot
from noetl.stores.sqlite.store import SqliteStore
from tests.local.local_engine import Bench, source

TEXT = """
workflow:
- step: start
  tool: {name: first, kind: python, code: "result = 1", args: {n: [1]}}
  next: {arcs: [{step: work, when: "{{ event.name == 'step.done' }}", args: {n: "{{ event.result }}"}}]}
- step: work
  tool:
  - {name: before, kind: python, args: {n: "{{ args.n }}"}, code: "result = n + 1"}
  - {name: bad, kind: python, args: {n: "{{ before }}"}, code: "result = n / nothing"}
  - {name: last, kind: noop, args: {result: "{{ bad }}"}}
  next: {arcs: [{step: end, when: "{{ event.name == 'step.done' }}", args: {r: "{{ event.result.result }}"}}]}
- step: end
  tool: {name: end, kind: noop, args: {r: "{{ args.r }}"}}
"""
REPAIRED = TEXT.replace("n / nothing", "n * 10")


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def retry(bench: Bench, execution_id: str, text: str, file: str = "") -> ExecutionState:
    async def work(local: Local) -> ExecutionState:
        return await local.wait_for_end(await local.retry(execution_id, source=source(text, file), by="me"))

    return bench.with_local(work)


def record_of(bench: Bench, execution_id: str) -> ExecutionRecord:
    async def read(_: Local) -> ExecutionRecord:
        store = SqliteStore.at(bench.home.store)
        try:
            record = await store.execution(execution_id)
        finally:
            await store.close()
        assert record is not None
        return record

    return bench.with_local(read)


def verified(bench: Bench, state: ExecutionState) -> Verification:
    return verify(state.plan, state.execution_id, bench.events(state.execution_id))


def tasks(bench: Bench, execution_id: str) -> list[str]:
    bodies: list[Any] = [event.body for event in bench.events(execution_id)]
    return [body.task for body in bodies if type(body).__name__ == "TaskStarted"]


def test_it_goes_on_with_the_repaired_task(bench: Bench) -> None:
    failed = bench.run(TEXT)
    assert failed.status == "failed"
    done = retry(bench, failed.execution_id, REPAIRED, "/elsewhere/p.yaml")
    assert (done.execution_id, done.status, done.result) == (failed.execution_id, "completed", {"r": 20})
    assert tasks(bench, done.execution_id) == ["first", "before", "bad", "bad", "last", "end"]
    (retried,) = [
        event.body for event in bench.events(done.execution_id) if isinstance(event.body, ExecutionRetried)
    ]
    assert (retried.hash, retried.file) == (done.plan.playbook.hash, "/elsewhere/p.yaml")
    assert record_of(bench, done.execution_id).playbook == done.plan.playbook.hash


def test_what_happened_before_is_not_judged_by_the_repaired_document(bench: Bench) -> None:
    failed = bench.run(TEXT)
    before = len(bench.events(failed.execution_id))
    done = retry(bench, failed.execution_id, REPAIRED)
    verification = verified(bench, done)
    assert verification.differences == ()
    assert verification.notes == (
        f"the first {before} events came about with another playbook and are not judged",
    )


def test_an_undefined_name_and_what_follows_the_failure_can_be_repaired(bench: Bench) -> None:
    text = TEXT.replace("result = n / nothing", "result = n").replace("{{ bad }}", "{{ baad }}")
    failed = bench.run(text)
    assert failed.error is not None
    assert failed.error.kind == "expression"
    repaired = (
        text.replace("{{ baad }}", "{{ bad }}")
        + "  next: {arcs: [{step: more}]}\n- step: more\n  tool: {kind: noop}\n"
    )
    assert retry(bench, failed.execution_id, repaired).result == {"r": 2}


FRUITLESS = """
workflow:
- step: start
  next: {arcs: [{step: work}]}
- step: work
  tool: {kind: python, code: "return nothing"}
"""
ARCS = '  next: {arcs: [{step: end, args: {r: "{{ event.result }}"}}]}\n'
END = '- step: end\n  tool: {name: end, kind: noop, args: {r: "{{ args.r }}"}}\n'


def test_a_step_that_failed_without_arcs_can_be_given_some(bench: Bench) -> None:
    failed = bench.run(FRUITLESS)
    repaired = FRUITLESS.replace("return nothing", "return 3") + ARCS + END
    done = retry(bench, failed.execution_id, repaired)
    assert (done.status, done.result) == ("completed", {"r": 3})
    assert verified(bench, done).differences == ()


def test_a_step_whose_arcs_were_followed_when_it_failed_keeps_some(bench: Bench) -> None:
    failed = bench.run(FRUITLESS + ARCS + END)
    with pytest.raises(
        CannotRepair, match="step `work`, whose arcs were followed when it failed, has none in it"
    ):
        retry(bench, failed.execution_id, FRUITLESS.replace("return nothing", "return 3") + END)


def test_an_arc_that_failed_can_be_repaired(bench: Bench) -> None:
    text = TEXT.replace("n / nothing", "n").replace("event.result.result", "event.result.nothing")
    failed = bench.run(text)
    assert failed.error is not None
    assert failed.error.kind == "expression"
    done = retry(bench, failed.execution_id, text.replace("event.result.nothing", "event.result.result"))
    assert (done.status, done.result) == ("completed", {"r": 2})
    changed = text.replace("event.result.nothing", "event.result.result").replace("{{ bad }}", "{{ 1 }}")
    with pytest.raises(CannotRepair, match="task `last` of step `work`, which ended before"):
        retry(bench, bench.run(text).execution_id, changed)


def test_where_things_stand_and_what_is_said_about_them_may_change(bench: Bench) -> None:
    failed = bench.run(TEXT)
    moved = REPAIRED.replace("workflow:", "workflow:\n\n# moved\n").replace(
        "- step: start\n", "- step: start\n  desc: better\n"
    )
    added = moved.replace("- step: work", "- step: new\n  tool: {kind: noop}\n- step: work")
    assert retry(bench, failed.execution_id, added).result == {"r": 20}


CHANGES = {
    "the code of an ended step": (
        "result = 1",
        "result = 3",
        "step `start`, which has ended, is changed",
    ),
    "a number that is equal in Python": (
        "args: {n: [1]}",
        "args: {n: [true]}",
        "step `start`, which has ended, is changed",
    ),
    "an arc of an ended step": (
        'args: {n: "{{ event.result }}"}',
        "args: {n: 5}",
        "step `start`, which has ended, is changed",
    ),
    "a step that ran is gone": (
        "- step: start\n  tool: {name: first",
        "- step: begin\n  tool: {name: first",
        "step `start`, which has run, is not in it",
    ),
    "a task before the failed one": (
        "result = n + 1",
        "result = n + 2",
        "task `before` of step `work`, which ended before the failure, is changed",
    ),
    "another task in between": (
        "  - {name: bad,",
        "  - {name: new, kind: noop}\n  - {name: bad,",
        "task `bad` of step `work`, which has run, is not at its place in it",
    ),
    "the failed task is gone": (
        "  - {name: bad,",
        "  - {name: good,",
        "task `bad` of step `work`, which has run, is not at its place in it",
    ),
    "a join where tokens arrived": (
        "- step: work\n",
        "- step: work\n  spec: {policy: {join: all}}\n",
        "the join of step `work`, which has run, is changed",
    ),
}


@pytest.mark.parametrize(("old", "new", "message"), CHANGES.values(), ids=CHANGES)
def test_what_has_ended_may_not_be_changed(bench: Bench, old: str, new: str, message: str) -> None:
    failed = bench.run(TEXT)
    before = bench.names(failed.execution_id)
    assert REPAIRED.count(old) == 1
    with pytest.raises(CannotRepair) as refused:
        retry(bench, failed.execution_id, REPAIRED.replace(old, new))
    assert str(refused.value) == f"the execution cannot go on with playbook.yaml: {message}"
    assert bench.names(failed.execution_id) == before
    assert retry(bench, failed.execution_id, REPAIRED).status == "completed"


def test_everything_that_is_changed_is_named(bench: Bench) -> None:
    failed = bench.run(TEXT)
    changed = REPAIRED.replace("result = 1", "result = 2").replace("n + 1", "n + 2")
    with pytest.raises(CannotRepair, match=r"step `start`, .* is changed; task `before` of step `work`"):
        retry(bench, failed.execution_id, changed)


def test_another_playbook_is_refused(bench: Bench) -> None:
    failed = bench.run(TEXT)
    other = f"apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {{name: o, path: other}}\n{REPAIRED}"
    with pytest.raises(CannotRepair, match="is the playbook `other`, and the execution runs `p`"):
        retry(bench, failed.execution_id, other)


def test_an_invalid_playbook_is_refused(bench: Bench) -> None:
    failed = bench.run(TEXT)
    with pytest.raises(PlaybookInvalid):
        retry(bench, failed.execution_id, REPAIRED.replace("kind: python", "kind: pyhton"))
    assert retry(bench, failed.execution_id, REPAIRED).status == "completed"


def test_one_that_did_not_fail_is_refused_as_without_a_playbook(bench: Bench) -> None:
    done = bench.run(REPAIRED)
    with pytest.raises(Refused, match="only a failed execution can be retried, this one is completed"):
        retry(bench, done.execution_id, REPAIRED.replace("result = 1", "result = 2"))


def test_the_same_playbook_is_as_none(bench: Bench) -> None:
    failed = bench.run(TEXT)
    again = retry(bench, failed.execution_id, TEXT)
    assert again.status == "failed"
    assert verified(bench, again).notes == ()
    (retried,) = [
        event.body for event in bench.events(again.execution_id) if isinstance(event.body, ExecutionRetried)
    ]
    assert (retried.hash, retried.file) == ("", "")


def test_it_can_be_repaired_more_than_once_and_back(bench: Bench) -> None:
    failed = bench.run(TEXT)
    wrong = TEXT.replace("n / nothing", "n / 0")
    assert retry(bench, failed.execution_id, wrong).status == "failed"
    assert retry(bench, failed.execution_id, TEXT).status == "failed"
    done = retry(bench, failed.execution_id, REPAIRED)
    assert (done.status, done.result) == ("completed", {"r": 20})
    assert verified(bench, done).differences == ()


LOOP = """
workflow:
- step: start
  loop: {in: [1, 2, 3], iterator: n, spec: {mode: %s}}
  tool:
  - {name: before, kind: noop, args: {n: "{{ iter.n }}"}}
  - {name: bad, kind: python, args: {n: "{{ before.n }}"}, code: "result = 6 / (n - 2)"}
"""


@pytest.mark.parametrize("mode", ["sequential", "parallel"])
def test_in_a_loop_the_iterations_that_are_done_stay_and_the_rest_goes_on(bench: Bench, mode: str) -> None:
    failed = bench.run(LOOP % mode)
    assert failed.status == "failed"
    done = retry(bench, failed.execution_id, (LOOP % mode).replace("6 / (n - 2)", "n"))
    assert done.result == [-6, 2, 3 if mode == "sequential" else 6]
    with pytest.raises(CannotRepair, match="the loop of step `start`, which has begun, is changed"):
        retry(bench, bench.run(LOOP % mode).execution_id, (LOOP % mode).replace("1, 2, 3", "1, 3"))


TWICE = """
workflow:
- step: start
  next: {spec: {mode: inclusive}, arcs: [{step: work, args: {n: 1}}, {step: work, args: {n: 0}}]}
- step: work
  tool: {name: bad, kind: python, args: {n: "{{ args.n }}"}, code: "result = 1 / n"}
"""


def test_a_step_of_which_another_run_ended_can_be_repaired(bench: Bench) -> None:
    failed = bench.run(TWICE)
    done = retry(bench, failed.execution_id, TWICE.replace("1 / n", "n"))
    assert (done.status, done.summaries["work"].runs) == ("completed", 2)
    assert tasks(bench, failed.execution_id) == ["bad"] * 3


def test_a_task_that_was_jumped_to_and_ended_may_not_be_changed(bench: Bench) -> None:
    text = """
workflow:
- step: start
  tool:
  - {name: bad, kind: python, args: {n: "{{ ctx.n | default(1) }}"}, code: "result = 1 / n"}
  - name: after
    kind: noop
    spec: {policy: {rules: [{when: "{{ ctx.n is not defined }}", then: {do: jump, to: bad, set_ctx: {n: 0}}}]}}
"""
    failed = bench.run(text)
    repaired = text.replace("1 / n", "n")
    with pytest.raises(CannotRepair, match="task `after` of step `start`"):
        retry(bench, failed.execution_id, repaired.replace("set_ctx: {n: 0}", "set_ctx: {n: 2}"))
    assert retry(bench, failed.execution_id, repaired).status == "completed"


def test_a_snapshot_of_the_old_document_is_not_read_with_the_new_one(bench: Bench) -> None:
    """Numbers of steps in it are those of the old document."""
    failed = bench.run(TEXT)

    async def put(_: Local) -> None:
        store = SqliteStore.at(bench.home.store)
        body = msgspec.json.encode(dump_state(failed))
        await store.put_snapshot(failed.execution_id, Snapshot(failed.version, STATE_FORMAT, body))
        await store.close()

    bench.with_local(put)
    added = REPAIRED.replace("workflow:\n", "workflow:\n- step: new\n  tool: {kind: noop}\n")
    entry = added.replace("workflow:", "executor: {kind: local, spec: {entry_step: start}}\nworkflow:")
    assert retry(bench, failed.execution_id, entry).result == {"r": 20}


def test_relative_paths_start_beside_the_repaired_file(bench: Bench, tmp_path: Path) -> None:
    folder = tmp_path / "there"
    folder.mkdir()
    (folder / "hello.py").write_text("result = 'hello'\n")
    failed = bench.run("workflow:\n- step: start\n  tool: {name: a, kind: python, code: nothing}\n")
    script = "workflow:\n- step: start\n  tool: {name: a, kind: python, script: hello.py}\n"

    async def begin_and_stop(local: Local) -> None:
        await local.retry(failed.execution_id, source=source(script, str(folder / "p.yaml")))
        await local.flush()
        await local.kill()

    bench.with_local(begin_and_stop)
    assert bench.resume(failed.execution_id).result == "hello"


def test_a_repaired_child_completes_and_its_parent_takes_the_result(bench: Bench) -> None:
    child = {
        "apiVersion": "noetl.io/v2",
        "kind": "Playbook",
        "metadata": {"name": "p", "path": "p"},
        "workflow": [{"step": "start", "tool": {"name": "a", "kind": "python", "code": "nothing"}}],
    }
    call = {"name": "call", "kind": "playbook", "document": child}
    failed = bench.run(f"workflow: {json.dumps([{'step': 'start', 'tool': call}])}")
    (child_id,) = {execution_id for execution_id, _ in bench.seen} - {failed.execution_id}
    child["workflow"][0]["tool"]["code"] = "result = 5"  # type: ignore[index]  # it is a list of mappings
    repaired = "\n".join(f"{name}: {json.dumps(value)}" for name, value in child.items())
    assert retry(bench, child_id, repaired).result == 5

    async def work(local: Local) -> ExecutionState:
        return await local.wait_for_end(await local.retry(failed.execution_id))

    assert bench.with_local(work).result == 5


def test_a_child_that_stands_in_the_parent_is_repaired_with_it(bench: Bench) -> None:
    text = """
workflow:
- step: start
  tool:
    name: call
    kind: playbook
    document:
      apiVersion: noetl.io/v2
      kind: Playbook
      metadata: {name: c, path: c}
      workflow:
      - step: start
        tool:
        - {name: before, kind: python, code: "result = 1"}
        - {name: bad, kind: python, args: {n: "{{ before }}"}, code: "result = n / nothing"}
"""
    failed = bench.run(text)
    changed = retry(bench, failed.execution_id, text.replace("result = 1", "result = 2"))
    assert changed.error is not None
    assert (
        "task `before` of step `start`, which ended before the failure, is changed" in changed.error.message
    )
    done = retry(bench, failed.execution_id, text.replace("n / nothing", "n"))
    assert (done.status, done.result) == ("completed", 1)
    (child_id,) = {execution_id for execution_id, _ in bench.seen} - {failed.execution_id}
    assert tasks(bench, child_id) == ["before", "bad", "bad"]


MEETING = """
workflow:
- step: start
  next: {spec: {mode: inclusive}, arcs: [{step: a}, {step: b}]}
- step: a
  tool: {name: bad, kind: python, code: result = nothing}
  next: {arcs: [{step: meet, args: {a: "{{ event.result }}"}}]}
- step: b
  tool: {name: good, kind: python, code: result = 1}
  next: {arcs: [{step: meet, args: {b: "{{ event.result }}"}}]}
- step: meet
  spec: {policy: {join: all}}
  tool: {name: sum, kind: noop, args: {sum: "{{ args.a + args.b }}"}}
"""


def test_what_a_failure_held_back_goes_on_with_the_repaired_document(bench: Bench) -> None:
    failed = bench.run(MEETING)
    assert (failed.status, len(failed.tokens)) == ("failed", 2)
    done = retry(bench, failed.execution_id, MEETING.replace("nothing", "2"))
    assert (done.status, done.result, done.summaries["meet"].runs) == ("completed", {"sum": 3}, 1)
    assert verified(bench, done).differences == ()


def test_what_a_timeout_cut_short_goes_on_with_a_repaired_document(bench: Bench) -> None:
    text = """
executor: {kind: local, spec: {timeout: 1}}
workflow:
- step: start
  tool:
  - {name: before, kind: noop, args: {n: 1}}
  - {name: hold, kind: wait, signal: never}
"""
    failed = bench.run(text.lstrip())
    assert failed.error is not None
    assert failed.error.kind == "timeout"
    repaired = text.lstrip().replace("kind: wait, signal: never", "kind: noop, args: {n: 4}")
    with pytest.raises(CannotRepair, match="task `before` of step `start`"):
        retry(bench, failed.execution_id, repaired.replace("{n: 1}", "{n: 2}"))
    assert retry(bench, failed.execution_id, repaired).result == {"n": 4}


def test_what_any_of_several_failed_runs_has_done_may_not_be_changed(bench: Bench) -> None:
    text = (
        TWICE.replace('1 / n"}', '1 / n"}\n  - {name: later, kind: python, code: nothing}')
        .replace("tool: {name: bad", "tool:\n  - {name: bad")
        .replace("[{step: work, args: {n: 1}}, {step: work, args: {n: 0}}]", "%s")
    )
    arcs = ["{step: work, args: {n: 1}}", "{step: work, args: {n: 0}}"]
    for order in (arcs, arcs[::-1]):
        failed = bench.run(text % f"[{', '.join(order)}]")
        assert len(failed.failed_runs) == 2
        repaired = (text % f"[{', '.join(order)}]").replace("code: nothing", "code: result = 1")
        with pytest.raises(CannotRepair, match="task `bad` of step `work`, which ended before the failure"):
            retry(bench, failed.execution_id, repaired.replace("1 / n", "n"))
