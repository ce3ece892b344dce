"""Code that crashes, floods or grows ends its task, and never the worker."""

import asyncio
import os

import pytest

from noetl.tools.python.tool import PythonTool
from tests.tools.python_calls import call, ends, failure_of, kind_and_message, result_of, run

CHILDREN = ("pool", "fork")


@pytest.mark.spec("000 §5 (1)")
@pytest.mark.parametrize("isolation", CHILDREN)
@pytest.mark.parametrize(
    ("code", "message", "retryable"),
    [
        ("import os\nos._exit(3)", "the process ended with exit code 3 before the code was done", False),
        ("import os\nos._exit(0)", "the process ended with exit code 0 before the code was done", False),
        ("import ctypes\nctypes.string_at(0)", "the process was killed by SIGSEGV", False),
        ("import os\nos.abort()", "the process was killed by SIGABRT", False),
        ("import os\nos.kill(os.getpid(), 9)", "the process was killed by SIGKILL", True),
    ],
)
def test_a_crash_is_an_outcome(isolation: str, code: str, message: str, retryable: bool) -> None:
    outcome = failure_of(code, spec={"isolation": isolation})
    assert kind_and_message(outcome) == ("process_exit", message)
    assert outcome.error
    assert outcome.error.retryable is retryable


def test_a_crash_tells_its_line_in_the_log() -> None:
    lines: list[str] = []
    failure_of("import ctypes\n\nctypes.string_at(0)", log=lines.append)
    assert any('File "<code>", line 3' in line for line in lines)


@pytest.mark.parametrize("isolation", CHILDREN)
@pytest.mark.parametrize(
    "code",
    [
        "while True: pass",
        "import time\ntime.sleep(1000)",
        "while True:\n    try:\n        while True: pass\n    except BaseException: pass",
        "import signal\nfor n in range(1, 32):\n    try: signal.signal(n, signal.SIG_IGN)\n    except OSError: pass\nwhile True: pass",
        "x = 10 ** (10 ** 9)",
    ],
)
def test_code_that_does_not_end_is_stopped(isolation: str, code: str) -> None:
    outcome = failure_of(code, timeout=0.5, spec={"isolation": isolation})
    assert kind_and_message(outcome) == ("timeout", "the code was not done within 0.5 s")
    assert outcome.error
    assert outcome.error.retryable


@pytest.mark.parametrize("isolation", CHILDREN)
@pytest.mark.parametrize(
    "code",
    [
        "rows = []\nwhile True: rows.append('x' * 1_000_000)",
        "import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'x = bytearray(300_000_000)\\nwhile True: pass'])",
    ],
)
def test_code_that_takes_too_much_memory_is_stopped(isolation: str, code: str) -> None:
    outcome = failure_of(code, spec={"isolation": isolation, "memory": "100MB"})
    assert kind_and_message(outcome) == ("limit", "the code used more than 100,000,000 bytes of memory")


def test_memory_is_counted_from_where_the_task_begins() -> None:
    first, second = run(
        call("import colorsys\ncolorsys.kept = bytearray(b'x' * 150_000_000)\nresult = 1"),
        call("import colorsys\nresult = len(colorsys.kept)", spec={"memory": "50 MiB"}),
    )
    assert (first.result, second.result) == (1, 150_000_000)


def test_memory_that_the_system_refuses_is_a_limit() -> None:
    outcome = failure_of("x = bytearray(1 << 60)")
    assert kind_and_message(outcome)[0] == "limit"
    assert outcome.helpers["py"]["exception_type"] == "MemoryError"


def test_what_memory_runs_out_for_is_users_code_first() -> None:
    assert result_of("result = open('/proc/self/oom_score_adj').read()") == "1000\n"


@pytest.mark.parametrize(
    "code", ["while True: print('x' * 1000)", "import os\nwhile True: os.write(1, b'x' * 65536)"]
)
def test_a_flood_of_output_is_stopped(code: str) -> None:
    longest = 0

    def log(line: str) -> None:
        nonlocal longest
        longest = max(longest, len(line))

    outcomes = run(call(code, log=log), call("result = 1"), max_output=5_000_000)
    assert kind_and_message(outcomes[0]) == ("limit", "the code printed more than 5,000,000 bytes")
    assert outcomes[1].result == 1
    assert longest < 10_000


def test_a_result_that_is_too_large_is_refused() -> None:
    outcomes = run(call("result = 'x' * 2_000_000"), call("result = 'x' * 900_000"), max_result=1_000_000)
    kind, message = kind_and_message(outcomes[0])
    assert kind == "limit"
    assert message.startswith("the result has 2,000,0")
    assert outcomes[1].result == "x" * 900_000


def test_values_of_megabytes_go_both_ways() -> None:
    rows = [{"id": number, "text": "x" * 100} for number in range(30_000)]
    assert result_of("result = rows", args={"rows": rows}) == rows


@pytest.mark.parametrize(
    "code",
    [
        "import os\nos.closerange(3, 4096)\nresult = 1",
        "import os, struct\nfor fd in range(100, 110):\n    try: os.write(fd, struct.pack('<Q', 1 << 60) + b'x')\n    except OSError: pass\nresult = 1",
        "import os, struct\nfor fd in range(100, 110):\n    try: os.write(fd, struct.pack('<Q', 3) + b'xyz')\n    except OSError: pass\nresult = 1",
    ],
)  # fmt: skip
def test_code_that_breaks_the_pipes_ends_its_own_process(code: str) -> None:
    assert kind_and_message(failure_of(code))[0] == "process_exit"


def test_code_that_forks_and_comes_back_twice_answers_once() -> None:
    assert run(*[call("import os\nresult = os.fork() > 0")] * 3)[2].result is True


def ends_with_its_task(code: str, isolation: str) -> bool:
    """Whether the process whose number the code gives is gone after its task, while the tool lives on."""

    async def scenario() -> bool:
        tool = PythonTool()
        outcome = await tool.run(call(code, spec={"isolation": isolation}))
        gone = await asyncio.to_thread(ends, outcome.result)
        await tool.close()
        return gone

    return asyncio.run(scenario())


@pytest.mark.parametrize("isolation", CHILDREN)
@pytest.mark.parametrize("session", [True, False])
def test_processes_left_behind_end_with_the_task(isolation: str, session: bool) -> None:
    code = f"""
    import subprocess
    result = subprocess.Popen(["sleep", "1000"], start_new_session={session}).pid
    """
    assert ends_with_its_task(code, isolation)


@pytest.mark.parametrize("isolation", CHILDREN)
def test_threads_left_behind_end_with_the_task(isolation: str) -> None:
    code = """
    import os, threading, time
    def work():
        while True: print("still here", time.sleep(0.001))
    threading.Thread(target=work).start()
    result = os.getpid()
    """
    assert ends_with_its_task(code, isolation)


@pytest.mark.parametrize("isolation", CHILDREN)
def test_a_crash_takes_what_the_code_started_with_it(isolation: str) -> None:
    code = "import os, subprocess\nprint(subprocess.Popen(['sleep', '1000']).pid)\nos._exit(1)"
    lines: list[str] = []
    failure_of(code, log=lines.append, spec={"isolation": isolation})
    assert ends(int(lines[0]))


def test_a_crash_is_seen_though_a_copy_holds_the_pipes() -> None:
    code = "import os, time\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(1000)\nos._exit(4)"
    lines: list[str] = []
    outcome = failure_of(code.replace("os.setsid()", "print(os.getpid())"), log=lines.append)
    assert "exit code 4" in kind_and_message(outcome)[1]
    if lines:  # the copy may have been killed before it came to print
        assert ends(int(lines[0]))


def test_a_child_that_cannot_start_is_told() -> None:
    lines: list[str] = []
    env = {**os.environ, "PYTHONHOME": "/nowhere"}
    (outcome,) = run(call("result = 1", log=lines.append), env=env)
    kind, message = kind_and_message(outcome)
    assert kind == "tool"
    assert "could not start" in message
    assert lines
