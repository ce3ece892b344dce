"""What the options of a run mean."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from noetl.cli import arguments
from noetl.cli.arguments import read_argument
from noetl.cli.command_failure import CommandFailure


def refused(work: Callable[[], Any]) -> CommandFailure:
    with pytest.raises(CommandFailure) as caught:
        work()
    assert caught.value.exit_code == 2
    return caught.value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        ("1.5", 1.5),
        ("true", True),
        ("null", None),
        ('"1"', "1"),
        ("[1, 2]", [1, 2]),
        ('{"a": 1}', {"a": 1}),
        ("World", "World"),
        ("", ""),
        ("a=b", "a=b"),
        ("007", "007"),
        ("NaN", "NaN"),
        ("-Infinity", "-Infinity"),
        ("{broken", "{broken"),
        ("[" * 100_000, "[" * 100_000),
    ],
)
def test_a_value_is_json_if_it_parses_else_text(text: str, value: object) -> None:
    assert arguments.apply_sets({}, [f"key={text}"]) == {"key": value}


def test_dots_nest_and_mappings_merge_deep_over_the_payload() -> None:
    payload = {"a": {"b": 1, "c": [1, 2]}, "z": 0}
    workload = arguments.apply_sets(payload, ["a.b=2", "a.d.e=x", 'a={"c": [3], "f": {"g": 1}}', "new=1"])
    assert workload == {"a": {"b": 2, "c": [3], "d": {"e": "x"}, "f": {"g": 1}}, "z": 0, "new": 1}
    assert payload == {"a": {"b": 1, "c": [1, 2]}, "z": 0}


def test_the_last_word_counts() -> None:
    assert arguments.apply_sets({}, ["a.b=1", "a=2", 'a={"c": 3}', "a.c=4"]) == {"a": {"c": 4}}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["novalue"], "--set novalue: there is no `=`"),
        (["=1"], "a key is empty"),
        (["a..b=1"], "a key is empty"),
        (["a.=1"], "a key is empty"),
        (["a=1", "a.b=2"], "--set a.b: `a` is 1, and nothing can be set below it"),
        (["a.b=[1]", "a.b.c=2"], "`a.b` is [1]"),
        (["a=null", "a.b=2"], "`a` is null"),
        (["a=\udcff"], "half a surrogate pair"),
        (['a="\\ud800"'], "half a surrogate pair"),
        (["a=" + "[" * 120 + "]" * 120], "lies deeper than 100 levels"),
    ],
)
def test_what_cannot_be_set_is_said(words: list[str], message: str) -> None:
    assert message in str(refused(lambda: arguments.apply_sets({}, words)))


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("{", "Expecting property name enclosed in double quotes (line 1, column 2)", "near: {"),
        ('{"a": 1,\n "b" 2}', "(line 2, column 6)", '"b" 2}'),
        ("name=World", "(line 1, column 1)", "@FILE"),
        ("", "(line 1, column 1)", "@FILE"),
        ('{"a": NaN}', "NaN is no JSON value", ""),
        ("[1]", "--payload takes a mapping, not [1]", "for example"),
        ('"text"', '--payload takes a mapping, not "text"', "for example"),
        ("[" * 100_000, "nested too deeply", ""),
        ('{"a": "\\ud800"}', "`$.a`", ""),
        ('{"a": 1e999}', "`$.a` is inf", ""),
    ],
)
def test_a_payload_that_is_no_mapping_is_said_with_its_place(text: str, message: str, hint: str) -> None:
    failure = refused(lambda: arguments.parse_mapping(text, "--payload"))
    assert message in str(failure)
    assert hint in failure.hint


def test_labels() -> None:
    assert arguments.parse_labels(["team=data", "a=b=c", "empty=", "team=web"]) == {
        "team": "web",
        "a": "b=c",
        "empty": "",
    }
    for word in ("team", "=x", " =x"):
        assert "--label" in str(refused(lambda word=word: arguments.parse_labels([word])))  # type: ignore[misc]  # a lambda's default has no type


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("1.5", 1.5), ("250ms", 0.25), ("5m", 300), ("1h30m", 5400), ("2D", 172_800), (" 3s ", 3)],
)
def test_times(text: str, seconds: float) -> None:
    assert arguments.parse_seconds(text, "--timeout") == seconds


@pytest.mark.parametrize(
    "text", ["", "soon", "-1", "0", "0s", "5 m", "5x", "1m5", "1e3", "nan", "inf", "9" * 30]
)
def test_what_is_not_a_time(text: str) -> None:
    assert str(refused(lambda: arguments.parse_seconds(text, "--timeout"))).startswith("--timeout: ")


def test_an_argument_may_name_a_file(tmp_path: Path) -> None:
    (tmp_path / "in.json").write_bytes(b'\xef\xbb\xbf{"a": 1}')
    assert read_argument(f"@{tmp_path}/in.json", "--payload") == '{"a": 1}'
    assert read_argument('{"a": 1}', "--payload") == '{"a": 1}'
    (tmp_path / "latin").write_bytes(b"\xff")
    for argument, message in (
        (f"@{tmp_path}/none", "No such file"),
        (f"@{tmp_path}", "Is a directory"),
        (f"@{tmp_path}/latin", "not UTF-8"),
        ("@", "no name"),
    ):
        failure = refused(lambda argument=argument: read_argument(argument, "--payload"))  # type: ignore[misc]  # as above
        assert str(failure).startswith("--payload: ")
        assert message in str(failure)
