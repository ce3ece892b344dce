"""Tasks share warm processes, and nothing else."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from noetl.model.outcome import Outcome
from noetl.tools.python.tool import PythonTool
from tests.tools.python_calls import call, ends, results, run

PID = "import os\nresult = os.getpid()"


def test_a_process_is_used_again() -> None:
    first, second, third = results(PID, PID, PID)
    assert first == second == third != os.getpid()


def test_globals_of_one_task_are_not_seen_by_the_next() -> None:
    probe = "result = sorted(n for n in globals() if not n.startswith('__'))"
    first, *rest = run(call("secret = 1\ndef main(): pass"), call(probe, args={"a": 1}), call(probe))
    assert first.status == "ok"
    assert [outcome.result for outcome in rest] == [["a", "args", "input_data"], ["args", "input_data"]]


def test_what_a_task_does_to_its_surroundings_is_undone(tmp_path: Path) -> None:
    probe = """
    import os, sys, math
    result = [os.getpid(), os.getcwd(), dict(os.environ), sys.path, sys.argv, os.path.exists("x"),
              str(sys.stdout), "faked" in sys.modules, "os" in sys.modules, sys.modules["math"] is math]
    """
    spoil = """
    import io, math, os, sys, types
    os.environ["LEAK"] = os.environ.pop("PATH")
    os.chdir("/")
    sys.path[:] = ["/tmp"]
    sys.argv = ["x"]
    sys.stdout = sys.stderr = io.StringIO()
    sys.modules["faked"] = types.ModuleType("faked")
    sys.modules["math"] = types.ModuleType("math")
    del sys.modules["os"]
    """
    before, _, after = run(call(probe), call(spoil, spec={"env": {"GIVEN": 1}}), call(probe))
    assert before.result == after.result
    assert before.result[9]


@pytest.mark.parametrize(
    "spoil",
    [
        "import os\nos.umask(0o777)",
        "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)",
        "import signal\nsignal.alarm(100)",
        "import sys\nsys.setrecursionlimit(50_000)",
        "import sys\nsys.settrace(lambda *a: None)",
        "import sys\nsys.stdout.close()",
        "import os\nos.close(2)",
        "import os\nos.dup2(0, 1)",
        "import gc\ngc.disable()",
        "import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (64, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))",
        "import shutil, os\nos.mkdir('gone')\nos.chdir('gone')\nos.rmdir('../gone')",
    ],
)  # fmt: skip
def test_a_process_that_is_no_longer_as_it_was_is_replaced(spoil: str, tmp_path: Path) -> None:
    lines: list[str] = []
    first, second, third = run(
        call(PID), call(spoil, folder=tmp_path), call(PID + "\nprint('heard')", log=lines.append)
    )
    assert second.status == "ok"
    assert lines == ["heard"]
    if "chdir" in spoil:  # that can be undone
        assert third.result == first.result
    else:
        assert third.result != first.result


def test_installed_modules_stay_warm() -> None:
    code = "import sys\nwarm = 'colorsys' in sys.modules\nimport colorsys, xml.dom\nresult = [warm, id(colorsys)]"
    cold, warm = run(call(code), call(code))
    assert cold.result == [False, warm.result[1]]
    assert warm.result[0] is True


def test_modules_beside_a_script_are_imported_afresh(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "job.py").write_text("import os, shared\nresult = [shared.NAME, os.getpid()]")
        (tmp_path / name / "shared.py").write_text(f"NAME = {name!r}")
    first, second = run(call(script="a/job.py", folder=tmp_path), call(script="b/job.py", folder=tmp_path))
    assert [first.result[0], second.result[0]] == ["a", "b"]
    assert first.result[1] == second.result[1]


def test_fork_gives_every_task_a_fresh_process() -> None:
    code = "import os, sys\nwarm = 'colorsys' in sys.modules\nimport colorsys\nresult = [os.getpid(), os.getppid(), warm]"
    processes = [outcome.result for outcome in run(*[call(code, spec={"isolation": "fork"})] * 3)]
    assert len({pid for pid, _, _ in processes}) == 3
    assert len({parent for _, parent, _ in processes}) == 1
    assert [warm for _, _, warm in processes] == [False] * 3


def test_inline_runs_in_the_worker() -> None:
    lines: list[str] = []
    code = PID + "\nimport sys\nprint('a', 'b', sep='\\n', end='c')\nprint('x', file=sys.__stderr__)"
    (outcome,) = run(call(code, spec={"isolation": "inline"}, log=lines.append))
    assert outcome.result == os.getpid()
    assert lines == ["a", "bc"]


def test_inline_code_that_does_not_end_is_left_alone_but_not_waited_for(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    stuck = call(
        "with open(gate) as file: file.read()",
        args={"gate": str(gate)},
        spec={"isolation": "inline"},
        timeout=0.2,
    )
    (outcome,) = run(stuck)
    assert outcome.error
    assert outcome.error.kind == "timeout"
    gate.write_text("go on")


def test_inline_tasks_that_add_to_the_environment_take_turns() -> None:
    code = "import os, threading\nthreading.Event().wait(0.01)\nresult = os.environ['TURN']"

    async def scenario() -> list[Outcome]:
        tool = PythonTool()
        calls = [call(code, spec={"isolation": "inline", "env": {"TURN": turn}}) for turn in "abc"]
        outcomes = await asyncio.gather(*map(tool.run, calls))
        await tool.close()
        return outcomes

    assert [outcome.result for outcome in asyncio.run(scenario())] == ["a", "b", "c"]
    assert "TURN" not in os.environ


def meet(tmp_path: Path, count: int) -> list[Any]:
    """Calls that end only when all of them run at once."""
    code = """
    import os
    open(ring, "w").close()
    open(gate).close()
    result = os.getpid()
    """
    calls = []
    for number in range(count):
        args: Any = {"ring": str(tmp_path / f"ring{number}"), "gate": str(tmp_path / f"gate{number}")}
        for fifo in args.values():
            os.mkfifo(fifo)
        calls.append(call(code, args=args))
    return calls


def rung(tmp_path: Path, number: int) -> None:
    (tmp_path / f"ring{number}").read_text()


def let_go(tmp_path: Path, number: int) -> None:
    (tmp_path / f"gate{number}").write_text("")


def test_the_pool_grows_as_tasks_come_and_no_further_than_it_may(tmp_path: Path) -> None:
    async def scenario() -> list[Outcome]:
        tool = PythonTool(size=2)
        tasks = [asyncio.create_task(tool.run(tool_call)) for tool_call in meet(tmp_path, 3)]
        for number in (0, 1):
            await asyncio.to_thread(rung, tmp_path, number)
        for number in (0, 1):
            await asyncio.to_thread(let_go, tmp_path, number)
        await asyncio.to_thread(rung, tmp_path, 2)
        await asyncio.to_thread(let_go, tmp_path, 2)
        outcomes = await asyncio.gather(*tasks)
        await tool.close()
        return outcomes

    first, second, third = [outcome.result for outcome in asyncio.run(scenario())]
    assert first != second
    assert third in (first, second)


def test_waiting_for_a_process_counts_as_time(tmp_path: Path) -> None:
    async def scenario() -> Outcome:
        tool = PythonTool(size=1)
        (holding,) = meet(tmp_path, 1)
        task = asyncio.create_task(tool.run(holding))
        await asyncio.to_thread(rung, tmp_path, 0)
        late = await tool.run(call("result = 1", timeout=0.2))
        await asyncio.to_thread(let_go, tmp_path, 0)
        assert (await task).status == "ok"
        await tool.close()
        return late

    late = asyncio.run(scenario())
    assert late.error
    assert late.error.kind == "timeout"


def test_a_process_is_replaced_after_many_tasks() -> None:
    first, second, third = results(PID, PID, PID, uses=2)
    assert first == second != third


def test_a_process_that_is_idle_for_long_ends() -> None:
    async def scenario() -> bool:
        tool = PythonTool(idle=0.05)
        outcome = await tool.run(call(PID))
        gone = await asyncio.to_thread(ends, outcome.result)
        await tool.close()
        return gone

    assert asyncio.run(scenario())


def test_an_idle_process_that_somebody_killed_is_replaced() -> None:
    async def scenario() -> tuple[Outcome, Outcome]:
        tool = PythonTool()
        first = await tool.run(call(PID))
        os.kill(first.result, 9)
        await asyncio.to_thread(ends, first.result)
        second = await tool.run(call(PID))
        await tool.close()
        return first, second

    first, second = asyncio.run(scenario())
    assert second.status == "ok", second
    assert first.result != second.result
