"""What code does wrong is told in the lines of that code."""

from functools import cache
from pathlib import Path

import pytest

from noetl.model.outcome import Outcome
from tests.tools.python_calls import call, failure_of, kind_and_message, run

ISOLATIONS = ("pool", "fork", "inline")


@pytest.mark.spec("000 §5 (2)")
@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_an_exception_tells_its_type_message_and_place(isolation: str) -> None:
    code = """
    def helper(rows):
        return rows[7]

    def main():
        return helper([])
    """
    outcome = failure_of(code, spec={"isolation": isolation})
    assert kind_and_message(outcome) == ("python", "IndexError: list index out of range")
    about = outcome.helpers["py"]
    assert about["exception_type"] == about["exception"] == "IndexError"
    assert about["message"] == "list index out of range"
    lines = [line.strip() for line in about["traceback"].splitlines() if "^" not in line and "~" not in line]
    assert lines == [
        "Traceback (most recent call last):",
        'File "<code>", line 6, in main',
        "return helper([])",
        'File "<code>", line 3, in helper',
        "return rows[7]",
        "IndexError: list index out of range",
    ]


def test_a_cause_is_told_too() -> None:
    code = "try:\n    1 / 0\nexcept ZeroDivisionError as error:\n    raise ValueError('two') from error"
    trace = failure_of(code).helpers["py"]["traceback"]
    assert (
        trace.index('File "<code>", line 2')
        < trace.index("direct cause")
        < trace.index("line 4, in <module>")
    )
    assert "noetl" not in trace


def test_nothing_of_ours_stands_in_a_traceback_of_awaited_code() -> None:
    code = "import asyncio\nasync def main():\n    await asyncio.wait_for(work(), 5)\nasync def work():\n    raise OSError('x')"
    trace = failure_of(code).helpers["py"]["traceback"]
    assert trace.splitlines()[1] == '  File "<code>", line 3, in main'
    assert "noetl" not in trace


def test_a_script_is_named_in_its_tracebacks(tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text("def main():\n    raise KeyError('k')\n")
    trace = failure_of(script="job.py", folder=tmp_path).helpers["py"]["traceback"]
    assert 'File "job.py", line 2, in main' in trace
    assert "raise KeyError('k')" in trace


def test_code_that_does_not_compile_tells_the_line() -> None:
    outcome = failure_of("x = 1\nresult = = 2")
    assert outcome.helpers["py"]["exception_type"] == "SyntaxError"
    assert "line 2" in kind_and_message(outcome)[1]


RAISED = [
    ("import sys\nsys.exit(3)", "SystemExit: 3"),
    ("raise SystemExit", "SystemExit"),
    ("raise KeyboardInterrupt", "KeyboardInterrupt"),
    ("def main(): exit(0)", "SystemExit: 0"),
    ("raise BaseException('x')", "BaseException: x"),
    ("def main(a): return a", "TypeError: main() missing 1 required positional argument: 'a'"),
    ("def f(): return f()\nf()", "RecursionError: maximum recursion depth exceeded"),
    ("class E(Exception):\n    def __str__(self): raise E\nraise E", "E: (its text cannot be shown)"),
    ("raise ValueError('\\ud800')", "ValueError: \\ud800"),
    ("assert False", "AssertionError"),
]  # fmt: skip


@cache
def outcomes_with(isolation: str) -> list[Outcome]:
    """Of all that is raised, and after each of code that lives, one after the other on one tool."""
    codes = (code for raised, _ in RAISED for code in (raised, "result = 'alive'"))
    return run(*(call(code, spec={"isolation": isolation}) for code in codes))


@pytest.mark.parametrize("isolation", ISOLATIONS)
@pytest.mark.parametrize("number", range(len(RAISED)), ids=[code for code, _ in RAISED])
def test_whatever_is_raised_ends_the_task_alone(isolation: str, number: int) -> None:
    outcome, after = outcomes_with(isolation)[2 * number :][:2]
    assert outcome.status == "error"
    assert kind_and_message(outcome) == ("python", RAISED[number][1])
    assert after.result == "alive"


@pytest.mark.parametrize("isolation", ["pool", "fork"])
def test_there_is_nobody_to_ask(isolation: str) -> None:
    outcome = failure_of("input()", spec={"isolation": isolation})
    assert kind_and_message(outcome) == ("python", "EOFError: EOF when reading a line")


def test_what_is_told_is_bounded() -> None:
    outcome = failure_of("raise ValueError('x' * 10_000_000)")
    assert len(kind_and_message(outcome)[1]) < 10_000
    assert len(outcome.helpers["py"]["traceback"]) < 40_000


@pytest.mark.parametrize(
    ("code", "path"),
    [
        ("result = {'a': [1, {2, 3}]}", "`$.a[1]` is of type `set`"),
        ("def main(): return float('nan')", "`$` is nan"),
        ("result = []\nresult.append(result)", "`$[0]` contains itself"),
        ("result = {(1, 2): 3}", "`$` has the key `(1, 2)` of type `tuple`: keys are text"),
        ("result = {'a': {1: 2, '1': 3}}", "`$.a` has two keys that are `1` in JSON"),
        ("async def work(): pass\nresult = work()\nresult.close()", "`coroutine`"),
    ],
)
def test_a_result_that_is_not_json_names_the_place(code: str, path: str) -> None:
    kind, message = kind_and_message(failure_of(code))
    assert kind == "python"
    assert message.startswith("the result is not JSON: ")
    assert path in message
