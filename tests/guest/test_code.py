"""A `return` outside a function means what it says."""

from typing import Any

import pytest

from noetl.guest.code import compile_code


def run(source: str, **names: Any) -> tuple[tuple[Any] | None, dict[str, Any]]:
    names["__name__"] = "tested"
    return compile_code(source, "<code>").run(names), names


def returned(source: str, **names: Any) -> Any:
    returned_value, _ = run(source, **names)
    assert returned_value is not None
    return returned_value[0]


def test_code_that_comes_to_no_return_gives_nothing() -> None:
    assert run("a = 1")[0] is None
    assert run("if x:\n    return 1\na = 2", x=0)[0] is None
    assert run("return")[0] == (None,)


def test_a_return_ends_the_code() -> None:
    returned_value, names = run("for i in range(9):\n    if i == 3:\n        return i\nrest = 1")
    assert returned_value == (3,)
    assert names["i"] == 3
    assert "rest" not in names


def test_a_return_is_no_failure_to_what_stands_around_it() -> None:
    source = """
class Transaction:
    def __enter__(self): return self
    def __exit__(self, kind, error, trace): seen.append(kind)
try:
    with Transaction():
        return "done"
except BaseException as error:
    seen.append(error)
finally:
    seen.append("finally")
"""
    seen: list[object] = []
    assert returned(source, seen=seen) == "done"
    assert seen == [None, "finally"]


def test_names_stay_those_of_a_module() -> None:
    source = """
from __future__ import annotations
import os.path as p
from math import *
total: int = 1
later: str
def helper():
    return total + len(os_names), pi
class Shape:
    side: int = 2
    def area(self): return self.side * total
def grow():
    global total
    total += 1
grow()
os_names = [n for n in ("a", "b")]
if (found := len(os_names)) and True:
    pass
try:
    1 / 0
except ZeroDivisionError as error:
    pass
match {"k": [1, 2, 3], "z": 0}:
    case {"k": [first, *others], **remaining}:
        pass
del found
return helper, Shape().area(), first, others, remaining, p.sep
"""
    (helper, *rest), names = returned(source), run(source)[1]
    assert helper()[0] == 4
    assert helper.__qualname__ == "helper"
    assert rest == [4, 1, [2, 3], {"z": 0}, "/"]
    assert names["Shape"].__qualname__ == "Shape"
    assert {"total", "p", "pi", "first", "others", "remaining"} <= set(names)
    assert not {"found", "error", "later", "<module>"} & set(names)


def test_comprehensions_keep_their_own_names() -> None:
    assert returned("x = 1\nys = [x for x in range(3)]\nreturn x, ys") == (1, [0, 1, 2])


@pytest.mark.parametrize(
    "source",
    [
        "return 1\nyield 2",
        "return (yield)",
        "return await x",
        "class A:\n    return 1",
        "return 1\nnonlocal a",
    ],
)
def test_only_return_may_stand_there(source: str) -> None:
    with pytest.raises(SyntaxError):
        compile_code(source, "<code>")


def test_an_error_tells_the_line_of_the_code() -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        run("x = 1\n\nif x:\n    return 1 / 0\n")
    frame = caught.traceback[-1]
    assert (frame.lineno + 1, frame.name) == (4, "<module>")
