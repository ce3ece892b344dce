"""How `noetl run` stops before its end, and who goes on."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.cli.command_line import COMMAND, CompletedCommand, environment, run


def test_a_timeout_fails_the_execution(folder: Path) -> None:
    os.mkfifo(folder / "fifo")
    arguments = ["slow.yaml", "--set", f"file={folder}/fifo", "--timeout", "300ms"]
    ran = run("run", *arguments, "-q", "-o", "json", cwd=folder)
    assert ran.code == 1
    assert (ran.json["status"], ran.json["error"]["kind"]) == ("failed", "timeout")


class Slow:
    """A run whose first task waits in the middle of its attempt, until something is written to its pipe."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        fifo = folder / "fifo"
        os.mkfifo(fifo)
        self.said = ""
        # Not buffered, so that what `stop` does not read is still there for `end`.
        self.child = subprocess.Popen(
            [*COMMAND, "run", "slow.yaml", "--set", f"file={fifo}", *arguments],
            cwd=folder,
            env=environment(folder),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
        )
        # Opening returns when the task has opened the other end: its attempt is in flight now.
        self.pipe = open(fifo, "w")  # noqa: SIM115 - closed by `let_go`

    def __enter__(self) -> "Slow":
        return self

    def __exit__(self, *_: object) -> None:
        self.pipe.close()
        with self.child:
            self.child.kill()

    def stop(self, number: int) -> None:
        """Sends a signal; returns when the command has said that it heard."""
        assert self.child.stderr is not None
        self.child.send_signal(number)
        while "again kills" not in self.said and (line := self.child.stderr.readline()):
            self.said += line.decode()

    def let_go(self, text: str) -> CompletedCommand:
        self.pipe.write(text)
        self.pipe.close()
        return self.end()

    def end(self) -> CompletedCommand:
        out, err = self.child.communicate()
        return CompletedCommand(self.child.returncode, out.decode(), self.said + err.decode())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_after_the_attempt_in_flight_and_it_can_be_resumed(number: int, folder: Path) -> None:
    with Slow(folder, "-o", "json") as slow:
        slow.stop(number)
        ran = slow.let_go("written")
    assert (ran.code, ran.json["status"], ran.json["result"]) == (1, "running", None)
    execution = ran.json["execution_id"]
    command = f"noetl run --resume {execution}"
    assert ran.err.splitlines()[-1] == f"interrupted; go on with: {command}"
    resumed = run(*command.split()[1:], "-q", "-o", "json", cwd=folder)
    assert resumed.code == 0
    assert resumed.json["result"] == "written and more"
    assert resumed.json["execution_id"] == execution
    again = run(*command.split()[1:], "-q", "-o", "json", cwd=folder)
    assert (again.code, again.json) == (0, resumed.json)


def test_a_second_signal_kills(folder: Path) -> None:
    with Slow(folder) as slow:
        slow.stop(signal.SIGINT)
        slow.child.send_signal(signal.SIGINT)
        ran = slow.end()
    assert (ran.code, ran.out) == (1, "")
    command = ran.err.splitlines()[-1].partition("go on with: ")[2]
    assert command.startswith("noetl run --resume ")
    (folder / "fifo").unlink()
    (folder / "fifo").write_text("now")
    resumed = run(*command.split()[1:], cwd=folder)
    assert (resumed.code, resumed.out) == (0, "now and more\n")


def test_two_processes_do_not_run_one_execution(folder: Path) -> None:
    with Slow(folder, "--idempotency-key", "one") as slow:
        same = ("--set", f"file={folder / 'fifo'}", "--idempotency-key", "one")
        ran = run("run", "slow.yaml", *same, "-o", "json", cwd=folder)
        assert (ran.code, ran.json["error"]["code"]) == (2, "running")
        assert slow.let_go("x").code == 0
