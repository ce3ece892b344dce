"""What happens to each golden playbook: the one way in which its history came about."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

from msgspec import structs

from noetl.events.bodies import Patch
from noetl.kernel.net.commands import (
    Cancel,
    ChildEnded,
    Claim,
    Fork,
    LeaseLost,
    PatchCtx,
    Pause,
    Redrive,
    Resume,
    Retry,
    Signal,
    TimerFired,
)
from noetl.kernel.pipeline.interpreter import advance, cancel_run, pause_run
from noetl.kernel.pipeline.moves import RunTask
from noetl.kernel.pipeline.policy import SECOND, judge
from noetl.kernel.state.replay import replay
from noetl.kernel.state.run_state import RunState
from noetl.model.outcome import ErrorInfo, succeeded
from tests.kernel.driver import EXECUTION, Driver, error
from tests.kernel.random_playbooks import Chaos

RECORDED = Path(__file__).parent / "recorded"
FORK = "01939d2e-0000-7000-8000-000000000002"

Scenario: TypeAlias = Callable[[str], Driver]


def run_of(driver: Driver, step: str) -> RunState:
    """The open run of a step."""
    return next(run for run in driver.state.runs.values() if run.step.name == step)


def begin(driver: Driver, run: RunState) -> RunTask:
    """Start the next task of a run that is owned, and leave it in flight."""
    move = advance(run, driver.now)
    assert isinstance(move, RunTask)
    driver.report(run, *move.begins)
    return move


def patch(**values: Any) -> PatchCtx:
    return PatchCtx(
        tuple(Patch(scope="ctx", path=(name,), value=value) for name, value in values.items()), "me"
    )


def chain(text: str) -> Driver:
    return Driver(text, {"count": {"rows": 12}, "write": {"written": 12}}).run(
        labels={"team": "a"}, requested_by="me"
    )


def jumps(text: str) -> Driver:
    return Driver(text, {"page": [{"more": True}, {"more": True}, {"more": False}], "keep": "kept"}).run()


def retries(text: str) -> Driver:
    fetch = [error(), error(), "later", succeeded(1)]
    return Driver(text, {"fetch": fetch, "send": error("sql"), "note": 0}).run()


def parallel_loop(text: str) -> Driver:
    def work(call: RunTask) -> Any:
        if call.iteration == 4:
            return error()
        return error("sql") if call.iteration == 2 and call.started.attempt == 1 else call.iteration * 10

    driver = Chaos(Driver(text).plan.playbook, [1])
    driver.script = {"work": work}
    driver.start()
    for choice in (1, 4, 4, 4, 4, 4, 4, 4, 5, 4, 2, 8, 4, 4, 11, 4, 5, 4, 4, 8, 4, 4, 2, 4):
        driver.act(choice)
    return driver.settle()


def retry_failed(text: str) -> Driver:
    second = [1, error("sql"), 2, 3]
    driver = Driver(text, {"second": second, "only": [error(), error(), error(), 9]}).run()
    driver.now += 3600 * SECOND
    driver.submit(Retry("me"))
    return driver.run()


def redrive(text: str) -> Driver:
    bad = {1, 3, 5}

    def work(call: RunTask) -> Any:
        return error() if call.iteration in bad else call.iteration * 10

    driver = Driver(text, {"work": work}).run()
    bad.remove(3)
    driver.submit(Redrive(by="me"))
    driver.run()
    bad.clear()
    driver.submit(Redrive(step="each"))
    return driver.run()


def retry_joins(text: str) -> Driver:
    driver = Driver(text, {"ta": [error(), 1], "tx": [error("sql"), 4], "ty": [error(), 5]}).run()
    driver.now += 60 * SECOND
    driver.submit(Retry("me"))
    return driver.run()


def cut_short(text: str) -> Driver:
    driver = Driver(text, {"s": 2}).start()
    driver.work(driver.claim(run_of(driver, "asleep").id))
    driver.work(driver.claim(run_of(driver, "quick").id))
    slow = driver.claim(run_of(driver, "slow").id)
    call = begin(driver, slow)
    driver.now += 60 * SECOND
    driver.submit(TimerFired())
    driver.now += SECOND
    driver.report(slow, judge(slow, call.iteration, succeeded(2), driver.now))
    driver.work(slow)
    driver.now += 3600 * SECOND
    driver.submit(Retry("me"))
    driver.submit(Signal("go", True, "me"))
    return driver.run()


def join_all(text: str) -> Driver:
    driver = Driver(text, {"ta": 1, "tb": error(), "tc": "stop"}).start()
    for step in ("c", "b", "a"):
        driver.work(driver.claim(run_of(driver, step).id))
    return driver.run()


def join_any(text: str) -> Driver:
    driver = Driver(text).start()
    for step in ("b", "first", "c"):
        driver.work(driver.claim(run_of(driver, step).id))
    return driver.run()


def join_count(text: str) -> Driver:
    return Driver(text, {"sum": [1, 2]}).run()


def admission_park(text: str) -> Driver:
    return Driver(text, {"inside": 5}).run()


def admission_wait(text: str) -> Driver:
    driver = Driver(text).start()
    driver.now += SECOND
    driver.submit(Signal("approve", {"by": "bob"}))
    driver.now += SECOND
    driver.submit(Signal("approve", {"by": "ann"}, "me"))
    return driver.run()


def admission_drop_fail(text: str) -> Driver:
    return Driver(text).run(ctx={"zero": 0})


def signals(text: str) -> Driver:
    driver = Driver(text).start()
    driver.submit(Signal("early", 1, "me"))
    driver.run()
    for number in range(3):
        driver.now += SECOND
        driver.submit(Signal("go", {"n": number}))
        driver.run()
    return driver.run()


def children(text: str) -> Driver:
    driver = Driver(text).run()
    ends: list[tuple[Any, Any]] = [
        ("failed", ErrorInfo(kind="sql", message="no table")),
        ("completed", None),
        ("cancelled", ErrorInfo(kind="cancelled", message="stopped")),
        *[("completed", None)] * 3,
    ]
    while not driver.state.over:
        status, fault = ends.pop(0)
        waiting = [
            (run.id, frame.index, frame.suspension.child)
            for run in driver.state.runs.values()
            for frame in run.frames.values()
            if frame.suspension is not None
        ]
        driver.now += SECOND
        driver.submit(ChildEnded(*waiting[-1], status, len(waiting), fault))
        driver.run()
    return driver


def cancel(text: str) -> Driver:
    driver = Driver(text).start()
    asleep = driver.claim(run_of(driver, "asleep").id)
    driver.work(asleep)
    busy = driver.claim(run_of(driver, "busy").id)
    call = begin(driver, busy)
    driver.submit(Cancel("me", "enough"))
    driver.now += SECOND
    driver.report(busy, judge(busy, call.iteration, succeeded(1), driver.now))
    driver.report(busy, cancel_run(busy))
    return driver


def pause_resume(text: str) -> Driver:
    driver = Driver(text).start()
    first, loop = driver.claim(run_of(driver, "a").id), driver.claim(run_of(driver, "b").id)
    call = begin(driver, first)
    driver.move(loop)
    driver.move(loop)
    driver.submit(Pause("me"))
    driver.now += SECOND
    driver.report(first, judge(first, call.iteration, succeeded(1), driver.now))
    for run in (first, loop):
        suspended = pause_run(run)
        assert suspended is not None
        driver.report(run, suspended)
    driver.now += SECOND
    driver.submit(Resume("me"))
    return driver.run()


def fork(text: str) -> Driver:
    source = Driver(text, {"a": 1, "b": [error(), 2]}).start(ctx={"factor": 1})
    run = source.claim(source.state.ready.first)
    for _ in range(3):
        source.move(run)
    driver = Driver(source.plan.playbook, {"a": 1, "b": [error(), 3]})
    driver.state = replay(driver.plan, FORK, source.events)
    driver.appends = list(source.appends)
    driver.now = source.now + SECOND
    driver.submit(Fork(EXECUTION, source.state.version, patch(factor=2).patches, "me"))
    return driver.run()


def lost_owners(text: str) -> Driver:
    """Owners give a run back, never had it, or are lost with it before they had reported anything."""
    driver = Driver(text, {"moved": 1}).start()
    name = driver.state.ready.first
    for reason in ("released", "voided"):
        begin(driver, driver.claim(name))
        driver.submit(LeaseLost(name, driver.state.runs[name].fence, reason))
    driver.work(driver.claim(name))
    deadly = run_of(driver, "deadly").id
    for reason in ("expired", "released", "expired", "voided", "expired"):
        driver.submit(Claim(deadly, "w2", "5e55"))
        driver.now += 10 * SECOND
        driver.submit(LeaseLost(deadly, driver.state.runs[deadly].fence, reason))  # type: ignore[arg-type]  # one of three texts
    return driver.run()


def shards(text: str) -> Driver:
    """Workers share a loop: one is lost with its shard, one gives it back, an iteration fails and is retried."""
    driver = Driver(text, {"work": lambda call: error() if call.args["n"] == 5 else call.args["n"]}).start()
    name = driver.state.ready.first
    driver.work(driver.claim(name))
    for worker in ("w1", "w2"):
        driver.work(*driver.claim_part(name, worker))
    for reason in ("expired", "released"):
        driver.fire_next_timer()
        _, shard = driver.claim_part(name, "w3")
        assert shard is not None
        driver.submit(LeaseLost(name, shard.fence, reason))
    driver.run()
    driver.script["work"] = lambda call: call.args["n"]
    driver.submit(Retry("me"))
    return driver.run()


def lost_lease(text: str) -> Driver:
    driver = Driver(text, {"steady": 5}).start()
    name = driver.state.ready.first
    driver.move(driver.claim(name))
    for _ in range(3):
        run = driver.state.runs[name]
        begin(driver, run)
        driver.now += 30 * SECOND
        driver.submit(LeaseLost(name, run.fence))
        driver.claim(name)
    driver.work(driver.state.runs[name])
    loop = driver.claim(run_of(driver, "loop").id)
    driver.move(loop)
    for _ in range(2):
        begin(driver, loop)
    driver.submit(LeaseLost(loop.id, loop.fence))
    driver.submit(Claim(loop.id, "w2"))
    driver.work(loop)
    return driver.run()


def deadlines(text: str) -> Driver:
    return Driver(text).run()


def failures(text: str) -> Driver:
    return Driver(text, {"boom": error("python", "no such column", line=3), "fine": 4, "w": 1}).run(
        ctx={"zero": 0}
    )


def error_results(text: str) -> Driver:
    answer = structs.replace(error("http_status"), result={"status": 404, "data": "gone"})
    return Driver(text, {"ask": [answer, 5, answer], "check": [error(), 7, answer]}).run()


def refused(text: str) -> Driver:
    return Driver(text).start()


SCENARIOS: dict[str, Scenario] = {
    scenario.__name__: scenario
    for scenario in (
        chain,
        jumps,
        retries,
        parallel_loop,
        retry_failed,
        retry_joins,
        redrive,
        cut_short,
        join_all,
        join_any,
        join_count,
        admission_park,
        admission_wait,
        admission_drop_fail,
        signals,
        children,
        cancel,
        pause_resume,
        fork,
        lost_lease,
        lost_owners,
        shards,
        deadlines,
        failures,
        error_results,
        refused,
    )
}


def play_scenario(name: str) -> Driver:
    """The scenario, played now."""
    return SCENARIOS[name]((RECORDED / f"{name}.yaml").read_text())
