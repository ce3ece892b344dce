"""An event is small, however many values are in it."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noetl.events import bodies as of
from noetl.events.bodies import EventBody, Patch
from noetl.events.codec import decode, encode
from noetl.events.event_kind import kind_of_body
from noetl.kernel.errors import Refused
from noetl.kernel.net.commands import PatchCtx, Signal
from noetl.kernel.plan import Plan
from noetl.kernel.references.externalize import EVENT_MAX_BYTES, externalize
from noetl.kernel.state.invariants import violations
from noetl.kernel.verify.verification import verify
from noetl.model.outcome import ErrorInfo, Outcome
from noetl.model.reference import MARKER, decode_value, escape, manifest, references_in
from noetl.model.table_reader import decode_value_or_table
from tests.kernel.driver import EXECUTION, Driver
from tests.kernel.random_playbooks import as_stored
from tests.playbooks import playbook_of

KIBI = 1_024
STEP = """- step: start
  tool: [{t: {kind: python, code: "1"}}]
"""
PLAN = Plan(playbook_of(STEP))


def error_of(values: dict[str, Any]) -> ErrorInfo:
    return ErrorInfo(kind="http_status", message="no", details=values)


def patches_of(values: dict[str, Any]) -> tuple[Patch, ...]:
    return tuple(Patch(scope="ctx", path=(name,), value=value) for name, value in values.items())


MAKERS: dict[str, Callable[[dict[str, Any]], EventBody]] = {
    "request": lambda values: of.PlaybookExecutionRequested(path="p", hash="h", workload=values),
    "request ctx": lambda values: of.PlaybookExecutionRequested(path="p", hash="h", ctx=values),
    "workload": lambda values: of.WorkflowStarted(workload=values),
    "args of a token": lambda values: of.TokenEnqueued(step="start", args=values),
    "args of a run": lambda values: of.StepScheduled(step="start", args=values),
    "inputs": lambda values: of.TaskStarted(run="r1", task="t", input=values),
    "args among the inputs": lambda values: of.TaskStarted(
        run="r1", task="t", input={"a": 1, "args": values}
    ),
    "result": lambda values: of.TaskProcessed(
        run="r1", task="t", outcome=Outcome(status="ok", result=values)
    ),
    "helpers": lambda values: of.TaskProcessed(
        run="r1",
        task="t",
        outcome=Outcome(
            status="ok", result=1, helpers={name: {"v": value} for name, value in values.items()}
        ),
    ),
    "details": lambda values: of.TaskProcessed(
        run="r1", task="t", outcome=Outcome(status="error", error=error_of(values))
    ),
    "writes": lambda values: of.TaskProcessed(
        run="r1", task="t", outcome=Outcome(status="ok"), patches=patches_of(values), prev=values
    ),
    "items": lambda values: of.LoopStarted(run="r1", total=len(values), items=[*values.values()]),
    "iteration": lambda values: of.LoopIterationCompleted(
        run="r1", index=0, status="success", result=values, contributions=patches_of(values)
    ),
    "end of a loop": lambda values: of.LoopDone(
        run="r1", total=1, succeeded=1, failures=tuple(values.values()), patches=patches_of(values)
    ),
    "end by hand": lambda values: of.StepCompletedByHand(run="r1", result=values),
    "skipped step": lambda values: of.StepSkipped(run="r1", patches=patches_of(values)),
    "end of a step": lambda values: of.StepDone(run="r1", result=values, patches=patches_of(values)),
    "failure": lambda values: of.StepFailed(run="r1", error=error_of(values), patches=patches_of(values)),
    "lost lease": lambda values: of.LeaseExpired(run="r1", fence=1, error=error_of(values)),
    "arcs": lambda values: of.NextEvaluated(run="r1", event="step.done", patches=patches_of(values)),
    "patches": lambda values: of.CtxPatched(patches=patches_of(values)),
    "signal": lambda values: of.SignalReceived(signal="s", payload=values),
    "child": lambda values: of.RunResumed(
        run="r1", reason="child", payload={"execution_id": "c", "status": "completed", "result": values}
    ),
    "resumed": lambda values: of.RunResumed(run="r1", reason="signal", payload=values),
    "fork": lambda values: of.ExecutionForked(source="e", at=1, workload=values),
    "result of the execution": lambda values: of.PlaybookProcessed(
        status="failed", result=values, error=error_of(values)
    ),
}
"""Every body that holds values, and each of its places for them."""


def test_every_place_for_values_is_tried() -> None:
    plain = {of.PlaybookRequestEvaluated, of.CancelRequested, of.LoopIterationStarted, of.RunSuspended}
    with_values = {
        body
        for body in of.EventBody.__args__
        if body not in plain
        and any(
            name in body.__struct_fields__
            for name in (
                "args",
                "ctx",
                "error",
                "input",
                "items",
                "outcome",
                "patches",
                "payload",
                "result",
                "workload",
            )
        )
    }
    assert with_values == {type(make({"a": 1})) for make in MAKERS.values()}


def resolved(value: Any, stored: dict[str, bytes]) -> Any:
    """A body as plain values, with everything that is stored in its place."""
    driver = Driver(STEP)
    driver.stored = stored
    return driver.resolve(value)


def check_fits(body: EventBody) -> EventBody:
    step = PLAN.by_name["start"]
    small, blobs = externalize(PLAN, step, body, EXECUTION)
    data = encode(small)
    assert len(data) <= EVENT_MAX_BYTES
    stored = {blob.key: blob.data for blob in blobs}
    assert resolved(decode_value(data), stored) == decode_value(encode(body)), "nothing is lost"
    assert decode(kind_of_body(small).number, data, 1) == small
    assert externalize(PLAN, step, small, EXECUTION) == (small, []), "a second time nothing leaves"
    return small


sizes = st.lists(
    st.tuples(
        st.integers(1, 100), st.sampled_from([10, 300, 2 * KIBI, 5 * KIBI, 20 * KIBI, 60 * KIBI, 70 * KIBI])
    ),
    max_size=5,
)


@settings(max_examples=120, deadline=None)
@given(st.sampled_from(sorted(MAKERS)), sizes)
def test_an_event_fits_whatever_is_in_it_and_nothing_is_lost(
    name: str, groups: list[tuple[int, int]]
) -> None:
    values = {
        f"k{group}_{number}": "x" * (size + number)
        for group, (count, size) in enumerate(groups)
        for number in range(count)
    }
    check_fits(MAKERS[name](values))


@pytest.mark.parametrize("name", sorted(MAKERS))
# They leave alone; then all at once, because the references are too many; small ones together; all after each alone.
@pytest.mark.parametrize(("count", "size"), [(25, 60_000), (240, 66_000), (500, 1_000), (500, 5_000)])
def test_many_values_of_one_size_fit(name: str, count: int, size: int) -> None:
    check_fits(MAKERS[name]({f"k{number}": f"{number}:" + "x" * size for number in range(count)}))


def test_the_largest_leave_first_and_what_fits_stays() -> None:
    values = {f"k{size}": "x" * size for size in range(4_000, 40_000, 1_000)}
    body = check_fits(of.TokenEnqueued(step="start", args=values))
    assert isinstance(body, of.TokenEnqueued)
    left = [len(values[key]) for key, value in body.args.items() if isinstance(value, dict)]
    stayed = [len(values[key]) for key, value in body.args.items() if isinstance(value, str)]
    assert left
    assert min(left) > max(stayed)
    assert len(encode(body)) > EVENT_MAX_BYTES - 2 * max(stayed), "no more than must"


def test_many_small_ones_are_stored_as_one() -> None:
    values = {f"k{number}": "x" * 1_000 for number in range(800)}
    step = PLAN.by_name["start"]
    body = of.StepScheduled(step="start", args=values)
    small, blobs = externalize(PLAN, step, body, EXECUTION)
    assert isinstance(small, of.StepScheduled)
    assert [decode_value(blob.data) for blob in blobs] == [values]
    assert small.args["k7"]["path"] == ["k7"]


def test_args_of_a_task_leave_with_their_names() -> None:
    body = check_fits(of.TaskStarted(run="r1", task="t", input={"args": {f"k{n}": n for n in range(50_000)}}))
    assert isinstance(body, of.TaskStarted)
    assert body.input["args"][MARKER] == "ref"


def test_a_small_event_is_left_alone() -> None:
    body = of.TokenEnqueued(step="start", args={f"k{number}": "x" * 60_000 for number in range(4)})
    assert externalize(PLAN, None, body, EXECUTION) == (body, [])


def many_names(prefix: str, count: int = 40_000) -> dict[str, int]:
    return {f"{prefix}{number}": number for number in range(count)}


def sound(driver: Driver) -> None:
    """Every event fits, what is folded holds together, and deciding it again comes to the same."""
    assert all(len(event.body_bytes) <= EVENT_MAX_BYTES for event in driver.events)
    assert violations(driver.state) == []
    events = [as_stored(event) for event in driver.events]
    verification = verify(
        driver.plan, EXECUTION, events, lambda key: decode_value_or_table(driver.stored[key])
    )
    assert verification.differences == ()


def test_an_execution_with_many_inputs_runs_and_verifies() -> None:
    keys = [f"k{number}" for number in range(100)]
    args = ", ".join(f'{key}: "{{{{ workload.{key} }}}}"' for key in keys)
    driver = Driver(STEP.replace('code: "1"', f'code: "1", args: {{{args}}}'), {"t": 1})
    driver.run(workload={key: key + "x" * 60_000 for key in keys})
    assert driver.state.status == "completed"
    assert driver.resolve(escape(driver.calls[0].args)) == {key: key + "x" * 60_000 for key in keys}
    assert any(references_in(decode_value(event.body_bytes)) for event in driver.events)
    sound(driver)


def test_a_request_with_too_many_names_is_recorded_and_refused() -> None:
    driver = Driver(STEP).run(workload=many_names("k"))
    assert driver.names == ["PlaybookExecutionRequested", "PlaybookRequestEvaluated", "PlaybookProcessed"]
    assert driver.state.error
    assert driver.state.error.kind == "limit"
    assert "`workload` has too many parts" in driver.state.error.message
    sound(driver)


@pytest.mark.parametrize("command", [PatchCtx(patches_of(many_names("k"))), Signal("s" * 300_000, True)])
def test_what_is_asked_with_too_many_names_is_refused_and_changes_nothing(command: Any) -> None:
    driver = Driver(STEP).start()
    before = len(driver.events)
    with pytest.raises(Refused, match="an event has 262,144 at most"):
        driver.submit(command)
    assert len(driver.events) == before
    assert driver.run().state.status == "completed"


def test_a_step_whose_event_is_too_large_fails_with_its_limit() -> None:
    writes = ", ".join(f"k{number}: 1" for number in range(9_000))
    policy = f"spec: {{policy: {{rules: [{{else: {{then: {{do: continue, set_iter: {{{writes}}}}}}}}}]}}}}"
    driver = Driver(
        STEP.replace('code: "1"', f'code: "1", {policy}')
        + """  next: {arcs: [{step: b, when: "{{ event.error.kind == 'limit' }}"}]}
- step: b
  tool: [{u: {kind: noop}}]
""",
        {"t": 1},
    ).run()
    assert driver.names.count("StepFailed") == 1
    assert driver.state.status == "completed", "an arc may handle it"
    sound(driver)


def test_an_arc_whose_token_is_too_large_ends_the_execution() -> None:
    args = ", ".join(f"k{number}: 1234567890" for number in range(16_000))
    driver = Driver(f"""- step: start
  tool: [{{t: {{kind: noop}}}}]
  next: {{spec: {{mode: inclusive}}, arcs: [{{step: b, args: {{{args}}}}}, {{step: b}}]}}
- step: b
  tool: [{{u: {{kind: noop}}}}]
""").run()
    assert driver.state.status == "failed"
    assert driver.state.error
    assert driver.state.error.kind == "limit"
    assert "TokenEnqueued takes" in driver.state.error.message
    assert driver.names.count("TokenEnqueued") == 1, "what was decided with it does not follow"
    sound(driver)


def test_a_loop_in_very_many_chunks_ends_in_an_event_that_fits() -> None:
    loop = """- step: start
  spec: {result: {inline_max_bytes: 64}}
  loop: {in: "{{ range(2500) | list }}", iterator: i}
  tool: [{t: {kind: python, code: "1"}}]
"""
    driver = Driver(loop, {"t": "x" * 100}).run()
    assert driver.state.status == "completed"
    assert driver.resolve(driver.state.result) == ["x" * 100] * 2500
    assert len(driver.state.result["chunks"]) < 1_400
    sound(driver)


def test_a_list_that_a_loop_runs_over_is_stored_in_few_chunks() -> None:
    items = [f"{number}" * 40 for number in range(4_000)]
    plan = Plan(
        playbook_of("""- step: start
  spec: {result: {inline_max_bytes: 64}}
  loop: {in: "{{ workload.items }}", iterator: i}
  tool: [{t: {kind: noop}}]
""")
    )
    body, _ = externalize(
        plan, plan.by_name["start"], of.LoopStarted(run="r1", total=4_000, items=items), EXECUTION
    )
    assert isinstance(body, of.LoopStarted)
    assert len(body.items["chunks"]) < 1_400
    assert len(encode(body)) <= EVENT_MAX_BYTES


def test_the_end_of_a_list_that_grew_leaves_like_any_other_value() -> None:
    grown = manifest([], "", ["x" * 1_000] * 70)
    values = {f"k{number}": "x" * 60_000 for number in range(10)}
    body = of.CtxPatched(patches=patches_of({**values, "grown": grown}))
    small, blobs = externalize(PLAN, None, body, EXECUTION)
    assert isinstance(small, of.CtxPatched)
    assert len(encode(small)) <= EVENT_MAX_BYTES
    stored = {blob.key: blob.data for blob in blobs}
    assert "tail" not in small.patches[-1].value
    assert resolved(small.patches[-1].value, stored) == ["x" * 1_000] * 70
