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
    found = {}
    for page in PAGES:
        text = (ROOT / "docs" / page).read_text("utf-8")
        fences = list(FENCE.finditer(text))
        for first, second in pairwise(fences):
            if (first[1], second[1]) == ("yaml", "json"):
                line = text.count("\n", 0, first.start()) + 2
                found[f"{page}:{line}"] = (first[2], second[2])
    return found


EXAMPLES = examples()


@pytest.mark.parametrize("place", EXAMPLES)
def test_an_example_gives_the_result_that_is_shown(place: str) -> None:
    playbook, shown = EXAMPLES[place]
    execution = noetl.run(document_of(playbook), store="sqlite:///:memory:")
    assert (execution.status, execution.result) == ("completed", json.loads(shown))


@pytest.mark.parametrize("page", PAGES)
def test_every_page_shows_results(page: str) -> None:
    assert any(place.startswith(page) for place in EXAMPLES)
