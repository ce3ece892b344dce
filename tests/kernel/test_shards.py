"""Distributed loops: several workers share the iterations, and the server ends the loop."""

from typing import Any

import msgspec
import pytest

from noetl.events.bodies import (
    EventBody,
    LeaseExpired,
    LoopDone,
    LoopIterationCompleted,
    LoopIterationStarted,
    LoopStarted,
    RunSuspended,
    StepDone,
    StepFailed,
    TaskStarted,
    TokenClaimed,
)
from noetl.events.codec import encode
from noetl.kernel.errors import NotOwner, Refused
from noetl.kernel.net.commands import (
    Cancel,
    Claim,
    CompleteStep,
    Fork,
    LeaseLost,
    Pause,
    Redrive,
    Report,
    Resume,
    Retry,
    TimerFired,
)
from noetl.kernel.pipeline.loops import shard_size
from noetl.kernel.pipeline.moves import Record, RunTask
from noetl.kernel.pipeline.policy import SECOND
from noetl.kernel.state.invariants import violations
from noetl.kernel.state.replay import dump_state, encode_run, load_run, load_state, replay
from noetl.kernel.state.run_fold import evolve_run
from noetl.kernel.state.run_state import RunState, Shard
from noetl.model.outcome import succeeded
from tests.kernel.driver import EXECUTION, Driver, error


def loop(spec: str = "", count: int = 12, task: str = "", policy: str = "", more: str = "") -> str:
    return f"""
- step: start{more}
  loop:
    in: "{{{{ range({count}) | list }}}}"
    iterator: item
    spec: {{mode: parallel, max_in_flight: 3, policy: {{exec: distributed{policy}}}{spec}}}
  tool: [{{t: {{kind: python, code: "1", args: {{n: "{{{{ iter.item }}}}"}}{task}}}}}]
""".lstrip()


def doubled(call: Any) -> Any:
    return call.args["n"] * 2


def failing(*numbers: int) -> Any:
    def outcome(call: Any) -> Any:
        return error() if call.args["n"] in numbers else call.args["n"]

    return outcome


def started(text: str, script: Any = doubled) -> Driver:
    """A driver whose loop has begun: its shards are ready."""
    driver = Driver(text, {"t": script}).start()
    driver.work(driver.claim(driver.state.ready.first))
    return driver


def the_run(driver: Driver) -> RunState:
    (run,) = driver.state.runs.values()
    return run


def claim(driver: Driver, worker: str = "w1") -> tuple[RunState, Shard]:
    run, shard = driver.claim_part(driver.state.ready.first, worker)
    assert shard is not None
    return run, shard


def begin(driver: Driver, run: RunState, shard: Shard) -> None:
    """Start the next task of a shard, and leave it in flight."""
    while not isinstance(move := driver.advance(run, shard), RunTask):
        assert isinstance(move, Record)
        driver.report(run, move.body, shard=shard)
    driver.report(run, *move.begins, shard=shard)


def ranges(run: RunState) -> list[tuple[int, int]]:
    return [(shard.start, shard.end) for shard in run.shards.values()]


def checked(driver: Driver) -> Driver:
    assert violations(driver.state) == []
    assert replay(driver.plan, EXECUTION, driver.events) == driver.state
    assert load_state(driver.plan, dump_state(driver.state)) == driver.state
    return driver


@pytest.mark.spec("000 §2.3")
def test_whoever_starts_the_loop_lets_go_and_shards_are_there_for_others() -> None:
    driver = checked(started(loop()))
    run = the_run(driver)
    assert (run.phase, run.fence, ranges(run)) == ("ready", 0, [(0, 1), (1, 2), (2, 3)])
    assert driver.bodies(LoopStarted)[0].shard_size == 1


@pytest.mark.parametrize(
    ("total", "in_flight", "window", "size"),
    [
        (200, 10, 1_000, 5),
        (100_000, 10, 1_000, 100),
        (3, 10, 1_000, 1),
        (0, 1, 1, 1),
        (50, 20, 5, 1),
        (9, 1, 1_000, 3),
    ],
)
def test_shards_fit_into_the_window_and_leave_some_for_who_is_done_early(
    total: int, in_flight: int, window: int, size: int
) -> None:
    assert shard_size(total, in_flight, window) == size


def test_a_distributed_loop_gives_what_a_local_one_gives() -> None:
    text = loop(
        spec=", reduce: {sum: sum, all: append}",
        task=', set: {ctx.sum: "{{ outcome.result }}", ctx.all: "{{ item }}"}',
    )
    driver = checked(Driver(text, {"t": doubled}).run())
    local = Driver(text.replace("distributed", "local"), {"t": doubled}).run()
    assert driver.state.result == local.state.result == [number * 2 for number in range(12)]
    assert driver.ctx == local.ctx == {"sum": 132, "all": list(range(12))}
    (done,), (local_done,) = driver.bodies(LoopDone), local.bodies(LoopDone)
    assert (done.source, local_done.source) == ("server", "worker")
    for kind in (LoopIterationStarted, TaskStarted, LoopIterationCompleted, LoopDone):
        assert len(driver.bodies(kind)) == len(local.bodies(kind))


def test_an_empty_loop_is_ended_by_the_server() -> None:
    driver = checked(Driver(loop(count=0)).run())
    (done,) = driver.bodies(LoopDone)
    assert (done.total, done.result, done.source) == (0, [], "server")


def test_shards_are_opened_in_order_as_others_end_and_not_beyond_the_window() -> None:
    driver = started(loop(count=40, spec=", window: 8"))
    run = the_run(driver)
    assert ranges(run) == [(0, 2), (2, 4), (4, 6)]
    parts = [claim(driver) for _ in range(3)]
    driver.work(*parts[1])
    assert ranges(run) == [(0, 2), (4, 6), (6, 8)]
    driver.work(*parts[2])
    assert ranges(run) == [(0, 2), (6, 8)], "the first has not ended, and the window is 8"
    driver.work(*parts[0])
    assert ranges(run) == [(6, 8), (8, 10), (10, 12)]
    checked(driver)


def test_iterations_of_a_shard_run_one_after_the_other() -> None:
    driver = started(loop(count=48))
    run, shard = claim(driver)
    assert shard.end - shard.start == 4
    begin(driver, run, shard)
    assert (shard.open, shard.next) == ([0], 1)
    early = LoopIterationStarted(run=run.id, index=1)
    with pytest.raises(Refused, match="cannot follow"):
        driver.submit(Report(run.id, shard.fence, shard.reported, (early,), (encode(early),)))
    driver.report(run, driver.judge(run, 0, succeeded(0)), shard=shard)
    driver.work(run, shard)
    assert driver.ran == ["t"] * 3
    checked(driver.run())


def test_a_worker_reports_only_what_is_in_its_shard() -> None:
    driver = started(loop(count=48))
    run, first = claim(driver)
    _, second = claim(driver)
    for body in (
        LoopIterationStarted(run=run.id, index=second.start),
        LoopDone(run=run.id, total=48, succeeded=48),
    ):
        with pytest.raises(Refused, match="not for the worker of shard 0"):
            driver.report(run, body, shard=first)
    paused = RunSuspended(run=run.id, reason="pause")
    with pytest.raises(Refused, match="cannot follow"):
        driver.submit(Report(run.id, first.fence, first.reported, (paused,), (encode(paused),)))
    with pytest.raises(NotOwner):
        driver.submit(Report(run.id, 4, 0, (LoopIterationStarted(run=run.id, index=0),)))
    checked(driver)


def test_a_shard_is_claimed_once_and_by_its_first_iteration() -> None:
    driver = started(loop(count=48))
    run, shard = claim(driver)
    for number in (shard.start, shard.start + 1, 47, -1):
        with pytest.raises(Refused, match="not ready to be claimed"):
            driver.submit(Claim(run.id, "w2", shard=number))
    assert [body.shard for body in driver.bodies(TokenClaimed)] == [-1, 0]
    plain = Driver(loop().replace("distributed", "local")).start()
    with pytest.raises(Refused, match="not ready to be claimed"):
        plain.submit(Claim(plain.state.ready.first, shard=0))


def test_a_lost_worker_frees_its_shard_alone() -> None:
    driver = started(loop(count=48))
    parts = [claim(driver, f"w{number}") for number in range(3)]
    run, lost = parts[1]
    for part in parts:
        begin(driver, *part)
    driver.submit(LeaseLost(run.id, lost.fence))
    (expired,) = driver.bodies(LeaseExpired)
    assert (expired.shard, lost.phase, run.phase) == (lost.start, "ready", "claimed")
    assert {index: frame.losses for index, frame in run.frames.items()} == {0: 0, 4: 1, 8: 0}
    again, shard = claim(driver, "w4")
    assert shard is lost
    driver.work(again, shard)
    redelivered = [body for body in driver.bodies(TaskStarted) if body.redelivery]
    assert [(body.iteration, body.redelivery) for body in redelivered] == [(4, 1)]
    checked(driver)


def test_three_workers_that_are_lost_with_a_shard_end_the_step() -> None:
    driver = started(loop(count=48))
    other = claim(driver, "w0")
    for number in range(3):
        run, shard = claim(driver, f"w{number}")
        assert shard.losses == number
        driver.submit(LeaseLost(run.id, shard.fence))
        if number < 2:
            driver.state.runs[run.id].ready_shards.move_to_end(str(shard.start), last=False)
    assert driver.error.kind == "worker_lost"
    assert "3 workers in a row were lost with iterations 4 to 7" in driver.error.message
    assert (other[1].phase, driver.state.status) == ("ended", "failed")
    assert driver.bodies(StepFailed)[-1].source == "server"


def test_what_a_shard_reports_forgives_its_losses_and_not_those_of_others() -> None:
    driver = started(loop(count=48))
    first, second = claim(driver), claim(driver)
    for run, shard in (first, second):
        driver.submit(LeaseLost(run.id, shard.fence))
    assert [shard.losses for shard in the_run(driver).shards.values()] == [1, 1, 0]
    claim(driver)  # the third has waited longest
    run, shard = claim(driver)
    driver.move(run, shard)
    assert [shard.losses for shard in run.shards.values()] == [0, 1, 0]


def test_given_back_is_not_lost() -> None:
    driver = started(loop(count=48))
    run, shard = claim(driver)
    begin(driver, run, shard)
    driver.submit(LeaseLost(run.id, shard.fence, "released"))
    assert (shard.losses, run.frames[0].lost_workers, run.frames[0].losses) == (0, 0, 1)


def test_after_a_failure_what_has_begun_ends_and_nothing_else_begins() -> None:
    driver = started(loop(count=48), failing(4))
    first, second, third = (claim(driver) for _ in range(3))
    begin(driver, *first)
    driver.work(*second)
    run = second[0]
    assert (second[1].phase, third[1].phase, first[1].phase) == ("ended", "ended", "claimed")
    assert driver.status == "running"
    with pytest.raises(NotOwner):
        driver.submit(Report(run.id, third[1].fence or 99, 0, (LoopIterationStarted(run=run.id, index=8),)))
    driver.report(run, driver.judge(run, 0, succeeded(1)), shard=first[1])
    driver.work(*first)
    assert driver.state.status == "failed"
    (failed,) = driver.bodies(StepFailed)
    assert (failed.source, failed.error.details["index"]) == ("server", 4)
    assert [body.index for body in driver.bodies(LoopIterationStarted)] == [0, 4]
    assert driver.bodies(LoopDone) == []
    checked(driver)


def test_what_a_worker_began_before_it_knew_of_the_failure_is_left_out() -> None:
    driver = started(loop(count=48), failing(4))
    first, second = claim(driver), claim(driver)
    run, shard = first
    begin(driver, run, shard)
    copy = load_run(driver.plan, driver.state.inputs, msgspec.json.decode(encode_run(run, shard)))
    driver.work(*second)
    bodies: list[EventBody] = [
        driver.judge(copy, 0, succeeded(1)),
        LoopIterationCompleted(run=run.id, index=0, status="success", result=1),
        LoopIterationStarted(run=run.id, index=1),
        TaskStarted(run=run.id, task="t", iteration=1),
    ]
    data = tuple(map(encode, bodies))
    driver.submit(Report(run.id, shard.fence, shard.reported, tuple(bodies), data))
    assert [body.index for body in driver.bodies(LoopIterationStarted)] == [0, 4]
    assert driver.state.status == "failed"
    checked(driver)


def test_a_retry_goes_on_with_what_failed_and_what_never_began() -> None:
    driver = started(loop(count=24), failing(4))
    parts = [claim(driver) for _ in range(3)]
    begin(driver, *parts[0])
    driver.work(*parts[2])
    driver.report(parts[0][0], driver.judge(parts[0][0], 0, succeeded(0)), shard=parts[0][1])
    driver.work(*parts[0])
    assert driver.error.details["index"] == 4
    assert [body.index for body in driver.bodies(LoopIterationStarted)] == [0, 4]
    driver.script["t"] = doubled
    driver.submit(Retry("me"))
    checked(driver)
    driver.run()
    assert driver.state.status == "completed"
    begun = [body.index for body in driver.bodies(LoopIterationStarted)]
    assert sorted(begun) == list(range(24))
    assert len(driver.calls) == 24, "the failed one ran twice, the first not by this driver"
    assert [driver.state.result[index] for index in (4, 23)] == [8, 46]
    checked(driver)


def test_best_effort_runs_all() -> None:
    driver = checked(Driver(loop(policy=", failure: {mode: best_effort}"), {"t": failing(3, 7)}).run())
    (done,) = driver.bodies(LoopDone)
    assert (done.succeeded, done.failed, [failure["index"] for failure in done.failures]) == (10, 2, [3, 7])
    assert [driver.state.result[index] for index in (2, 3, 7)] == [2, None, None]


def test_failed_iterations_of_an_ended_loop_run_again_in_one_worker() -> None:
    driver = Driver(loop(policy=", failure: {mode: best_effort}"), {"t": failing(3, 7)}).run()
    driver.script["t"] = doubled
    driver.submit(Redrive())
    run = the_run(driver)
    assert (run.phase, run.shards, list(driver.state.ready)) == ("ready", {}, [run.id])
    checked(driver).run()
    assert [driver.state.result[index] for index in (2, 3, 7)] == [2, 6, 14]
    assert [body.source for body in driver.bodies(LoopDone)] == ["server", "worker"]
    checked(driver)


WAITS = """
- step: start
  loop:
    in: "{{ range(8) | list }}"
    iterator: item
    spec: {mode: parallel, max_in_flight: 2, policy: {exec: distributed}}
  tool: [{w: {kind: wait, seconds: 60}}, {t: {kind: noop, args: {n: "{{ item }}"}}}]
""".lstrip()


def test_an_iteration_that_waits_keeps_its_place_and_no_worker() -> None:
    driver = started(WAITS, lambda call: call.inputs["args"])
    parts = [claim(driver) for _ in range(2)]
    for part in parts:
        driver.work(*part)
    run = the_run(driver)
    assert [shard.phase for shard in run.shards.values()] == ["suspended", "suspended"]
    assert (run.phase, list(driver.state.ready), len(run.frames)) == ("suspended", [], 2)
    assert driver.statuses["start"] == "waiting"
    driver.now += 60 * SECOND
    driver.submit(TimerFired(run.id, 0))
    assert ([shard.phase for shard in run.shards.values()], driver.statuses["start"]) == (
        ["ready", "suspended"],
        "running",
    )
    checked(driver)
    driver.run()
    assert driver.state.result == [{"n": number} for number in range(8)]
    checked(driver)


def test_pause_takes_shards_back_and_resume_offers_them_again() -> None:
    driver = started(loop(count=48))
    run, shard = claim(driver)
    driver.submit(Pause())
    driver.submit(LeaseLost(run.id, shard.fence, "released"))
    with pytest.raises(Refused, match="nothing new begins"):
        driver.claim_part(run.id)
    driver.submit(Resume())
    driver.run()
    assert driver.state.status == "completed"
    checked(driver)


def test_cancel_waits_for_every_owner_and_ends_what_nobody_owns() -> None:
    driver = started(loop(count=48))
    first, second = claim(driver), claim(driver)
    driver.submit(Cancel("me"))
    driver.submit(LeaseLost(first[0].id, first[1].fence, "released"))
    assert driver.status == "running"
    driver.submit(LeaseLost(second[0].id, second[1].fence, "released"))
    assert driver.state.status == "cancelled"
    (failed,) = driver.bodies(StepFailed)
    assert (failed.error.kind, failed.source) == ("cancelled", "server")
    unclaimed = started(loop(count=48))
    unclaimed.submit(Cancel("me"))
    assert unclaimed.state.status == "cancelled"


def test_a_step_that_takes_too_long_ends_with_all_its_shards_and_can_be_retried() -> None:
    driver = started(loop(count=48, more="\n  spec: {timeout: 60}"))
    parts = [claim(driver) for _ in range(2)]
    driver.work(*parts[0])
    driver.move(*parts[1])
    driver.now += 61 * SECOND
    driver.submit(TimerFired(parts[0][0].id))
    assert driver.error.kind == "timeout"
    with pytest.raises(NotOwner):
        driver.report(parts[1][0], LoopIterationStarted(run=parts[1][0].id, index=5), shard=parts[1][1])
    driver.submit(Retry())
    checked(driver)
    driver.run()
    assert sorted(body.index for body in driver.bodies(LoopIterationStarted)) == list(range(48))
    assert driver.state.status == "completed"


def test_who_cannot_go_on_with_a_shard_fails_the_step_by_the_server() -> None:
    driver = started(loop(count=48))
    run, shard = claim(driver)
    failed = StepFailed(run=run.id, error=error("limit").error)  # type: ignore[arg-type]  # it has one
    driver.submit(Report(run.id, shard.fence, 0, (failed,), (encode(failed),)))
    assert driver.state.status == "failed"
    (recorded,) = driver.bodies(StepFailed)
    assert recorded.source == "server"
    (stored,) = [event.data for event in driver.events if event.body is recorded]
    assert b'"source":"server"' in stored


def test_a_step_with_shards_is_completed_by_hand() -> None:
    driver = started(loop(count=48))
    _, shard = claim(driver)
    driver.submit(CompleteStep("start", {"enough": True}))
    assert (driver.state.status, driver.state.result, shard.phase) == ("completed", {"enough": True}, "ended")


def test_a_fork_owns_no_shards_and_runs_what_was_in_flight() -> None:
    driver = started(loop(count=48))
    parts = [claim(driver) for _ in range(2)]
    driver.work(*parts[0])
    begin(driver, *parts[1])
    driver.submit(Fork(EXECUTION, driver.state.version))
    run = the_run(driver)
    assert (run.leased_shards, {shard.phase for shard in run.shards.values()}) == ({}, {"ready"})
    driver.run()
    assert driver.state.result == [number * 2 for number in range(48)]
    assert violations(driver.state) == []


def test_what_a_worker_gets_of_a_run_holds_no_results_and_of_a_shard_nothing_of_others() -> None:
    driver = started(loop(count=48))
    parts = [claim(driver) for _ in range(3)]
    driver.work(*parts[0])
    for part in parts[1:]:
        begin(driver, *part)
    run, shard = parts[1]
    copy = load_run(driver.plan, driver.state.inputs, msgspec.json.decode(encode_run(run, shard)))
    assert copy.loop is not None
    assert run.loop is not None
    assert (copy.loop.results, list(copy.frames), list(copy.shards)) == ([], [4], [4])
    assert run.loop.results == [0, 2, 4, 6]
    assert copy.owned_under(shard.fence) == shard
    assert load_run(driver.plan, driver.state.inputs, msgspec.json.decode(encode_run(run))).loop.results == []  # type: ignore[union-attr]  # a loop


def test_earlier_rules_run_a_distributed_loop_in_one_worker() -> None:
    driver = Driver(loop(), {"t": doubled}).start()
    driver.state.inputs.decider = driver.state.decider = 4
    driver.run()
    assert driver.bodies(LoopStarted)[0].shard_size == 0
    assert driver.state.result == [number * 2 for number in range(12)]


LARGE = """
- step: start
  loop:
    in: "{{ range(60) | list }}"
    iterator: item
    spec: {mode: parallel, max_in_flight: 3, policy: {exec: PLACEMENT}}
  spec: {result: {inline_max_bytes: 1024}}
  tool: [{t: {kind: python, code: "1", args: {n: "{{ iter.item }}"}}}]
  next: {arcs: [{step: end}]}
- step: end
  tool: {kind: noop, args: {last: "{{ start | last }}"}}
""".lstrip()


def test_large_results_become_one_manifest_that_the_server_makes() -> None:
    script = {"t": lambda call: {"n": call.args["n"], "text": "x" * 200}}
    driver = checked(Driver(LARGE.replace("PLACEMENT", "distributed"), script).run())
    local = Driver(LARGE.replace("PLACEMENT", "local"), script).run()
    (done,), (local_done,) = driver.bodies(LoopDone), local.bodies(LoopDone)
    assert done.result["$noetl"] == "manifest"
    assert driver.resolve(done.result) == local.resolve(local_done.result)
    assert [result["n"] for result in driver.resolve(done.result)] == list(range(60))
    assert any(body.chunk for body in driver.bodies(LoopIterationCompleted))


def test_what_another_process_reports_of_large_results_is_stored_in_chunks_here() -> None:
    driver = started(LARGE.replace("PLACEMENT", "distributed"), "x" * 600)
    run, shard = claim(driver)
    copy = load_run(driver.plan, driver.state.inputs, msgspec.json.decode(encode_run(run, shard)))
    chunks = 0
    for index in range(shard.start, shard.end):
        bodies = (
            LoopIterationStarted(run=run.id, index=index),
            TaskStarted(run=run.id, task="t", iteration=index),
        )
        for body in bodies:
            evolve_run(copy, body)
        processed = driver.judge(copy, index, succeeded("x" * 600))
        evolve_run(copy, processed)
        ended = LoopIterationCompleted(run=run.id, index=index, status="success", result="x" * 600)
        evolve_run(copy, ended)
        sent: tuple[EventBody, ...] = (*bodies, processed, ended)
        driver.submit(Report(run.id, shard.fence, shard.reported, sent, tuple(map(encode, sent))))
        chunks += driver.bodies(LoopIterationCompleted)[-1].chunk is not None
    assert chunks == 0, "a shard of five is too small for one"
    driver.run()
    assert any(body.chunk for body in driver.bodies(LoopIterationCompleted))
    assert len(driver.resolve(driver.bodies(LoopDone)[0].result)) == 60
    assert [type(event.body) for event in driver.events].count(StepDone) == 1
    checked(driver)
