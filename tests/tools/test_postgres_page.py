"""The page on the PostgreSQL tool shows what the tool does."""

import json
from pathlib import Path

import noetl
from tests.pages import block_of
from tests.playbooks import document_of

PAGE = (Path(__file__).parents[2] / "docs" / "tools" / "postgres.md").read_text("utf-8")


def test_the_example_gives_the_result_that_is_shown(dsn: str) -> None:
    execution = noetl.run(document_of(block_of(PAGE, "yaml")), {"dsn": dsn}, store="sqlite:///:memory:")
    assert (execution.error, execution.result) == (None, json.loads(block_of(PAGE, "json")))
