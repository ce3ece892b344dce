"""Our side of every workload, as small as it gets, in processes of its own."""

import asyncio
import sqlite3
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from bench.bare_plane_side import BarePlaneSide
from bench.compare import run_worker
from bench.noetl_server_side import NoetlServerSide
from bench.noetl_side import NoetlSide
from bench.peers.peer import environment
from bench.protocol import Plan
from bench.resumption import ResumptionFailed, resume_program
from bench.shared_database import shared_database
from bench.workload_table import FIB_RESULT, FLIGHT, WORKLOADS, fib
from bench.workloads.documents import document_of
from bench.workloads.engine import open_engine
from noetl import load

SHRINK = 100_000
PROGRAM = """
import json, os, sys, time
from bench.resumption import StepTrace
trace = StepTrace.of_environment()
for _ in range(int(sys.argv[1])):
    trace.step()
print(json.dumps(time.monotonic()))
"""


@pytest.mark.parametrize("name", [name for name, each in WORKLOADS.items() if each.shape != "resume"])
def test_a_workload_reports_every_figure_and_that_all_steps_ran(name: str, tmp_path: Path) -> None:
    with NoetlSide().serve(tmp_path, tmp_path, list) as worker:
        report = run_worker(worker, WORKLOADS[name], Plan(1, 1, 2, SHRINK))
    small = WORKLOADS[name].shrunk(SHRINK)
    assert report.seconds.keys() == small.figures.keys()
    assert all([len(laps) for laps in shots] == [small.laps] * 2 for shots in report.seconds.values())
    laps_of_steps = small.laps * (2 if "new" in small.figures else 1)
    assert report.executed == 3 * laps_of_steps * small.steps_of_lap
    assert len(report.windows) == 2 * small.laps
    assert report.waits == WORKLOADS[name].waits
    assert report.peak > 10_000_000


def test_a_server_and_a_worker_report_the_same_figures(tmp_path: Path) -> None:
    side = NoetlServerSide()
    assert [name for name, each in WORKLOADS.items() if not side.measures(each)] == ["w6", "w10"]
    with side.serve(tmp_path, tmp_path, list) as worker:
        reports = [
            run_worker(worker, WORKLOADS[name], Plan(1, 0, 1, SHRINK)) for name in ("w2b", "w3", "w5", "w7")
        ]
    for report in reports:
        small = WORKLOADS[report.workload].shrunk(SHRINK)
        assert report.seconds.keys() == small.figures.keys()
        assert report.executed == len(small.figures) * small.steps_of_lap
        assert report.peak > 50_000_000
    assert [report.waits for report in reports] == [True, True, True, False]
    assert "events/s" in reports[-1].note


def test_a_server_on_postgresql_has_each_run_in_a_database_of_its_own(tmp_path: Path) -> None:
    with shared_database() as database:
        side = NoetlServerSide(database)
        for number in (1, 2):
            data = tmp_path / str(number)
            data.mkdir()
            with side.serve(tmp_path, data, list) as worker:
                report = run_worker(worker, WORKLOADS["w3"], Plan(1, 0, 1, SHRINK))
                assert not list(data.rglob("store.db"))
            assert report.executed == 2 * WORKLOADS["w3"].shrunk(SHRINK).steps_of_lap
            assert report.durability.startswith("PostgreSQL, each commit with fsync; ")
        with psycopg.connect(database.server.dsn(), autocommit=True) as connection:
            rows = connection.execute(
                "SELECT datname FROM pg_database WHERE datname LIKE 'bench%'"
            ).fetchall()
            assert connection.execute("SHOW fsync").fetchone() == ("on",)
        assert rows == []


def test_the_floor_of_a_server_has_each_step_on_the_disk(tmp_path: Path) -> None:
    side = BarePlaneSide()
    assert not side.measures(WORKLOADS["w2"])
    workload = replace(WORKLOADS["w3"], steps=3, runs=2)
    with side.serve(tmp_path, tmp_path, list) as worker:
        report = run_worker(worker, workload, Plan(1, 0, 2, SHRINK))
    small = workload.shrunk(SHRINK)
    assert report.executed == 2 * small.steps_of_lap
    with sqlite3.connect(tmp_path / "bare.db") as store:
        runs = store.execute("SELECT run, COUNT(*) FROM event GROUP BY run").fetchall()
    assert runs == [(number, small.steps + 1) for number in range(1, 2 * small.runs + 1)]


@pytest.mark.parametrize("name", ["w1b", "w2b", "w3b", "w4b", "w5b", "w9"])
def test_steps_of_a_twin_wait_for_what_came_before(name: str, tmp_path: Path) -> None:
    """Each is recorded before the next begins; in a loop, before the next that is not in flight yet."""
    workload = replace(WORKLOADS[name], steps=20)

    flushes: list[int] = []

    async def run() -> None:
        async with open_engine(tmp_path, lambda _, events, __: flushes.append(len(events))) as engine:
            await engine.run(document_of(workload))

    asyncio.run(run())
    assert len(flushes) >= (20 if workload.shape != "loop" else 20 // FLIGHT)


@pytest.mark.parametrize("name", ["w2", "w2b", "w7"])
def test_a_loop_is_measured_where_a_loop_is_promised(name: str) -> None:
    (step,) = load(document_of(WORKLOADS[name]).text.replace("bench_write", "noop")).workflow
    assert step.loop is not None


def test_editions_of_a_document_share_no_step() -> None:
    workload = WORKLOADS["w1"].shrunk(10)
    lines = [set(document_of(workload, edition).text.splitlines()) for edition in (1, 2)]
    assert not [line for line in lines[0] & lines[1] if "step" in line or "path" in line]


def test_a_killed_run_goes_on_in_a_new_process(tmp_path: Path) -> None:
    times = NoetlSide().resume(tmp_path, tmp_path, 6)
    assert 0 < times.first_step < times.end
    assert len((tmp_path / "steps.txt").read_text().split()) == 6 + 1


def run_program(data: Path, steps_after: int) -> None:
    command = [sys.executable, "-c", PROGRAM]
    resume_program([*command, "6"], [*command, str(steps_after)], environment(), data, 6)


def test_a_run_that_begins_anew_has_not_gone_on(tmp_path: Path) -> None:
    run_program(tmp_path, 4)
    again = tmp_path / "again"
    again.mkdir()
    with pytest.raises(ResumptionFailed, match="9 steps were executed, not 6 and the one in flight again"):
        run_program(again, 6)


def test_a_program_that_fails_before_its_middle_says_why(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "import sys; sys.exit('no disk')"]
    with pytest.raises(ResumptionFailed, match="it did not reach its middle: no disk"):
        resume_program(command, command, environment(), tmp_path, 6)


def test_a_worker_refuses_what_is_no_workload() -> None:
    command = [sys.executable, "-m", "bench.workloads", "w0", "1", "1", "1"]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "w0" in done.stderr


def test_everybody_computes_the_same() -> None:
    assert fib(10) == FIB_RESULT
