"""The page on writing tools shows what they do."""

import json
import re
from pathlib import Path

import yaml

from noetl.model.outcome import ERROR_KINDS
from tests.pages import blocks_of
from tests.playbooks import problems_of
from tests.tools.declared_calls import error_of, outcome_of, run
from tests.tools.python_calls import call

PAGE = (Path(__file__).parents[2] / "docs" / "writing-tools.md").read_text("utf-8")


def test_the_page_shows_what_a_function_does() -> None:
    function, _, _ = blocks_of(PAGE, "python")
    exec(compile(function, "page", "exec"), {"__name__": "page"})  # noqa: S102 - the code is our own page's
    (example,) = blocks_of(PAGE, "yaml")
    assert problems_of("- step: start\n  " + example.replace("\n", "\n  ")) == ()
    (task,) = yaml.safe_load(example)["tool"]
    inputs = {key: value for key, value in task.items() if key not in ("name", "kind")}
    assert outcome_of(task["kind"], **inputs).result == json.loads(*blocks_of(PAGE, "json"))
    assert error_of("greet", whom="Ada", times=11).kind == "limit"


def test_the_page_shows_what_a_function_that_is_not_async_does() -> None:
    _, function, _ = blocks_of(PAGE, "python")
    exec(compile(function, "page", "exec"), {"__name__": "page"})  # noqa: S102 - the code is our own page's
    assert outcome_of("nap", seconds=0.01).result == 0.01


def test_the_page_shows_what_a_class_does() -> None:
    _, _, example = blocks_of(PAGE, "python")
    exec(compile(example, "page", "exec"), {"__name__": "page"})  # noqa: S102 - the code is our own page's
    assert [outcome.result for outcome in run("count", call(), call(by=2))] == [1, 3]


def test_the_page_lists_the_kinds_of_errors() -> None:
    section = PAGE.split("## Results and errors")[1].split("## ")[0]
    assert set(re.findall(r"`([a-z_]+)`", section)) >= ERROR_KINDS
