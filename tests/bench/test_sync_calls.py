import subprocess
import sys
import time
from pathlib import Path

import pytest

from bench.sync_calls import SyncCall, SyncTrace, count_calls, flushes, read_calls, why_uncounted

TRACED = """\
6344  10.500000 fsync(3)        = 0
6345  11.000000 fdatasync(4 <unfinished ...>
6344  11.100000 msync(0x7f, 4096, MS_SYNC) = 0
6345  11.200000 <... fdatasync resumed>) = 0
6345  12.000000 sync_file_range(5, 0, 4096, SYNC_FILE_RANGE_WRITE) = 0
6345  12.500000 +++ exited with 0 +++
"""
SYNCING = (
    "import os\nwith open('file', 'w') as file:\n    for _ in range(3):\n        os.fsync(file.fileno())"
)


def test_each_call_is_read_once_though_it_was_interrupted(tmp_path: Path) -> None:
    path = tmp_path / "calls.txt"
    path.write_text(TRACED)
    assert list(read_calls(path)) == [
        SyncCall(10.5, "fsync"),
        SyncCall(11.0, "fdatasync"),
        SyncCall(11.1, "msync"),
        SyncCall(12.0, "sync_file_range"),
    ]


def test_calls_count_for_the_windows_they_began_in() -> None:
    calls = [SyncCall(time, "fdatasync") for time in (0.5, 1.0, 1.5, 3.0, 5.5)] + [SyncCall(1.2, "fsync")]
    assert count_calls(calls, [(1.0, 2.0), (5.0, 6.0)]) == {"fsync": 0.5, "fdatasync": 1.5}
    assert count_calls(calls, []) == {}


def test_only_calls_that_wait_for_the_disk_are_flushes() -> None:
    assert flushes({"fsync": 1.0, "fdatasync": 2.0, "msync": 0.5, "sync_file_range": 9.0}) == 3.5


def test_the_fsyncs_of_a_process_and_its_children_are_counted_or_the_reason_is_named(tmp_path: Path) -> None:
    if reason := why_uncounted():
        assert "strace" in reason
        return
    trace = SyncTrace(tmp_path)
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {SYNCING!r}], check=True)"
    begin = time.time()
    subprocess.run(trace.wrap([sys.executable, "-c", parent]), cwd=tmp_path, check=True)
    assert trace.count([(begin, time.time())]) == {"fsync": 3.0}
    assert trace.count([(begin - 2, begin - 1)]) == {}


def test_without_strace_the_reason_is_that(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert why_uncounted() == "strace is not installed"


def test_an_strace_that_may_not_trace_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "strace"
    program.write_text("#!/bin/sh\necho 'ptrace: Operation not permitted' >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert why_uncounted() == "strace does not work here: ptrace: Operation not permitted"
