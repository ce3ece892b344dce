"""What a process keeps while it runs goes with it, also if it was killed."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from noetl.scratch_folder import UNLOCKED_SECONDS

HOLDER = """
import sys
from noetl.scratch_folder import ScratchFolder
folder = ScratchFolder(sys.argv[1])
(folder.path / "inside").mkdir()
(folder.path / "inside" / "file").write_text("large")
print(folder.path, flush=True)
sys.stdin.read()
"""
FORK = """
import os
from noetl.scratch_folder import ScratchFolder
folder = ScratchFolder("fork")
if not os.fork():
    raise SystemExit  # an end as others have, with what Python does at it
os.wait()
print(folder.path.exists(), folder.path)
"""


@contextmanager
def _holder(folder: Path, purpose: str = "worker") -> Iterator[tuple["subprocess.Popen[bytes]", Path]]:
    """A process that has one, below `folder`, until its input ends."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, purpose],
        env={**os.environ, "TMPDIR": str(folder)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        try:
            yield process, Path(process.stdout.readline().decode().strip())
        finally:
            process.kill()


def _kill(process: "subprocess.Popen[bytes]") -> None:
    process.send_signal(signal.SIGKILL)
    process.wait()


def _age(path: Path, seconds: float = 2 * UNLOCKED_SECONDS) -> None:
    modified = path.stat().st_mtime - seconds
    os.utime(path, (modified, modified))


def test_it_is_nobody_elses_and_goes_with_its_process(tmp_path: Path) -> None:
    with _holder(tmp_path) as (process, path):
        assert path.parent == tmp_path
        assert path.stat().st_mode & 0o777 == 0o700
        process.communicate()
    assert process.returncode == 0
    assert not path.exists()


def test_what_a_killed_process_left_goes_with_the_next_one(tmp_path: Path) -> None:
    with _holder(tmp_path) as (process, left):
        _kill(process)
    assert (left / "inside" / "file").exists()
    _age(left)
    with _holder(tmp_path) as (_, path):
        assert [*tmp_path.iterdir()] == [path]


@pytest.mark.parametrize("reason", ["alive", "young", "of another purpose"])
def test_what_may_be_in_use_stays(tmp_path: Path, reason: str) -> None:
    with _holder(tmp_path, "other" if reason == "of another purpose" else "worker") as (process, path):
        if reason != "alive":
            _kill(process)
        if reason != "young":
            _age(path)
        with _holder(tmp_path):
            assert path.exists()


def test_what_is_no_folder_stays(tmp_path: Path) -> None:
    outside, link, file = (tmp_path / name for name in ("outside", "noetl-worker-link", "noetl-worker-file"))
    outside.mkdir()
    link.symlink_to(outside)
    file.write_text("")
    for path in (outside, link, file):
        os.utime(path, (0, 0), follow_symlinks=False)
    with _holder(tmp_path) as (_, path):
        assert {*tmp_path.iterdir()} == {outside, link, file, path}


def test_a_fork_that_ends_leaves_it(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", FORK],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        check=True,
    )
    assert ran.stdout.startswith(b"True")
    assert [*tmp_path.iterdir()] == []
