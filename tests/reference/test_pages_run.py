"""A playbook in the guides that is followed by JSON gives that result."""

import json
from itertools import pairwise

import pytest

import noetl
from tests.pages import FENCE
from tests.playbooks import document_of
from tests.reference.test_guides import ROOT

PAGES = ("control-flow.md", "loops-and-joins.md", "errors-and-retries.md")


def examples() -> dict[str, tuple[str, str]]:
    examples_found = {}
    for page in PAGES:
        text = (ROOT / "docs" / page).read_text("utf-8")
        fences = list(FENCE.finditer(text))
        for first, second in pairwise(fences):
            if (first[1], second[1]) == ("yaml", "json"):
                line = text.count("\n", 0, first.start()) + 2
                examples_found[f"{page}:{line}"] = (first[2], second[2])
    return examples_found


EXAMPLES = examples()


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_gives_the_result_that_is_shown(name: str) -> None:
    playbook, expected = EXAMPLES[name]
    execution = noetl.run(document_of(playbook), store="sqlite:///:memory:")
    assert (execution.status, execution.result) == ("completed", json.loads(expected))


@pytest.mark.parametrize("page", PAGES)
def test_every_page_shows_results(page: str) -> None:
    assert any(name.startswith(page) for name in EXAMPLES)
