"""How often a side waits for the disk: its fsyncs, counted with strace in a pass of its own.

Tracing makes processes slower, so nothing is timed in this pass. What is asked of the disk by other means
(`O_DSYNC`, `io_uring`) would not be seen; none of the sides uses them.
"""

import shutil
import subprocess
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

CALLS = ("fsync", "fdatasync", "sync_file_range", "msync")
FLUSHES = ("fsync", "fdatasync", "msync")
"""Those that wait until the data is safe; `sync_file_range` only starts writing it."""
_STRACE = ("strace", "-f", "--seccomp-bpf", "-ttt", "-qq", "-e", "signal=none")


class SyncCall(NamedTuple):
    """When a call began, in seconds since 1970."""

    time: float
    name: str


class SyncTrace:
    """Wraps the commands of a side, all its servers and workers, and counts what they called."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._commands = 0

    def wrap(self, command: Sequence[str]) -> list[str]:
        """The command under strace: it and all that it starts."""
        self._commands += 1
        output = self._folder / f"calls-{self._commands}.txt"
        return [*_STRACE, "-e", f"trace={','.join(CALLS)}", "-o", str(output), *command]

    def count(self, windows: Sequence[tuple[float, float]]) -> dict[str, float]:
        """For each call how often it began within a window, on average."""
        calls = [call for path in self._folder.glob("calls-*.txt") for call in read_calls(path)]
        return count_calls(calls, windows)


def read_calls(path: Path) -> Iterable[SyncCall]:
    """The calls in what strace wrote: lines of process, time and call, for example `12 1.5 fsync(3) = 0`."""
    for line in path.read_text("utf-8", "replace").splitlines():
        words = line.split(maxsplit=2)
        # A call that another process interrupts has a second line, `<... fsync resumed>`.
        if len(words) == 3 and (name := words[2].partition("(")[0]) in CALLS:
            yield SyncCall(float(words[1]), name)


def count_calls(calls: Iterable[SyncCall], windows: Sequence[tuple[float, float]]) -> dict[str, float]:
    if not windows:
        return {}
    counts = Counter(call.name for call in calls for begin, end in windows if begin <= call.time <= end)
    return {name: counts[name] / len(windows) for name in CALLS if counts[name]}


def flushes(counts: dict[str, float]) -> float:
    return sum(counts.get(name, 0.0) for name in FLUSHES)


def why_uncounted() -> str:
    """Why fsyncs cannot be counted here; empty if they can."""
    if shutil.which("strace") is None:
        return "strace is not installed"
    done = subprocess.run(
        [*_STRACE, "-e", "trace=fsync", "true"], capture_output=True, text=True, check=False
    )
    return "" if done.returncode == 0 else f"strace does not work here: {done.stderr.strip()}"
