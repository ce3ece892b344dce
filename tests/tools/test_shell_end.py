"""How the programs of `shell` tasks end: by themselves, in time, or with the worker."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from noetl.model.outcome import Outcome
from noetl.tools.process.orphan_killer import OrphanKiller
from noetl.tools.shell.tool import ShellTool
from tests.tools.python_calls import ends
from tests.tools.shell_calls import call, error_of, result_of, with_tool

FAMILY = "sleep 1000 & echo $!; echo $$; setsid sleep 1000 & echo $!; "
"""Prints the numbers of a child, of the shell itself, and of a child in a session of its own."""
TIME_TO_BEGIN = 3
"""Seconds in which a command prints what it begins with, on a busy machine, too."""


def test_a_command_that_takes_too_long_is_stopped_with_all_it_started() -> None:
    lines: list[str] = []
    error = error_of(FAMILY + "wait", timeout=TIME_TO_BEGIN, log=lines.append)
    assert (error.kind, error.retryable) == ("timeout", True)
    assert error.message == "the command was not done within 3 s"
    assert all(ends(int(line)) for line in lines)
    assert len(lines) == 3


def test_a_stopped_command_may_tidy_up(tmp_path: Path) -> None:
    lines: list[str] = []
    command = f"trap 'echo tidy; touch {tmp_path}/tidied; exit' TERM; echo here; sleep 1000 & wait"
    assert error_of(command, timeout=TIME_TO_BEGIN, grace=60, log=lines.append).kind == "timeout"
    assert lines == ["here", "tidy"]
    assert (tmp_path / "tidied").exists()


def test_a_command_that_will_not_stop_is_killed() -> None:
    lines: list[str] = []
    command = "trap '' TERM; " + FAMILY + "while true; do sleep 1000; done"
    assert error_of(command, timeout=TIME_TO_BEGIN, log=lines.append).kind == "timeout"
    assert all(ends(int(line)) for line in lines)
    assert len(lines) == 3


@pytest.mark.parametrize("trap", ["", "trap '' TERM; "])
def test_a_cancelled_command_ends_with_all_it_started(trap: str) -> None:
    lines: list[str] = []

    async def cancelled(tool: ShellTool) -> None:
        there = asyncio.Event()

        def log(line: str) -> None:
            lines.append(line)
            if line == "there":
                there.set()

        running = asyncio.create_task(
            tool.run(call(trap + "sleep 1000 & echo $!; echo $$; echo there; wait; wait", log=log))
        )
        await there.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    with_tool(cancelled)
    assert all(ends(int(line)) for line in lines[:2])
    assert lines[2:] == ["there"]


def test_a_second_cancellation_kills_at_once() -> None:
    lines: list[str] = []

    async def cancelled(tool: ShellTool) -> None:
        there, stopping = asyncio.Event(), asyncio.Event()

        def log(line: str) -> None:
            lines.append(line)
            (stopping if line == "stopping" else there).set()

        command = "trap 'echo stopping' TERM; echo $$; while true; do sleep 0.01; done"
        running = asyncio.create_task(tool.run(call(command, log=log)))
        for event in (there, stopping):
            await event.wait()
            running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    with_tool(cancelled, grace=1_000)
    assert ends(int(lines[0]))


def test_what_a_command_leaves_behind_ends_with_the_task() -> None:
    result = result_of("sleep 1000 & echo $!")
    assert ends(int(result["stdout"]))


def test_what_is_left_behind_may_say_its_last_words(tmp_path: Path) -> None:
    """It says them when the end of the shell has closed the pipe between them."""
    command = "mkfifo end; (cat end; echo late) & exec 3>end; echo early"
    assert result_of(command, folder=tmp_path)["stdout"] == "early\nlate\n"


def test_a_process_that_left_the_group_does_not_hold_up_the_task() -> None:
    result = result_of("setsid sleep 1000 & echo $!", timeout=20)
    os.kill(int(result["stdout"]), signal.SIGKILL)


VICTIM = """
import asyncio, os, sys
from tests.tools.shell_calls import call
from noetl.tools.shell.tool import ShellTool

async def main():
    tool = ShellTool()
    async def one(command):
        await tool.run(call(command, log=lambda line: print(line, flush=True)))
    await tool.run(call(["true"]))
    await asyncio.gather(one("trap '' TERM HUP INT; sleep 1000 & echo $!; echo $$; wait"), one("echo $$; exec sleep 1000"))

asyncio.run(main())
"""


def test_the_death_of_the_worker_is_the_end_of_its_programs() -> None:
    root = Path(__file__).parents[2]
    path = os.pathsep.join(str(folder) for folder in (root / "src", root))
    with subprocess.Popen(
        [sys.executable, "-c", VICTIM], env={**os.environ, "PYTHONPATH": path}, stdout=subprocess.PIPE
    ) as worker:
        assert worker.stdout is not None
        pids = [int(worker.stdout.readline()) for _ in range(3)]
        worker.kill()
    assert all(ends(pid) for pid in pids)


KILLED_EARLY = """
import asyncio, os, signal, subprocess
from pathlib import Path
from noetl.tools.process.orphan_killer import OrphanKiller
from noetl.tools.process.program import Program

class Late(OrphanKiller):
    def watch(self, leader):
        print(leader, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)

async def main():
    command = ["sh", "-c", "trap '' TERM HUP INT; sleep 1000 & wait"]
    Program(command, folder=Path("/"), env={}, stdin=subprocess.DEVNULL, orphan_killer=Late())

asyncio.run(main())
"""


def test_a_program_ends_with_a_worker_that_dies_before_its_guard_knows_the_program() -> None:
    root = Path(__file__).parents[2]
    with subprocess.Popen(
        [sys.executable, "-c", KILLED_EARLY],
        env={**os.environ, "PYTHONPATH": str(root / "src")},
        stdout=subprocess.PIPE,
    ) as worker:
        assert worker.stdout is not None
        pid = int(worker.stdout.readline())
    assert worker.returncode == -signal.SIGKILL
    ended = ends(pid)
    if not ended:
        os.killpg(pid, signal.SIGKILL)
    assert ended


def test_a_program_that_could_not_start_is_not_expected() -> None:
    """What has the pipe afterwards is left alone."""
    killer = OrphanKiller()
    out, pipe = os.pipe()
    with subprocess.Popen(["sleep", "1000"], start_new_session=True, stdout=pipe) as other:
        killer.expect(out)
        killer.expect(None)
        assert killer._process is not None
        assert killer._process.stdin is not None
        killer._process.stdin.close()
        assert killer._process.wait() == 0
        assert other.poll() is None
        killer.close()
        other.kill()
    os.close(out)
    os.close(pipe)


def sleeper() -> "subprocess.Popen[bytes]":
    return subprocess.Popen(["sleep", "1000"], start_new_session=True)


def test_a_guard_that_was_killed_is_replaced() -> None:
    killer = OrphanKiller()
    with sleeper() as first, sleeper() as second:
        killer.watch(first.pid)
        assert killer._process is not None
        before = killer._process
        before.kill()
        before.wait()
        killer.watch(second.pid)
        assert killer._process is not before
        assert killer._process.stdin is not None
        killer._process.stdin.close()  # as the death of the worker would
        assert (first.wait(), second.wait()) == (-signal.SIGKILL, -signal.SIGKILL)
        killer.close()


def test_a_guard_leaves_alone_what_it_was_told_to_forget() -> None:
    killer = OrphanKiller()
    with sleeper() as forgotten, sleeper() as watched:
        killer.watch(forgotten.pid)
        killer.watch(watched.pid)
        killer.forget(forgotten.pid)
        assert killer._process is not None
        assert killer._process.stdin is not None
        killer._process.stdin.close()
        assert watched.wait() == -signal.SIGKILL
        assert killer._process.wait() == 0
        assert forgotten.poll() is None
        killer.close()
        killer.close()
        forgotten.kill()


def test_a_tool_that_is_closed_begins_nothing() -> None:
    async def closed(tool: ShellTool) -> Outcome:
        await tool.close()
        return await tool.run(call(["true"]))

    outcome = with_tool(closed)
    assert outcome.error is not None
    assert (outcome.error.kind, outcome.error.message) == ("cancelled", "the worker is ending")


def test_a_system_without_handles_of_processes_will_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("noetl.tools.process.program.exit_handle", lambda _pid: None)
    assert result_of("sleep 1000 & echo $!; exit 0")["exit_code"] == 0
    assert error_of("exit 3").details == {"exit_code": 3}
    lines: list[str] = []
    assert error_of(FAMILY + "wait", timeout=1, log=lines.append).kind == "timeout"
    assert all(ends(int(line)) for line in lines)
