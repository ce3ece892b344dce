"""How everything is measured, here and at the peers: warm-ups, shots, rounds, and what a worker reports.

A round measures every workload; a workload every side, one after the other, and the first one is another in
each round. A side of a workload is a process of its own (peers: with a server of its own): it warms up, then
shoots. Workers import this from environments of their own: only the standard library is used here.
"""

import argparse
import json
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field

from bench.process_memory import peak_bytes
from bench.workload_table import RUN, WORKLOADS, Workload


@dataclass(frozen=True)
class Plan:
    """The same for all sides. A warm-up is a shot that is not kept; `shrink` divides the sizes."""

    rounds: int = 5
    warm_ups: int = 1
    shots: int = 5
    shrink: int = 1

    def arguments(self) -> list[str]:
        """What a worker is called with, after the name of the workload."""
        return [str(self.warm_ups), str(self.shots), str(self.shrink)]


@dataclass
class Report:
    """What one process measured of one workload.

    `seconds` has, for each figure, the laps of each shot; `windows` the wall-clock begins and ends of laps of
    the figure `run`, in seconds since 1970. `executed` counts the steps that ran in them, warm-ups too.
    `waits`: each step's result is on the disk before the next begins. `peak` is in bytes, 0 if unknown.
    """

    workload: str
    seconds: dict[str, list[list[float]]] = field(default_factory=dict)
    windows: list[tuple[float, float]] = field(default_factory=list)
    executed: int = 0
    peak: int = 0
    waits: bool = True
    durability: str = ""
    note: str = ""


class WrongCount(Exception):
    """A lap did not execute what it should have."""


class Recorder:
    """Times the laps of one workload in one process, and checks that each did its work.

    for _ in recorder.shots():
        for _ in range(workload.laps):
            with recorder.lap():
                ...
            recorder.check(executed)
    """

    def __init__(self, workload: Workload, plan: Plan, durability: str, *, waits: bool) -> None:
        self.workload = workload
        self._plan = plan
        self._report = Report(workload.name, durability=durability, waits=waits)
        self._laps: dict[str, list[float]] = {}
        self._windows: list[tuple[float, float]] = []
        self._scale = 1.0

    def scale(self, measured: Workload, how: str) -> None:
        """Laps are of `measured`, which is smaller: their times are multiplied, and the report says so."""
        if measured.steps_of_lap < self.workload.steps_of_lap:
            self._scale = self.workload.steps_of_lap / measured.steps_of_lap
            self._report.note = f"{measured.runs} of {self.workload.runs} runs measured, {how}, scaled"
        self.workload = measured

    def remark(self, note: str) -> None:
        self._report.note = note

    def shots(self) -> Iterator[int]:
        """Numbers from 0, those of the warm-ups first."""
        for number in range(self._plan.warm_ups + self._plan.shots):
            self._laps, self._windows = {}, []
            yield number
            if number >= self._plan.warm_ups:
                for figure, laps in self._laps.items():
                    self._report.seconds.setdefault(figure, []).append(laps)
                self._report.windows += self._windows
                self._report.peak = max(self._report.peak, peak_bytes([os.getpid()]))

    @contextmanager
    def lap(self, figure: str = RUN) -> Iterator[None]:
        begin, began = time.time(), time.perf_counter()
        yield
        self.keep(figure, time.perf_counter() - began)
        if figure == RUN:
            self._windows.append((begin, time.time()))

    def keep(self, figure: str, seconds: float) -> None:
        """A lap that was timed elsewhere."""
        self._laps.setdefault(figure, []).append(round(seconds * self._scale, 7))

    def check(self, executed: int, expected: int | None = None) -> None:
        """Raises WrongCount unless the last lap executed all of its steps."""
        wanted = self.workload.steps_of_lap if expected is None else expected
        if executed != wanted:
            raise WrongCount(f"{self.workload.name}: {executed} steps were executed, not {wanted}")
        self._report.executed += executed

    def report(self, peak: int | None = None) -> Report:
        """What was measured. `peak` is the memory of what had ended before the end of a shot."""
        if peak is not None:
            self._report.peak = peak
        return self._report


def read_arguments(arguments: Sequence[str]) -> tuple[Workload, Plan]:
    """The last four words of a worker's command line: what it measures, and how often."""
    parser = argparse.ArgumentParser()
    parser.add_argument("workload", choices=WORKLOADS)
    for name in ("warm_ups", "shots", "shrink"):
        parser.add_argument(name, type=int)
    options = parser.parse_args(arguments)
    plan = Plan(1, options.warm_ups, options.shots, options.shrink)
    return WORKLOADS[options.workload].shrunk(plan.shrink), plan


def print_report(report: Report) -> None:
    """The last line that a worker prints."""
    print(json.dumps(asdict(report)), flush=True)
