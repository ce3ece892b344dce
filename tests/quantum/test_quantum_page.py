"""The page on the quantum tool shows what it does."""

import json
import re
from pathlib import Path

import noetl
from tests.playbooks import whole

PAGE = (Path(__file__).parents[2] / "docs" / "tools" / "quantum.md").read_text("utf-8")


def block(language: str) -> str:
    found = re.search(rf"^```{language}\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    assert found
    return found[1]


def test_the_example_gives_the_result_that_is_shown() -> None:
    execution = noetl.run(whole(block("yaml")), store="sqlite:///:memory:")
    assert (execution.status, execution.result) == ("completed", json.loads(block("json")))
