"""Measures sides in turns, as `bench.protocol` says, and counts their fsyncs in a pass of its own.

What does not exist or fails leaves its cells empty and says why; it is not tried again in later rounds.
"""

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import msgspec

from bench.noetl_side import NoetlSide
from bench.process_memory import peak_bytes
from bench.protocol import Plan, Recorder, Report
from bench.results import Results
from bench.resumption import ResumptionFailed
from bench.side import Side, Unavailable, Worker, Wrap
from bench.summary import shot_values, spread_of
from bench.sync_calls import SyncTrace, why_uncounted
from bench.workload_table import END, FIRST_STEP, WORKLOADS, Workload

SECONDS = 300
"""How long a workload may take in one round on one side."""


class Comparison:
    """`folder` is where sides are installed, each below its name; its results grow while it goes on."""

    def __init__(self, sides: Sequence[Side], folder: Path, plan: Plan, names: Sequence[str]) -> None:
        self.results = Results(plan, sides=[side.NAME for side in sides])
        self._folder = folder.absolute()
        self._workloads = [WORKLOADS[name] for name in names]
        self._plan = plan
        self._sides = [side for side in sides if self._install(side)]
        self.results.durable = [side.NAME for side in self._sides if side.DURABLE]

    def _install(self, side: Side) -> bool:
        try:
            side.install(self._folder / side.NAME)
            self.results.versions[side.NAME] = side.versions(self._folder / side.NAME)
        except Unavailable as error:
            self.results.reasons[side.NAME] = f"not installed: {error}"
            return False
        return True

    def measure(self) -> None:
        for number in range(self._plan.rounds):
            for workload in self._workloads:
                for side in rotated(self._sides, number):
                    if self._is_wanted(side, workload):
                        print_progress(
                            f"round {number + 1} of {self._plan.rounds}: {workload.name} {side.NAME}"
                        )
                        report = self._measure_one(side, workload)
                        sides = self.results.reports.setdefault(workload.name, {})
                        sides.setdefault(side.NAME, [None] * number).append(report)

    def count_syncs(self) -> None:
        """One warm-up and one shot of everything that was measured, traced and not timed."""
        reason = why_uncounted()
        if reason:
            self.results.reasons["fsyncs"] = f"not counted: {reason}"
            return
        plan = Plan(1, 1, 1, self._plan.shrink)
        for workload in self._workloads:
            for side in self._sides:
                if workload.shape == "resume" or not self._is_wanted(side, workload):
                    continue
                print_progress(f"fsyncs: {workload.name} {side.NAME}")
                with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
                    trace = SyncTrace(Path(folder))
                    report = self._run_worker(side, workload, plan, trace.wrap, " fsyncs")
                    if report is not None:
                        counts = trace.count(report.windows)
                        self.results.sync_calls.setdefault(workload.name, {})[side.NAME] = counts

    def _is_wanted(self, side: Side, workload: Workload) -> bool:
        measurable = side.measures(workload) if isinstance(side, NoetlSide) else not workload.ours_only
        return measurable and f"{side.NAME} {workload.name}" not in self.results.reasons

    def _measure_one(self, side: Side, workload: Workload) -> Report | None:
        if workload.shape != "resume":
            report = self._run_worker(side, workload, self._plan, list)
        else:
            report = self._resume(side, workload.shrunk(self._plan.shrink))
        if report is not None:
            for figure in report.seconds:
                print_progress(f"  {figure} {spread_of(shot_values(report, figure)).median * 1e3:,.2f} ms")
        return report

    def _run_worker(
        self, side: Side, workload: Workload, plan: Plan, wrap: Wrap, column: str = ""
    ) -> Report | None:
        """In a new process, at peers beside a new server: what one leaves behind would slow down the next."""
        reasons, cell = self.results.reasons, f"{side.NAME} {workload.name}{column}"
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as data:
            try:
                with side.serve(self._folder / side.NAME, Path(data), wrap) as worker:
                    return run_worker(worker, workload, plan)
            except Unavailable as error:
                reasons[cell] = f"not started: {error}"
            except subprocess.TimeoutExpired:
                reasons[cell] = f"took longer than {SECONDS} s"
            except subprocess.CalledProcessError as error:
                reasons[cell] = " ".join(error.stderr.strip().splitlines()[-2:])
        return None

    def _resume(self, side: Side, workload: Workload) -> Report | None:
        """Each shot begins with a new store. There are no warm-ups: the next process is always a cold one."""
        cell = f"{side.NAME} {workload.name}"
        plan = Plan(1, 0, self._plan.shots, self._plan.shrink)
        recorder = Recorder(workload, plan, "as in w1b", waits=True)
        try:
            for _ in recorder.shots():
                with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as data:
                    times = side.resume(self._folder / side.NAME, Path(data), workload.steps)
                recorder.keep(FIRST_STEP, times.first_step)
                recorder.keep(END, times.end)
        except (Unavailable, ResumptionFailed, subprocess.TimeoutExpired) as error:
            self.results.reasons[cell] = str(error)
            return None
        return recorder.report(peak=0)


def run_worker(worker: Worker, workload: Workload, plan: Plan) -> Report:
    """Raises CalledProcessError, TimeoutExpired."""
    done = subprocess.run(
        [*worker.command, workload.name, *plan.arguments()],
        env=worker.environment,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=True,
    )
    report = read_report(done.stdout)
    servers = peak_bytes(worker.servers)
    report.peak = servers if worker.is_client else report.peak + servers
    return report


def read_report(output: str) -> Report:
    """The last line of what a worker printed. Raises msgspec.ValidationError if it is no report."""
    return msgspec.json.decode(output.splitlines()[-1], type=Report)


def rotated(sides: Sequence[Side], number: int) -> list[Side]:
    """Another side comes first in each round."""
    begin = number % len(sides) if sides else 0
    return [*sides[begin:], *sides[:begin]]


def print_progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
