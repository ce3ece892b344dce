from itertools import product

import pytest

from noetl.dsl.document.kinds import Fault
from noetl.guest.code import compile_code
from noetl.tools.python.kind import syntax_error


def fault(code: str) -> Fault:
    problem = syntax_error(code, "code")
    assert problem is not None
    assert problem.key == "code"
    return problem


@pytest.mark.parametrize(
    "code",
    [
        "",
        "result = 1",
        "return 1",
        "if x:\n    return\nelse:\n    return 2",
        "for i in xs:\n    if i:\n        return i\n    break",
        "def main(a):\n    return a",
        "async def main():\n    await f()\n    return 1",
        "class A:\n    def f(self):\n        return 1",
        "from __future__ import annotations\nfrom math import *\nresult = pi",
        "global a\na = 1",
        "result = {{1: 2}[1]}",
        "result = '\\d'",
    ],
)
def test_code_that_compiles_is_accepted(code: str) -> None:
    assert syntax_error(code, "code") is None


@pytest.mark.parametrize(
    ("code", "line"),
    [
        ("result = 1\nresult =", 2),
        ("x = 1\nbreak", 2),
        ("def f(a, a): pass", 1),
        ("class A:\n    return 1", 2),
        ("x = 1\n\nyield x", 3),
        ("return 1\nnonlocal a", 2),
        ("if x:\nresult = 1", 2),
    ],
)
def test_code_that_does_not_compile_names_the_line(code: str, line: int) -> None:
    assert fault(code).line == line


def test_await_belongs_into_main() -> None:
    assert "async def main" in fault("x = await f()").hint
    assert "async def main" in fault("async with f(): pass").hint
    assert "async def main" in fault("x = [i async for i in f()]").hint


def test_a_template_in_code_is_told_to_use_args() -> None:
    assert "`args`" in fault("{% if x %}\nresult = 1\n{% endif %}").hint


@pytest.mark.parametrize("code", ["a\0b", "(" * 5000, "-" * 100_000 + "1"])
def test_monstrous_code_is_a_fault_and_no_crash(code: str) -> None:
    assert fault(code).message


FIRST = ["", "from __future__ import annotations\n", "x = [\n", "global a\n", "'text'\n"]
STATEMENTS = [
    "a = 1",
    "return 1",
    "return",
    "if a:\n    return a",
    "def f():\n    return 1",
    "class A:\n    return 1",
    "yield a",
    "await a",
    "a = lambda: (yield)",
    "break",
    "for a in b:\n    return a\n    break",
    "nonlocal a",
    "from math import *",
    "a: int = 1",
    "def f(a, a): pass",
    "=",
]


@pytest.mark.parametrize("first", FIRST)
def test_code_compiles_as_it_is_where_it_does_with_its_returns(first: str) -> None:
    """The quick look at code, which leaves a `return` of its own to the slow one, finds what that finds."""
    for lines in product(STATEMENTS, repeat=2):
        code = first + "\n".join(lines)
        try:
            compile_code(code, "<code>")
            compiles = True
        except SyntaxError:
            compiles = False
        assert (syntax_error(code, "code") is None) == compiles, code
