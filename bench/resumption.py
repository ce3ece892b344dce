"""How long a run takes to go on after `kill -9`, timed in the same way on all sides.

Steps leave a line each in a file, with the time. The one in the middle waits there for the end of its
process, so that all sides are killed at the same step: everything before it is recorded, it is in flight. The
clock starts when the next process is started. Workers import this: only the standard library is used here.
"""

import json
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

SECONDS = 120
"""How long a run may take to its middle, and from there to its end."""
TRACE, STEPS = "BENCH_STEP_TRACE", "BENCH_STEPS"


class Resumption(NamedTuple):
    """Seconds from the start of the next process to the first step in it, and until the run had ended."""

    first_step: float
    end: float


class ResumptionFailed(Exception): ...


class StepTrace:
    """The file of one run; `step` is called by each step."""

    def __init__(self, path: Path, steps: int) -> None:
        self._path, self._steps = path, steps
        self._stops = not path.exists()
        self._count = 0

    @classmethod
    def of_environment(cls) -> "StepTrace":
        return cls(Path(os.environ[TRACE]), int(os.environ[STEPS]))

    def step(self) -> None:
        with self._path.open("a", encoding="ascii") as file:
            file.write(f"{time.monotonic()}\n")
        self._count += 1
        if self._stops and self._count == self._steps // 2:
            time.sleep(SECONDS)  # to be killed here


def step_times(path: Path) -> list[float]:
    return [float(line) for line in path.read_text("ascii").split()] if path.exists() else []


def wait_for_middle(path: Path, steps: int, process: subprocess.Popen[bytes], log: Path) -> None:
    """Returns when the run waits in its middle. Raises ResumptionFailed with the process's last words."""
    until = time.monotonic() + SECONDS
    while len(step_times(path)) < steps // 2:
        if time.monotonic() > until or process.poll() is not None:
            lines = log.read_text("utf-8", "replace").strip().splitlines()
            raise ResumptionFailed(f"it did not reach its middle: {' '.join(lines[-2:])}")
        time.sleep(0.005)


def times_after(path: Path, steps: int, started: float, ended: float) -> Resumption:
    """Raises ResumptionFailed unless every step ran, the one that was in flight a second time."""
    times = step_times(path)
    if len(times) != steps + 1:
        raise ResumptionFailed(f"{len(times)} steps were executed, not {steps} and the one in flight again")
    return Resumption(times[steps // 2] - started, ended - started)


def resume_program(
    begin: Sequence[str], resume: Sequence[str], environment: Mapping[str, str], data: Path, steps: int
) -> Resumption:
    """For a side that is one program; `resume` prints when its run had ended, by `time.monotonic`."""
    trace = data / "steps.txt"
    settings = {**environment, TRACE: str(trace), STEPS: str(steps)}
    log = data / "begin.log"
    with log.open("wb") as output:
        life = subprocess.Popen(begin, env=settings, stdout=output, stderr=output, start_new_session=True)
    try:
        wait_for_middle(trace, steps, life, log)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(life.pid, signal.SIGKILL)
        life.wait()
    started = time.monotonic()
    done = subprocess.run(resume, env=settings, capture_output=True, text=True, timeout=SECONDS, check=False)
    if done.returncode:
        raise ResumptionFailed(" ".join(done.stderr.strip().splitlines()[-2:]))
    return times_after(trace, steps, started, float(json.loads(done.stdout.splitlines()[-1])))
