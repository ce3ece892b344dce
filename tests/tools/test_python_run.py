"""What code sees, and what its result is."""

import os
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from noetl.model.json import Json
from noetl.model.outcome import Outcome
from tests.tools.python_calls import call, failure_of, kind_and_message, result_of, run

ISOLATIONS = ("pool", "fork", "inline")


CASES: list[tuple[str, dict[str, Json], Json]] = [
    ("result = a + 1", {"a": 1}, 2),
    ("x = 1", {}, None),
    ("return a", {"a": [1, {"b": None}]}, [1, {"b": None}]),
    ("result = 1\nreturn 2", {}, 2),
    ("def main():\n    return 1", {}, 1),
    ("def main():\n    return 1\nresult = 2", {}, 2),
    ("def main(input):\n    return input", {"a": 1, "b": 2}, {"a": 1, "b": 2}),
    ("def main(input):\n    return input", {"input": 1}, {"input": 1}),
    ("def main(a, b=5, *, c=6):\n    return [a, b, c]", {"a": 1, "c": 3, "other": 9}, [1, 5, 3]),
    ("def main(a, /, **rest):\n    return [a, rest]", {"a": 1, "b": 2}, [1, {"a": 1, "b": 2}]),
    ("def main(*things):\n    return list(things)", {"a": 1}, []),
    ("def main(input_data):\n    return input_data", {"a": 1}, {"a": 1}),
    ("def main(args, a):\n    return [args, a]", {"a": 1}, [{"a": 1}, 1]),
    ("async def main(a):\n    return a", {"a": 1}, 1),
    ("import asyncio\nasync def main(a):\n    await asyncio.sleep(0)\n    return a", {"a": 1}, 1),
    ("main = lambda a: a * 2", {"a": 2}, 4),
    ("class main:\n    def __new__(cls, a): return a", {"a": 2}, 2),
    ("result = [args, input_data]", {"a": 1}, [{"a": 1}, {"a": 1}]),
    ("result = [args, input_data]", {"args": 1, "input_data": 2}, [1, 2]),
    ("result = __name__", {"__name__": "x", "__builtins__": {}}, "__noetl__"),
    ("def main(input):\n    return input['result']", {"result": 1}, 1),
    ("result = result", {"result": 1}, 1),
    ("x = main", {"main": "an input"}, None),
    ("result = (1, {'t': (2,)})", {}, [1, {"t": [2]}]),
    ("import decimal, datetime\nresult = [decimal.Decimal('1.5'), datetime.date(2030, 1, 2)]", {}, [1.5, "2030-01-02"]),
    ("result = n * n", {"n": 2**70}, 2**140),
    ("result = [{1: 'a', 2: {None: 3}}]", {}, [{"1": "a", "2": {"null": 3}}]),
    ("result = args['my-key']", {"my-key": 1}, 1),
]  # fmt: skip


@cache
def outcomes_with(isolation: str) -> list[Outcome]:
    """Of all cases, one after the other on one tool."""
    return run(*(call(code, args=args, spec={"isolation": isolation}) for code, args, _ in CASES))


@pytest.mark.parametrize("isolation", ISOLATIONS)
@pytest.mark.parametrize("number", range(len(CASES)), ids=[code for code, _, _ in CASES])
def test_the_result_is_what_the_code_gives(isolation: str, number: int) -> None:
    outcome = outcomes_with(isolation)[number]
    assert (outcome.error, outcome.result) == (None, CASES[number][2])


def test_code_sees_ordinary_module_globals() -> None:
    code = """
    from __future__ import annotations
    import dataclasses, pickle, typing

    LIMIT = 3

    def helper(n): return n if n > LIMIT else helper(n + 1)

    @dataclasses.dataclass
    class Row:
        size: int
        more: typing.ClassVar[int] = 1

    def main():
        hints = typing.get_type_hints(Row)
        return [helper(0), pickle.loads(pickle.dumps(Row(2))).size, sorted(hints), Row.__module__]
    """
    assert result_of(code) == [4, 2, ["more", "size"], "__noetl__"]


def test_a_script_that_guards_its_main_runs_it_once() -> None:
    code = (
        "runs = []\ndef main():\n    runs.append(1)\n    return runs\nif __name__ == '__main__':\n    main()"
    )
    assert result_of(code) == [1]


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_libs_are_imported_before_the_code_runs(isolation: str) -> None:
    libs: dict[str, Json] = {
        "m": "math",
        "join": {"from": "os.path", "import": "join"},
        "path": {"from": "os", "import": "path"},
        "et": {"from": "xml.etree", "import": "ElementTree"},
    }
    code = "result = [m.floor(2.5), join('a', 'b'), path.sep, et.__name__]"
    assert result_of(code, libs=libs, spec={"isolation": isolation}) == [
        2,
        "a/b",
        "/",
        "xml.etree.ElementTree",
    ]


@pytest.mark.parametrize(
    ("lib", "kind"),
    [("no.such.module", "ModuleNotFoundError"), ({"from": "os", "import": "nothing"}, "ImportError")],
)
def test_a_lib_that_is_not_there_fails_the_task(lib: Json, kind: str) -> None:
    outcome = failure_of("result = 1", libs={"x": lib})
    assert outcome.helpers["py"]["exception_type"] == kind


def test_a_script_is_found_from_the_folder_of_the_playbook(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "clean.py").write_text(
        "import beside\ndef main(a):\n    return [a, beside.X, __file__]\n"
    )
    (tmp_path / "lib" / "beside.py").write_text("X = 'ä'\n", "utf-8")
    expected = [1, "ä", str(tmp_path / "lib" / "clean.py")]
    scripts: list[Json] = [
        "lib/clean.py",
        "./lib/clean.py",
        {"uri": "lib/clean.py", "source": {"type": "file"}},
    ]
    for script in scripts:
        result = result_of(script=script, args={"a": 1}, folder=tmp_path)
        assert [*result[:2], str(Path(result[2]).resolve())] == expected
    inline: Json = {"source": {"type": "inline", "code": "result = 3"}}
    assert result_of(script=inline, folder=tmp_path) == 3


def test_a_script_that_is_not_beside_the_playbook_is_looked_for_in_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    playbook, working = tmp_path / "playbook", tmp_path / "working"
    for folder in (playbook, working):
        (folder / "t").mkdir(parents=True)
        (folder / "t" / "both.py").write_text(f"result = '{folder.name}'\n")
    (working / "t" / "hello.py").write_text("import both\nresult = [both.result, __file__]\n")
    monkeypatch.chdir(working)
    hello = str(working / "t" / "hello.py")
    assert result_of(script="t/hello.py", folder=playbook) == ["working", hello]
    assert result_of(script="t/both.py", folder=playbook) == "playbook"


def test_code_works_in_the_folder_of_the_playbook(tmp_path: Path) -> None:
    (tmp_path / "data.txt").write_text("here")
    assert result_of("result = open('data.txt').read()", folder=tmp_path) == "here"


@pytest.mark.parametrize(
    ("inputs", "expected"),
    [
        ({"script": "none.py"}, ("not_found", "there is no script `none.py`")),
        ({"script": "."}, ("input", "cannot be read")),
        ({"script": "latin.py"}, ("input", "is not UTF-8")),
        (
            {"script": "http://127.0.0.1:1/x.py"},
            ("connection", "the script cannot be fetched: GET http://127"),
        ),
        ({"script": "catalog:a/b"}, ("not_found", "there is no catalog of scripts here")),
        ({}, ("input", "neither `code` nor `script`")),
        ({"code": "result = 1", "libs": 3}, ("input", "got `int` - at `$.libs`")),
        ({"code": "result = 1", "cod": ""}, ("input", "`cod`")),
    ],
)
def test_code_that_cannot_be_had_is_told(
    inputs: dict[str, Any], expected: tuple[str, str], tmp_path: Path
) -> None:
    (tmp_path / "latin.py").write_bytes(b"x = '\xe4'")
    kind, message = kind_and_message(failure_of(folder=tmp_path, **inputs))
    assert kind == expected[0]
    assert expected[1] in message


def test_a_folder_that_is_gone_is_told(tmp_path: Path) -> None:
    kind, message = kind_and_message(failure_of("import os\nresult = os.getcwd()", folder=tmp_path / "gone"))
    assert kind == "not_found"
    assert "gone" in message


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_variables_of_the_environment_are_added(isolation: str) -> None:
    env: Json = {"A_TEXT": "x", "A_NUMBER": 1, "A_TRUTH": True}
    code = "import os\nresult = [os.environ[n] for n in ('A_TEXT', 'A_NUMBER', 'A_TRUTH')]"
    assert result_of(code, spec={"env": env, "isolation": isolation}) == ["x", "1", "true"]
    assert "A_TEXT" not in os.environ
    after = failure_of(code, spec={"isolation": isolation})
    assert after.helpers["py"]["exception_type"] == "KeyError"


def test_memory_cannot_be_bounded_in_the_worker() -> None:
    outcome = failure_of("result = 1", spec={"isolation": "inline", "memory": 1})
    assert kind_and_message(outcome)[0] == "input"


def test_inputs_that_no_process_can_be_sent_are_told() -> None:
    assert kind_and_message(failure_of("result = 1", args={"a": "\ud800"}))[0] == "input"
