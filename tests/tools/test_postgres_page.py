"""The page on the PostgreSQL tool shows what the tool does."""

import json
import re
from pathlib import Path

import noetl
from tests.playbooks import whole

PAGE = (Path(__file__).parents[2] / "docs" / "tools" / "postgres.md").read_text("utf-8")


def block(language: str) -> str:
    found = re.search(rf"^```{language}\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    assert found
    return found[1]


def test_the_example_gives_the_result_that_is_shown(dsn: str) -> None:
    found = noetl.run(whole(block("yaml")), {"dsn": dsn}, store="sqlite:///:memory:")
    assert (found.error, found.result) == (None, json.loads(block("json")))
