"""The laws of the fault benchmark tell what is broken from what may be."""

from bench.faults.fault_plan import SERVER, plan_faults
from bench.faults.laws import (
    STEPS,
    Effect,
    Hit,
    RecordedExecution,
    broken_laws,
    is_explained,
    read_effects,
    tags_of,
)


def execution(number: int = 0, status: str = "completed", **changes: object) -> RecordedExecution:
    recorded = RecordedExecution(number, status, "", {"r5/0/task/1/1": 1}, dict.fromkeys(STEPS, 1))
    return recorded._replace(**changes)  # type: ignore[arg-type]  # its own fields


def effect(tag: str = "0/first", time: float = 1.0, worker: str = "worker-0.1", key: str = "") -> Effect:
    return Effect(time - 0.1, time, worker, tag, key or f"key of {tag}")


def all_effects(executions: int = 1) -> list[Effect]:
    return [effect(tag) for number in range(executions) for tag in tags_of(number)]


def kill(target: str = "worker-0.1", time: float = 1.1) -> Hit:
    return Hit(target, "kill", time, time)


def breaches(
    *executions: RecordedExecution,
    effects: list[Effect] | None = None,
    hits: tuple[Hit, ...] = (),
    started: int = 1,
) -> list[str]:
    return broken_laws(started, executions, all_effects(started) if effects is None else effects, hits)


def test_nothing_is_wrong_where_every_step_was_done_once() -> None:
    assert breaches(execution(0), execution(1), started=2) == []
    assert len(tags_of(0)) == 12


def test_an_execution_that_is_not_there_not_completed_or_there_twice_is_lost() -> None:
    assert breaches(execution(1), started=2) == ["execution 0 is in the store 0 times"]
    assert breaches(execution(), execution()) == ["execution 0 is in the store 2 times"]
    failed = execution(status="failed", error="worker_lost: three times")
    assert breaches(failed) == ["execution 0 is failed: worker_lost: three times"]


def test_an_outcome_or_the_end_of_a_step_counts_once() -> None:
    twice = execution(outcomes={"r5/0/task/1/1": 2})
    assert breaches(twice) == ["execution 0: the outcome of r5/0/task/1/1 is recorded 2 times"]
    again = execution(steps={**dict.fromkeys(STEPS, 1), "join": 2})
    assert breaches(again) == ["execution 0: step join is recorded as done 2 times"]
    missing = execution(steps=dict.fromkeys(STEPS[:-1], 1))
    assert breaches(missing) == ["execution 0: step last is recorded as done 0 times"]


def test_what_is_recorded_must_have_happened_and_nothing_else_may() -> None:
    effects = [*all_effects()[1:], effect("7/first")]
    assert breaches(execution(), effects=effects) == [
        "0/first has no effect",
        "7/first should have no effect",
    ]


def test_a_repetition_needs_a_fault_and_the_same_key() -> None:
    again = [*all_effects(), effect(time=5.0, worker="worker-1.1")]
    assert breaches(execution(), effects=again, hits=(kill(),)) == []
    (breach,) = breaches(execution(), effects=again)
    assert breach.startswith("0/first was repeated without a fault for each time: ")
    other = [*all_effects(), effect(time=5.0, worker="worker-1.1", key="another")]
    assert breaches(execution(), effects=other, hits=(kill(),)) == [
        "0/first was repeated with other keys: another, key of 0/first"
    ]


def test_two_effects_never_share_a_key() -> None:
    effects = [*all_effects()[1:], effect(key="key of 0/last")]
    assert breaches(execution(), effects=effects) == ["0/first has the key of 0/last"]


def test_a_fault_explains_one_repetition_of_those_it_hit() -> None:
    """That of the process that did it, or of the server, between its attempt and its repetition."""
    first, second = effect(time=1.0), effect(time=5.0, worker="worker-1.1")
    assert is_explained([first, second], [kill()])
    assert is_explained([first, second], [kill(SERVER)])
    assert not is_explained([first, second], [kill("worker-2.1")])
    assert not is_explained([first, second], [kill("worker-0.2")])
    assert not is_explained([first, second], [kill(time=6.0)])
    assert not is_explained([first, second], [kill(time=-5.0)])
    third = effect(time=9.0, worker="worker-2.1")
    assert not is_explained([first, second, third], [kill()])
    assert not is_explained([first, second, third], [kill(SERVER)])
    assert is_explained([first, second, third], [kill(), kill("worker-1.1", 5.1)])
    assert is_explained([first, second, third], [kill(SERVER), kill(SERVER, 5.1)])


def test_who_stood_still_may_go_on_after_somebody_else_did_it() -> None:
    """Its attempt began before it was stopped, and had its effect when it could go on."""
    elsewhere = effect(time=12.0, worker="worker-1.1")
    late = Effect(1.0, 14.0, "worker-0.1", "0/first", "key of 0/first")
    assert is_explained([elsewhere, late], [Hit("worker-0.1", "stop", 1.2, 13.9)])
    assert not is_explained([elsewhere, late], [Hit("worker-3.1", "stop", 1.2, 13.9)])


def test_a_seed_says_what_is_done_to_whom() -> None:
    plan = plan_faults(7, 200, 4, 10, 1.5)
    assert plan == plan_faults(7, 200, 4, 10, 1.5)
    assert plan != plan_faults(8, 200, 4, 10, 1.5)
    assert {fault.target for fault in plan} == {SERVER, *(f"worker-{number}" for number in range(4))}
    assert {fault.action for fault in plan} == {"kill", "pause", "stop", "stop and kill"}
    for fault in plan:
        assert {"kill": fault.seconds == 0, "pause": fault.seconds < 10}.get(fault.action, fault.seconds > 10)


def test_lines_are_effects() -> None:
    (read,) = read_effects("1.5 2.25 worker-3.2 7/loop/a abc\n")
    assert read == Effect(1.5, 2.25, "worker-3.2", "7/loop/a", "abc")
