"""No process outlives its task, its tool or its worker."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from noetl.guest.frame import LENGTH, READY, SPENT, CodeAnswer, CodeRequest, pack, unpack
from noetl.model.outcome import Outcome
from noetl.tools.process import child_process
from noetl.tools.python.tool import PythonTool
from tests.tools.python_calls import call, ends, run

CHILDREN = ("pool", "fork")
SRC = Path(__file__).parents[2] / "src"
BUSY = """
import os, subprocess
helper = subprocess.Popen(["sleep", "1000"])
print(os.getpid(), helper.pid)
while True: pass
"""


class Heard:
    """The lines of a task's log, to be waited for."""

    def __init__(self) -> None:
        self.lines: asyncio.Queue[str] = asyncio.Queue()

    def __call__(self, line: str) -> None:
        self.lines.put_nowait(line)

    async def pids(self) -> list[int]:
        return [int(word) for word in (await self.lines.get()).split()]


def test_lines_come_while_the_code_runs(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    code = """
    import os, sys
    print("one")
    sys.stderr.write("two\\n")
    os.system("echo three")
    open(gate).read()
    print("ä" * 5, end="")
    """

    async def scenario() -> list[str]:
        heard = Heard()
        tool = PythonTool()
        task = asyncio.create_task(tool.run(call(code, args={"gate": str(gate)}, log=heard)))
        early = [await heard.lines.get() for _ in range(3)]
        assert not task.done()
        await asyncio.to_thread(gate.write_text, "go")
        await task
        await tool.close()
        return [*early, heard.lines.get_nowait()]

    assert asyncio.run(scenario()) == ["one", "two", "three", "äääää"]


@pytest.mark.parametrize("isolation", CHILDREN)
def test_cancelling_kills_the_code_within_a_second(isolation: str) -> None:
    async def scenario() -> None:
        heard = Heard()
        tool = PythonTool()
        task = asyncio.create_task(tool.run(call(BUSY, log=heard, spec={"isolation": isolation})))
        pids = await heard.pids()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        for pid in pids:
            assert await asyncio.to_thread(ends, pid, 1.0)
        assert (await tool.run(call("result = 1"))).result == 1
        await tool.close()

    asyncio.run(scenario())


def test_cancelling_what_waits_for_a_process_leaves_the_others_alone() -> None:
    async def scenario() -> Outcome:
        heard = Heard()
        tool = PythonTool(size=1)
        busy = asyncio.create_task(tool.run(call(BUSY, log=heard)))
        await heard.pids()
        waiting = asyncio.create_task(tool.run(call("result = 1")))
        next_one = asyncio.create_task(tool.run(call("result = 2")))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert not busy.done()
        busy.cancel()
        outcome = await next_one
        await tool.close()
        return outcome

    assert asyncio.run(scenario()).result == 2


@pytest.mark.parametrize("isolation", CHILDREN)
def test_closing_ends_busy_and_idle_processes(isolation: str) -> None:
    async def scenario() -> None:
        heard = Heard()
        tool = PythonTool()
        spec = {"isolation": isolation}
        code = "import os\nresult = [os.getpid(), os.getppid()]"
        busy = asyncio.create_task(tool.run(call(BUSY, log=heard, spec=dict(spec))))
        pids = await heard.pids()
        idle = (await tool.run(call(code, spec=dict(spec)))).result
        if isolation == "pool":
            idle.remove(os.getpid())
        await tool.close()
        await tool.close()
        outcome = await busy
        assert outcome.error
        assert outcome.error.kind == "cancelled"
        for pid in pids + idle:
            assert ends(pid)
        after = await tool.run(call("result = 1"))
        assert after.error
        assert after.error.kind == "cancelled"

    asyncio.run(scenario())


WORKER = """
import asyncio, json, sys
from tests.tools.python_calls import call
from noetl.tools.python.tool import PythonTool

async def main(code, isolation):
    tool = PythonTool()
    spec = {"isolation": isolation}
    outcome = await tool.run(call(code, spec=spec, timeout=60, log=lambda line: print(line, flush=True)))
    print("done", flush=True)
    await asyncio.Event().wait()

asyncio.run(main(*sys.argv[1:]))
"""
STUBBORN = """
import os, signal
for number in range(1, 32):
    try:
        signal.signal(number, signal.SIG_IGN)
    except OSError:
        pass
print(os.getpid(), os.getppid())
x = 10 ** (10 ** 9)  # never gives up the interpreter
"""
IDLE = "import os\nprint(os.getpid(), os.getppid())"


def test_a_spent_process_ends_when_its_worker_does() -> None:
    code = "import subprocess\nhelper = subprocess.Popen(['sleep', '1000'])\nresult = helper.pid"
    request = CodeRequest(
        code=code, name="<code>", args={}, folder="/", file_prefix="", max_inline=0, max_result=1000
    )
    for isolation in CHILDREN:
        notice, life = os.pipe()
        with subprocess.Popen(
            [sys.executable, "-P", "-c", child_process._START, str(SRC), isolation, str(notice)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=(notice,),
            start_new_session=True,
        ) as child:
            os.close(notice)
            assert child.stdin
            assert child.stdout
            child.stdin.write(pack(request))
            child.stdin.flush()
            assert child.stdout.read(len(READY)) == READY
            size = LENGTH.unpack(child.stdout.read(LENGTH.size))[0]
            answer = unpack(child.stdout.read(size), CodeAnswer)
            assert answer.spent
            os.close(life)
            assert child.wait() == -signal.SIGKILL
        assert ends(answer.result, 5.0)


def test_a_process_that_is_found_spent_begins_nothing_more() -> None:
    changing = CodeRequest(
        code="import os\nos.umask(0)\nresult = 1", name="<code>", args={}, folder="/", file_prefix="",
        max_inline=0, max_result=1000,
    )  # fmt: skip
    for isolation in CHILDREN:
        notice, life = os.pipe()
        with subprocess.Popen(
            [sys.executable, "-P", "-c", child_process._START, str(SRC), isolation, str(notice)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=(notice,),
            start_new_session=True,
        ) as child:
            os.close(notice)
            assert child.stdin
            assert child.stdout
            child.stdin.write(pack(changing) * 2)
            child.stdin.flush()
            assert child.stdout.read(len(READY)) == READY
            size = LENGTH.unpack(child.stdout.read(LENGTH.size))[0]
            answer = unpack(child.stdout.read(size), CodeAnswer)
            assert (answer.result, answer.spent) == (1, False)
            assert child.stdout.read(len(SPENT)) == SPENT
            os.close(life)
            assert child.stdout.read() == b""


def test_a_task_that_is_sent_to_a_spent_process_runs_in_another() -> None:
    # So many files are left open that to find them takes longer than to send the next task.
    change = call("import os\nleft = [os.dup(0) for _ in range(500)]\nresult = os.getpid()")
    # More than a pipe holds: a process that reads no more would leave the worker writing for ever.
    large = call("import os\nresult = [os.getpid(), len(text)]", args={"text": "x" * 1_000_000})
    small = call("import os\nresult = [os.getpid(), 0]")
    for after in (large, small):
        first, second = (outcome.result for outcome in run(change, after))
        assert second[0] != first
        assert second[1] in (0, 1_000_000)


@pytest.mark.parametrize("isolation", CHILDREN)
@pytest.mark.parametrize("code", [BUSY, STUBBORN, IDLE])
def test_no_process_outlives_a_worker_that_is_killed(isolation: str, code: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", WORKER, code, isolation],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ) as worker:
        assert worker.stdout
        pids = [int(word) for word in worker.stdout.readline().split()]
        if code is IDLE:
            assert worker.stdout.readline() == "done\n"
        worker.send_signal(signal.SIGKILL)
        worker.wait()
    assert all(ends(pid, 5.0) for pid in pids)
