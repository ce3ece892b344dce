"""The same with real processes that are killed with SIGKILL, on a real disk."""

import asyncio
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from noetl.testing.crash import Crashes
from noetl.testing.crash.crash_record import CrashRecord
from noetl.testing.crash.fuse import Fuse
from noetl.testing.crash.process_life import SurvivingFiles, run_life
from tests.crash.crash_scenarios import LONG, SCENARIOS

ROOT = Path(__file__).parents[2]

POINTS = [
    ("chain", 2, "after"),
    ("chain", 4, "before"),
    ("pages", 5, "after"),
    ("retry", 6, "before"),
    ("parallel", 4, "after"),
    ("joins", 4, "before"),
    ("child_loop", 4, "after"),
    ("child_loop", 6, "before"),
    ("signal_by_letter", 3, "before"),
    ("mended", 6, "after"),
    ("python", 3, "before"),
    ("stored", 5, "after"),
    ("stored_child", 8, "before"),
]


def victim(files: SurvivingFiles, name: str, write: int, when: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "tests.crash.victim", str(files.folder), name, str(write), when]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize(("name", "write", "when"), POINTS)
def test_a_process_that_is_killed_at_a_write_loses_nothing(
    name: str, write: int, when: str, tmp_path: Path
) -> None:
    crashes = Crashes(SCENARIOS[name], tmp_path)
    files = crashes.new_files()
    with victim(files, name, write, when) as process:
        process.communicate()
    assert process.returncode == -signal.SIGKILL
    killed = CrashRecord(files)
    asyncio.run(run_life(files, SCENARIOS[name], Fuse()))
    crashes.compare(files, [killed], f"{when} write {write}")


@pytest.mark.parametrize("seed", [1, 2])
def test_a_process_may_be_killed_at_any_time(seed: int, tmp_path: Path) -> None:
    """Five processes one after the other, each killed after some more tasks were recorded.

    Enough of them that none is in flight at three kills: then it would be given up as `worker_lost`.
    """
    chance = random.Random(seed)  # noqa: S311 - it only has to be repeatable
    crashes = Crashes(LONG, tmp_path)
    files = crashes.new_files()
    killed: list[CrashRecord] = []
    for _ in range(5):
        lines = chance.randint(8, 16)
        with victim(files, "long", 0, "never") as process:
            assert process.stdout
            while lines and (event_line := process.stdout.readline()):
                lines -= event_line == "TaskProcessed\n"
            process.kill()
        killed.append(CrashRecord(files))
    asyncio.run(run_life(files, LONG, Fuse()))
    crashes.compare(files, killed, f"five times, seed {seed}")
