"""Every built-in kind has a page: an example that works, and a reference that the generator writes."""

import json
from itertools import pairwise
from textwrap import indent

import pytest
import yaml

import noetl
from noetl.dsl.document.kinds import Kind
from noetl.tools.kind_registry import BUILTIN
from tests.pages import FENCE, blocks_of
from tests.playbooks import document_of, problems_of
from tests.reference.tool_pages import BEGIN, FOLDER

APART = {"file", "http", "mysql", "postgres", "quantum", "s3", "snowflake"}
"""Those whose examples need a server, a folder, or what the tests do not install: they have a test of their own."""

PAGES = {kind.name: (FOLDER / f"{kind.name}.md").read_text("utf-8") for kind in BUILTIN}


def by_hand(name: str) -> str:
    return PAGES[name].partition(BEGIN)[0]


def shown_results() -> dict[str, tuple[str, str]]:
    """The playbooks that are followed by JSON, by page and number."""
    results = {}
    for name in PAGES:
        fences = [fence.groups() for fence in FENCE.finditer(by_hand(name))]
        for number, (first, second) in enumerate(pairwise(fences)):
            if (first[0], second[0]) == ("yaml", "json") and name not in APART:
                results[f"{name}:{number}"] = (first[1], second[1])
    return results


SHOWN = shown_results()


@pytest.mark.parametrize("kind", BUILTIN, ids=lambda kind: kind.name)
def test_a_page_begins_with_what_the_kind_does_and_has_an_example(kind: Kind) -> None:
    assert PAGES[kind.name].startswith(f"# {kind.name}\n\n{kind.summary}\n")
    assert f"kind: {kind.name}\n" in by_hand(kind.name) or f"kind: {kind.name}," in by_hand(kind.name)


@pytest.mark.parametrize("name", [name for name in PAGES if name != "http"])
def test_the_examples_of_a_page_have_no_problem(name: str) -> None:
    blocks = blocks_of(by_hand(name), "yaml")
    assert blocks
    for block in blocks:
        assert problems_of(block) == ()


@pytest.mark.parametrize("name", SHOWN)
def test_an_example_gives_the_result_that_is_shown(name: str) -> None:
    playbook, expected = SHOWN[name]
    execution = noetl.run(document_of(playbook), store="sqlite:///:memory:")
    assert (execution.status, execution.result) == ("completed", json.loads(expected))


@pytest.mark.parametrize("kind", BUILTIN, ids=lambda kind: kind.name)
def test_the_example_of_a_kind_is_a_task_of_it_without_a_problem(kind: Kind) -> None:
    assert yaml.safe_load(kind.example)["kind"] == kind.name
    sections = "workload: { prices: [1], orders: [] }\n"
    sections += 'workbook: { tasks: { fetch: { kind: http, url: "https://a.b" } } }\n'
    task = "- " + indent(kind.example, "  ").lstrip()
    text = f"{sections}workflow:\n  - step: start\n    tool:\n{indent(task, '      ')}"
    assert problems_of(text) == ()


@pytest.mark.parametrize("kind", BUILTIN, ids=lambda kind: kind.name)
def test_a_kind_says_what_its_result_is(kind: Kind) -> None:
    assert kind.result.endswith(".")
    assert all(about.endswith(".") for about in kind.helpers.values())
