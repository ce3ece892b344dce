import pytest

from bench.protocol import Plan, Recorder, WrongCount, read_arguments
from bench.workload_table import NEW, RUN, WORKLOADS, Workload

CHAIN = Workload("w1", "a chain", "chain", steps=3)
MANY = Workload("w3", "many runs", "chain", steps=3, runs=10)


def recorder_of(workload: Workload, warm_ups: int = 1, shots: int = 2) -> Recorder:
    return Recorder(workload, Plan(1, warm_ups, shots), "fsync", waits=True)


def test_warm_ups_are_not_kept() -> None:
    recorder = recorder_of(CHAIN, warm_ups=2, shots=3)
    for number in recorder.shots():
        recorder.keep(RUN, float(number))
    assert recorder.report().seconds == {RUN: [[2.0], [3.0], [4.0]]}


def test_a_shot_keeps_all_of_its_laps_and_figures_apart() -> None:
    recorder = recorder_of(CHAIN, warm_ups=0, shots=1)
    for _ in recorder.shots():
        for lap in (1.0, 2.0):
            recorder.keep(NEW, lap * 10)
            recorder.keep(RUN, lap)
    assert recorder.report().seconds == {NEW: [[10.0, 20.0]], RUN: [[1.0, 2.0]]}


def test_windows_are_those_of_the_figure_that_is_compared() -> None:
    recorder = recorder_of(CHAIN)
    for _ in recorder.shots():
        with recorder.lap(NEW):
            pass
        with recorder.lap():
            pass
    report = recorder.report()
    assert len(report.windows) == 2
    assert all(begin <= end for begin, end in report.windows)
    assert {figure: len(shots) for figure, shots in report.seconds.items()} == {NEW: 2, RUN: 2}


def test_a_lap_that_did_not_do_its_work_is_no_measurement() -> None:
    recorder = recorder_of(CHAIN)
    recorder.check(3)
    with pytest.raises(WrongCount, match="2 steps were executed, not 3"):
        recorder.check(2)
    assert recorder.report().executed == 3


def test_a_part_of_a_workload_is_scaled_and_says_so() -> None:
    recorder = recorder_of(MANY, warm_ups=0, shots=1)
    recorder.scale(Workload("w3", "many runs", "chain", steps=3, runs=2), "one after the other")
    for _ in recorder.shots():
        recorder.keep(RUN, 1.0)
        recorder.check(6)
    report = recorder.report()
    assert report.seconds == {RUN: [[5.0]]}
    assert report.note == "2 of 10 runs measured, one after the other, scaled"


def test_what_is_measured_in_full_is_not_scaled() -> None:
    recorder = recorder_of(MANY, warm_ups=0, shots=1)
    recorder.scale(MANY, "one after the other")
    for _ in recorder.shots():
        recorder.keep(RUN, 1.0)
    assert (recorder.report().seconds, recorder.report().note) == ({RUN: [[1.0]]}, "")


def test_memory_is_looked_at_while_what_was_started_still_runs() -> None:
    recorder = recorder_of(CHAIN)
    assert recorder.report().peak == 0
    for _ in recorder.shots():
        pass
    assert recorder.report().peak > 1_000_000


@pytest.mark.parametrize("name", WORKLOADS)
def test_a_worker_reads_the_plan_that_it_was_called_with(name: str) -> None:
    workload, plan = read_arguments([name, *Plan(7, 2, 3, 50).arguments()])
    assert plan == Plan(1, 2, 3, 50)
    assert workload == WORKLOADS[name].shrunk(50)


def test_a_shrunk_workload_keeps_its_shape() -> None:
    small = WORKLOADS["w3"].shrunk(100)
    assert (small.steps, small.runs, small.laps) == (2, 5, 1)
    assert WORKLOADS["w4"].shrunk(10_000).laps == 2


def test_every_workload_that_does_not_wait_has_a_twin_that_does() -> None:
    for workload in WORKLOADS.values():
        if not workload.waits and not workload.ours_only:
            twin = WORKLOADS[workload.name + "b"]
            assert twin.waits
            assert (twin.shape, twin.steps, twin.runs, twin.laps) == (
                workload.shape,
                workload.steps,
                workload.runs,
                workload.laps,
            )
