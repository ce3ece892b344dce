"""Looking at processes, by both ways that systems offer."""

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from noetl.tools.process.process_tree import (
    _resident_in_proc,
    _tree_by_ps,
    _tree_in_proc,
    kill_tree,
    resident_bytes,
    tree_pids,
)
from tests.tools.python_calls import ends

CODE = """
import os, signal, subprocess
held = bytearray(b"x" * 30_000_000)
stray = subprocess.Popen(["sleep", "1000"], start_new_session=True)
os.kill(stray.pid, signal.SIGSTOP)
os.waitpid(stray.pid, os.WUNTRACED)
print(stray.pid, flush=True)
os.kill(os.getpid(), signal.SIGSTOP)
"""
"""Both end up stopped: what they hold stays the same while it is looked at."""


@pytest.fixture
def leader() -> Iterator[tuple[subprocess.Popen[str], int]]:
    with subprocess.Popen(
        [sys.executable, "-c", CODE], stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stdout
        stray = int(process.stdout.readline())
        assert os.WIFSTOPPED(os.waitpid(process.pid, os.WUNTRACED)[1])
        yield process, stray
        kill_tree(process.pid)


def test_a_family_is_a_process_and_its_descendants(leader: tuple[subprocess.Popen[str], int]) -> None:
    process, stray = leader
    assert tree_pids(process.pid) == _tree_in_proc(process.pid) == [process.pid, stray]
    assert list(_tree_by_ps(process.pid)) == [process.pid, stray]


def test_memory_is_that_of_the_family(leader: tuple[subprocess.Popen[str], int]) -> None:
    process, _ = leader
    held = resident_bytes(process.pid)
    assert 30_000_000 < held < 200_000_000
    assert held == _resident_in_proc(process.pid)
    assert sum(_tree_by_ps(process.pid).values()) == pytest.approx(held, rel=0.2)


def test_a_family_is_killed_with_those_that_left_the_group(leader: tuple[subprocess.Popen[str], int]) -> None:
    process, stray = leader
    kill_tree(process.pid)
    assert process.wait() == -9
    assert ends(stray)
    kill_tree(process.pid)


def test_nothing_is_known_of_a_process_that_is_gone() -> None:
    with subprocess.Popen(["true"]) as process:
        process.wait()
    assert process.pid != os.getpid()
    assert resident_bytes(process.pid) == 0
