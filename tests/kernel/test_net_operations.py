"""What people ask of executions, and what owners of runs may do."""

import pytest

from noetl.events.bodies import (
    CancelRequested,
    EventBody,
    ExecutionRetried,
    LoopIterationCompleted,
    LoopIterationStarted,
    Patch,
    RunSuspended,
    StepFailed,
    TaskProcessed,
    TaskStarted,
)
from noetl.events.codec import encode
from noetl.events.event import Event
from noetl.kernel.errors import NotOwner, Refused, ReportEarly, WrongSequence
from noetl.kernel.net.commands import (
    Cancel,
    Claim,
    Fork,
    LeaseLost,
    PatchCtx,
    Pause,
    Report,
    Resume,
    Retry,
    Signal,
    TimerFired,
)
from noetl.kernel.pipeline.interpreter import advance, cancel_run, pause_run
from noetl.kernel.pipeline.moves import Finish, Record, RunTask, Wait
from noetl.kernel.pipeline.policy import SECOND, judge
from noetl.kernel.state.execution_state import ExecutionState
from noetl.kernel.state.replay import dump_state, replay
from noetl.kernel.state.run_state import RunState
from noetl.kernel.verify.verification import verify
from noetl.model.outcome import succeeded
from tests.kernel.driver import EXECUTION, Driver, error, run

TWO = """
- step: start
  tool:
    - a: {kind: python, code: "1"}
    - b: {kind: python, code: "1"}
  next: {arcs: [{step: after}]}
- step: after
  tool: [{c: {kind: python, code: "1"}}]
""".lstrip()


def started(driver: Driver) -> RunTask:
    """The first run is claimed and its first task is in flight."""
    state = driver.claim(driver.state.ready.first)
    move = advance(state, driver.now)
    assert isinstance(move, RunTask)
    driver.report(state, *move.begins)
    return move


@pytest.mark.spec("000 §4.3 (1)")
def test_a_run_has_one_owner_and_reports_under_another_fence_are_refused() -> None:
    driver = Driver(TWO).start()
    name = driver.state.ready.first
    owner = driver.claim(name)
    with pytest.raises(Refused, match="not ready"):
        driver.submit(Claim(name, "w2"))
    stale = owner.fence
    driver.submit(LeaseLost(name, stale))
    driver.submit(Claim(name, "w2"))
    with pytest.raises(NotOwner):
        driver.submit(Report(name, stale, 0, ()))


def test_a_report_that_was_recorded_is_answered_and_not_applied() -> None:
    driver = Driver(TWO).start()
    call = started(driver)
    state = driver.state.runs[call.started.run]
    done = judge(state, 0, succeeded(1), driver.now)
    report = Report(state.id, state.fence, state.reported, (done,))
    assert len(driver.submit(report)) == 1
    assert driver.submit(report) == []
    with pytest.raises(Refused, match="came before"):
        driver.submit(Report(state.id, state.fence, 9, (done,)))


@pytest.mark.spec("002 §3 (1)")
def test_a_worker_cannot_report_what_is_the_servers_to_decide() -> None:
    driver = Driver(TWO).start()
    call = started(driver)
    state = driver.state.runs[call.started.run]
    with pytest.raises(Refused, match="does not report"):
        driver.report(state, CancelRequested())


def test_cancel_ends_what_nobody_owns_at_once() -> None:
    driver = Driver(TWO).start()
    driver.submit(Cancel("me"))
    assert driver.status == "cancelled"
    assert driver.statuses == {"start": "cancelled"}
    assert driver.bodies(StepFailed)[0].error.kind == "cancelled"


def test_cancel_waits_for_owned_runs_whose_reports_are_recorded_and_route_nothing() -> None:
    driver = Driver(TWO).start()
    call = started(driver)
    state = driver.state.runs[call.started.run]
    driver.submit(Cancel())
    assert driver.status == "running"
    driver.report(state, judge(state, 0, succeeded(1), driver.now), cancel_run(state))
    assert driver.status == "cancelled"
    assert "NextEvaluated" not in driver.names
    with pytest.raises(Refused, match="is cancelled"):
        driver.submit(Signal("x"))


def test_a_lost_owner_ends_a_cancelled_run() -> None:
    driver = Driver(TWO).start()
    state = driver.claim(driver.state.ready.first)
    driver.submit(Cancel())
    driver.submit(LeaseLost(state.id, state.fence))
    assert driver.status == "cancelled"


def test_the_final_step_does_not_run_after_cancel() -> None:
    text = "executor: {kind: local, spec: {final_step: last}}\nworkflow:\n- step: start\n  tool: {kind: wait, signal: x}\n- step: last\n  tool: {kind: noop}\n"
    driver = run(text)
    driver.submit(Cancel())
    assert driver.status == "cancelled"
    assert "last" not in driver.statuses


def test_pause_schedules_nothing_new_and_runs_suspend_at_the_next_boundary() -> None:
    driver = Driver(TWO).start()
    call = started(driver)
    state = driver.state.runs[call.started.run]
    driver.submit(Pause())
    assert driver.status == "paused"
    assert pause_run(state) is None, "a task is in flight"
    driver.report(state, judge(state, 0, succeeded(1), driver.now))
    suspended = pause_run(state)
    assert suspended is not None
    driver.report(state, suspended)
    assert (state.phase, state.fence) == ("suspended", 0)
    assert driver.run().state.status == "paused"
    driver.submit(Resume())
    assert driver.run().state.status == "completed"
    assert [body.task for body in driver.bodies(TaskStarted)] == ["a", "b", "c"]


@pytest.mark.parametrize(
    "waits",
    [
        "kind: wait, signal: go",
        "kind: wait, seconds: 60",
        "kind: playbook, path: child",
        "kind: python, code: '1', spec: {policy: {rules: [{when: true, then: {do: retry, delay: 60}}]}}",
    ],
)
def test_an_iteration_that_waits_does_not_hold_up_a_pause(waits: str) -> None:
    text = f"""
- step: start
  loop: {{in: [0, 1], iterator: item, spec: {{mode: parallel}}}}
  tool:
    - first: {{kind: noop, spec: {{policy: {{rules: [{{when: "{{{{ item == 1 }}}}", then: {{do: jump, to: b}}}}]}}}}}}
    - a: {{{waits}}}
    - b: {{kind: python, code: "1"}}
""".lstrip()
    driver = Driver(text).start()
    state = driver.claim(driver.state.ready.first)
    in_flight: list[int] = []
    while not isinstance(move := driver.advance(state), Wait):
        if isinstance(move, Record):
            driver.report(state, move.body)
            continue
        assert isinstance(move, RunTask)
        driver.report(state, *move.begins)
        if move.task.label == "b":
            in_flight.append(move.iteration)
        else:
            driver.report(state, driver.judge(state, move.iteration, succeeded(1)))
    assert (in_flight, state.frames[0].suspension is not None) == ([1], True)
    driver.submit(Pause())
    assert pause_run(state) is None, "a task is in flight"
    driver.report(state, driver.judge(state, 1, succeeded(1)))
    suspended = pause_run(state)
    assert suspended is not None
    driver.report(state, suspended)
    assert (state.phase, state.fence, driver.status) == ("suspended", 0, "paused")


def test_a_run_that_pauses_too_late_goes_on() -> None:
    driver = Driver(TWO).start()
    call = started(driver)
    state = driver.state.runs[call.started.run]
    driver.submit(Pause())
    driver.report(state, judge(state, 0, succeeded(1), driver.now))
    suspended = pause_run(state)
    assert suspended is not None
    driver.submit(Resume())
    driver.report(state, suspended)
    assert driver.run().state.status == "completed"
    assert [body.task for body in driver.bodies(TaskStarted)] == ["a", "b", "c"]
    assert verify(driver.plan, driver.state.execution_id, driver.events).differences == ()


def test_a_run_that_ends_while_paused_is_routed_after_resume() -> None:
    driver = Driver(TWO).start()
    state = driver.claim(driver.state.ready.first)
    driver.submit(Pause())
    driver.work(state)
    assert "NextEvaluated" not in driver.names
    driver.submit(Resume())
    assert driver.run().statuses == {"start": "completed", "after": "completed"}


def test_nothing_is_claimed_while_paused() -> None:
    driver = Driver(TWO).start()
    driver.submit(Pause())
    with pytest.raises(Refused):
        driver.submit(Claim(driver.state.ready.first))


def test_retry_goes_on_at_the_failed_task_with_new_tries_and_the_same_keys() -> None:
    text = TWO.replace(
        '- b: {kind: python, code: "1"}',
        '- b: {kind: python, code: "1", spec: {policy: {rules: [{when: "{{ outcome.status == \'error\' }}", then: {do: retry, attempts: 2}}]}}}',
    ).replace("arcs: [{step: after}]", "arcs: [{step: after, when: \"{{ event.name == 'step.done' }}\"}]")
    driver = run(text, {"b": [error(), error(), error(), 5]})
    assert driver.status == "failed"
    assert driver.ran == ["a", "b", "b"]
    driver.submit(Retry("me"))
    driver.run()
    assert driver.status == "completed"
    assert driver.ran == ["a", "b", "b", "b", "b", "c"]
    assert len({call.idempotency_key for call in driver.calls if call.task.label == "b"}) == 1
    assert [body.attempt for body in driver.bodies(TaskStarted) if body.task == "b"] == [1, 2, 3, 4]
    assert driver.statuses == {"start": "completed", "after": "completed"}


def test_a_retried_task_reads_what_the_task_before_it_gave() -> None:
    text = """
- step: a
  tool:
  - first: {kind: python, code: "1"}
  - second: {kind: python, code: "1", args: {got: "{{ _prev }}"}}
""".lstrip()
    driver = run(text, {"first": 5, "second": [error(), 7]})
    driver.submit(Retry())
    driver.run()
    assert [call.args for call in driver.calls] == [{}, {"got": 5}, {"got": 5}]


def test_retry_runs_failed_iterations_alone() -> None:
    text = "- step: start\n  loop: {in: \"{{ [0, 1, 2, 3] }}\", iterator: i}\n  tool: [{t: {kind: python, code: '1'}}]\n"
    driver = run(text, {"t": [10, 11, error(), 12, 13]})
    assert driver.status == "failed"
    driver.submit(Retry())
    driver.run()
    assert driver.state.result == [10, 11, 12, 13]
    assert [call.iteration for call in driver.calls] == [0, 1, 2, 2, 3]


def test_retry_routes_again_where_a_guard_had_raised() -> None:
    text = '- step: start\n  tool: {kind: noop, args: {x: 1}}\n  next: {arcs: [{step: b, when: "{{ 1 / ctx.n > 0 }}"}]}\n- step: b\n  tool: {kind: noop}\n'
    driver = run(text, ctx={"n": 0})
    assert driver.status == "failed"
    driver.submit(Retry())
    driver.run()
    assert driver.status == "failed", "nothing has changed"
    assert driver.ran == ["task_0"]
    assert len(driver.bodies(ExecutionRetried)) == 1


def test_only_a_failed_execution_is_retried() -> None:
    with pytest.raises(Refused, match="only a failed execution"):
        run(TWO).submit(Retry())


def test_ctx_can_be_patched_from_outside() -> None:
    driver = Driver(TWO).start()
    driver.submit(PatchCtx((Patch(scope="ctx", path=("a", "b"), value=1),), "me"))
    assert driver.ctx == {"a": {"b": 1}}


def test_a_step_has_a_timeout_that_its_arcs_can_handle() -> None:
    text = TWO.replace("- step: start\n", "- step: start\n  spec: {timeout: 5}\n").replace(
        "{step: after}", "{step: after, when: \"{{ event.error.kind == 'timeout' }}\"}"
    )
    driver = Driver(text).start()
    call = started(driver)
    state = driver.state.runs[call.started.run]
    assert driver.submit(TimerFired(state.id)) == []
    driver.now += 5 * SECOND
    driver.submit(TimerFired(state.id))
    with pytest.raises(NotOwner):
        driver.report(state, judge(state, 0, succeeded(1), driver.now))
    assert driver.run().state.status == "completed"
    assert driver.statuses == {"start": "failed", "after": "completed"}


def test_an_execution_has_a_timeout() -> None:
    text = "executor: {kind: local, spec: {timeout: 60}}\nworkflow:\n- step: start\n  tool: {kind: wait, seconds: 100}\n"
    driver = run(text)
    assert driver.status == "failed"
    assert driver.error.kind == "timeout"


def test_a_fork_has_no_owners_and_its_own_keys() -> None:
    driver = Driver(TWO).start()
    call = started(driver)
    fork = Driver(driver.plan.playbook)
    fork.state = replay(fork.plan, "another", driver.events)
    fork.submit(
        Fork(driver.state.execution_id, driver.state.version, (Patch(scope="ctx", path=("x",), value=1),))
    )
    assert list(fork.state.claimed_runs()) == []
    fork.run()
    assert fork.state.status == "completed"
    assert fork.ctx == {"x": 1}
    assert fork.calls[0].idempotency_key != call.idempotency_key
    assert fork.calls[0].started.attempt == call.started.attempt, "what the original began is no try here"


def test_a_fork_of_one_that_waits_for_a_child_starts_its_own() -> None:
    text = "workflow:\n- step: start\n  tool: {kind: playbook, path: other}\n"
    driver = run(text)
    fork = Driver(driver.plan.playbook)
    fork.state = replay(fork.plan, "another", driver.events)
    fork.submit(Fork(driver.state.execution_id, driver.state.version, workload={"a": 1}))
    fork.step()
    (theirs,) = driver.bodies(RunSuspended)
    (own,) = fork.bodies(RunSuspended)
    assert theirs.child != own.child
    assert fork.state.inputs.workload == {"a": 1}


def test_the_fold_refuses_what_cannot_follow() -> None:
    driver = run(TWO)
    with pytest.raises(WrongSequence, match="event 3 cannot follow event 1"):
        replay(driver.plan, "x", [driver.events[0], driver.events[2]])
    with pytest.raises(WrongSequence):
        replay(
            driver.plan,
            "x",
            [
                Event(number, event.ts, event.body)
                for number, event in enumerate(
                    (event for event in driver.events if not isinstance(event.body, TaskProcessed)), 1
                )
            ],
        )


def test_asking_again_without_recording_gives_the_same_answer() -> None:
    driver = Driver(TWO).start()
    state = driver.claim(driver.state.ready.first)
    assert advance(state, driver.now) == advance(state, driver.now)
    driver.work(state)
    assert not isinstance(state.event, Finish)


def test_a_retried_run_has_its_whole_time_again() -> None:
    text = TWO.replace("- step: start\n", "- step: start\n  spec: {timeout: 5}\n").replace(
        "{step: after}", "{step: after, when: \"{{ event.name == 'step.done' }}\"}"
    )
    driver = Driver(text).start()
    call = started(driver)
    driver.now += 5 * SECOND
    driver.submit(TimerFired(call.started.run))
    assert driver.status == "failed"
    driver.now += 100 * SECOND
    driver.submit(Retry())
    assert driver.submit(TimerFired(call.started.run)) == []
    assert driver.run().status == "completed"


def test_a_run_that_is_paused_after_the_execution_was_resumed_goes_on() -> None:
    driver = Driver(TWO).start()
    owner = driver.claim(driver.state.ready.first)
    suspended = pause_run(owner)
    assert suspended is not None
    driver.submit(Pause())
    driver.submit(Resume())
    driver.report(owner, suspended)
    assert driver.run().status == "completed"


@pytest.mark.parametrize("loop", ["", '  loop: {in: "{{ [1] }}", iterator: item}\n'])
def test_a_retry_keeps_a_pipeline_that_was_through_when_time_was_up(loop: str) -> None:
    text = f"- step: start\n  spec: {{timeout: 60}}\n{loop}  tool: [{{a: {{kind: python, code: '1'}}}}]\n"
    driver = Driver(text, {"a": 7}).start()
    owner = driver.claim(driver.state.ready.first)
    while not driver.ran:
        driver.move(owner)
    driver.now += 60 * SECOND
    driver.submit(TimerFired(owner.id))
    assert driver.status == "failed"
    driver.submit(Retry())
    assert driver.run().status == "completed"
    assert driver.ran == ["a"]


LOST = """\
- step: start
  tool: {kind: python, code: "1"}
  next: {arcs: [{step: after, when: "{{ event.error.kind == 'worker_lost' }}"}]}
- step: after
  tool: {kind: noop}
"""


def test_the_third_owner_in_a_row_that_is_lost_without_a_report_ends_the_run() -> None:
    driver = Driver(LOST).start()
    name = driver.state.ready.first
    for _ in range(2):
        driver.submit(LeaseLost(name, driver.claim(name).fence))
    run = driver.claim(name)
    driver.report(run, *driver.advance(run).begins)  # type: ignore[union-attr]  # a task is next
    driver.submit(LeaseLost(name, run.fence))
    for _ in range(2):
        assert run.phase == "ready", "what it reported set the count back to none"
        driver.submit(LeaseLost(name, driver.claim(name).fence))
    assert (run.event, run.error and run.error.kind, run.ended_by) == ("step.failed", "worker_lost", "server")
    assert driver.run().status == "completed"


def test_an_owner_that_gives_a_run_back_or_never_had_it_is_not_lost() -> None:
    driver = Driver(LOST, {"task_0": 1}).start()
    name = driver.state.ready.first
    for delivery in range(6):
        run = driver.claim(name)
        started = driver.advance(run).started  # type: ignore[union-attr]  # a task is next
        assert (started.attempt, started.redelivery) == (1, delivery)
        driver.report(run, started)
        driver.submit(LeaseLost(name, run.fence, "released" if delivery % 2 else "voided"))
    assert driver.run().status == "completed"


REPORTING = """\
- step: start
  loop: {in: [1, 2], iterator: x, spec: {mode: parallel}}
  tool: {kind: noop}
"""


def sent_report(run: RunState, start: int, *bodies: EventBody) -> Report:
    """As it comes from a worker elsewhere."""
    return Report(run.id, run.fence, start, bodies, tuple(encode(body) for body in bodies))


def test_what_cannot_follow_is_refused_and_leaves_no_trace() -> None:
    driver = Driver(REPORTING).start()
    run = driver.claim(driver.state.ready.first)
    driver.move(run)
    before = dump_state(driver.state)
    begun = LoopIterationStarted(run=run.id, index=0)
    processed = TaskProcessed(run=run.id, task="task_0", attempt=1, outcome=succeeded(1), do="continue")
    for wrong in (processed, LoopIterationCompleted(run=run.id, index=1, status="success")):
        with pytest.raises(Refused):
            driver.submit(sent_report(run, run.reported, begun, wrong))
        assert dump_state(driver.state) == before


def test_of_a_report_that_is_recorded_in_part_the_rest_is_recorded() -> None:
    driver = Driver(REPORTING).start()
    run = driver.claim(driver.state.ready.first)
    driver.move(run)
    first, second = (LoopIterationStarted(run=run.id, index=index) for index in (0, 1))
    driver.submit(sent_report(run, 1, first))
    (event,) = driver.submit(sent_report(run, 1, first, second))
    assert event.body == second
    assert driver.submit(sent_report(run, 1, first, second)) == []
    with pytest.raises(ReportEarly):
        driver.submit(sent_report(run, 4, first))


def test_the_bytes_that_a_worker_sent_are_those_that_are_kept() -> None:
    driver = Driver(REPORTING).start()
    run = driver.claim(driver.state.ready.first)
    driver.move(run)
    bodies = tuple(LoopIterationStarted(run=run.id, index=index) for index in (0, 1))
    data = tuple(encode(body) + b" " for body in bodies)
    driver.submit(Report(run.id, run.fence, 1, bodies[:1], data[:1]))
    driver.submit(Report(run.id, run.fence, 1, bodies, data))
    assert [event.data for event in driver.events[-2:]] == list(data)


TIMED = """\
executor: {spec: {timeout: 600}}
workflow:
- step: start
  next: {spec: {mode: inclusive}, arcs: [{step: nap}, {step: gate}, {step: again}]}
- step: nap
  spec: {timeout: 500}
  tool: {name: nap, kind: wait, seconds: 400}
- step: gate
  spec: {policy: {admit: {rules: [{when: "{{ ctx.signals.go }}", then: {allow: true}}], timeout: 300}}}
  tool: {name: pass, kind: noop}
- step: again
  tool:
    name: fetch
    kind: http
    url: http://example.org
    spec: {policy: {rules: [{when: "{{ outcome.status == 'error' }}", then: {do: retry, attempts: 3, delay: 200}}]}}
"""


def clocks(state: ExecutionState) -> list[int | None]:
    """All times at which something will happen by itself."""
    frames = [frame for run in state.runs.values() for frame in run.frames.values()]
    return [
        state.deadline,
        *(token.deadline for token in state.tokens.values()),
        *(run.deadline for run in state.runs.values()),
        *(frame.retry_at for frame in frames),
        *(frame.suspension.until for frame in frames if frame.suspension is not None),
    ]


def test_a_fork_has_as_much_time_left_as_there_was_where_it_was_cut() -> None:
    original = Driver(TIMED, {"fetch": error()}).start()
    while original.state.ready:
        original.work(original.claim(original.state.ready.first))
    times = clocks(original.state)
    assert len([time for time in times if time is not None]) == 6
    fork = Driver(TIMED, {"fetch": error()})
    fork.state = replay(original.plan, "fork", [event for events in original.appends for event in events])
    day = 86_400 * SECOND
    fork.now += day
    fork.submit(Fork(EXECUTION, fork.state.version, shift=day))
    assert clocks(fork.state) == [time if time is None else time + day for time in times]
    fork.submit(TimerFired())
    assert fork.state.status == "running"
    assert fork.state.began_at == fork.now
    assert original.state.began_at == original.state.started_at
    events = [event for events in (*original.appends, *fork.appends) for event in events]
    assert verify(original.plan, "fork", events).differences == ()
