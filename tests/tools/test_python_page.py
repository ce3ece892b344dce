"""The page on the Python tool shows what the tool does."""

import json
from pathlib import Path

import yaml

from noetl.tools.process.code_runner import MAX_OUTPUT, MAX_RESULT
from noetl.tools.process.log_lines import MAX_LINE
from tests.pages import block_of
from tests.playbooks import problems_of
from tests.tools.python_calls import call, run

PAGE = (Path(__file__).parents[2] / "docs" / "tools" / "python.md").read_text("utf-8")


def test_the_example_loads_and_gives_the_result_that_is_shown() -> None:
    assert problems_of(block_of(PAGE, "yaml")) == ()
    (task,) = yaml.safe_load(block_of(PAGE, "yaml"))[0]["tool"]
    lines: list[str] = []
    inputs = {key: task[key] for key in ("code", "libs", "args", "spec")}
    (outcome,) = run(call(**inputs, log=lines.append))
    assert outcome.result == json.loads(block_of(PAGE, "json"))
    assert lines == ["2 rows"]


def test_the_limits_are_those_of_the_tool() -> None:
    for amount in (f"{MAX_OUTPUT >> 20} MiB", f"{MAX_RESULT >> 20} MiB", f"{MAX_LINE >> 10} KiB"):
        assert amount in PAGE
