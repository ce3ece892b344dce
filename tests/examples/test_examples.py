"""The examples: valid, free of warnings, and all of them listed."""

import re
from pathlib import Path

import pytest

import noetl
from noetl.expr.template import render
from noetl.graph import FORMATS, draw
from noetl.loader import installed_kinds

EXAMPLES = Path(__file__).parents[2] / "examples"
PLAYBOOKS = sorted(EXAMPLES.rglob("*.yaml"))


@pytest.mark.parametrize("path", PLAYBOOKS, ids=lambda path: path.stem)
def test_an_example_has_no_problems(path: Path) -> None:
    assert noetl.validate(path) == []


@pytest.mark.parametrize("path", PLAYBOOKS, ids=lambda path: path.stem)
def test_an_example_can_be_drawn(path: Path) -> None:
    playbook = noetl.load(path)
    for format_ in FORMATS:
        assert draw(playbook, format_)


@pytest.mark.parametrize("path", PLAYBOOKS, ids=lambda path: path.stem)
def test_an_example_says_what_it_shows(path: Path) -> None:
    text = path.read_text("utf-8")
    assert "#" in text
    assert noetl.load(path).metadata.description


def test_the_readme_lists_every_example() -> None:
    listed = set(re.findall(r"\]\(([\w/]+\.yaml)\)", (EXAMPLES / "README.md").read_text("utf-8")))
    assert listed == {str(path.relative_to(EXAMPLES)) for path in PLAYBOOKS}


def test_every_example_has_its_own_path() -> None:
    paths = [noetl.load(path).metadata.path for path in PLAYBOOKS]
    assert len(set(paths)) == len(paths)


def test_a_child_that_an_example_calls_is_an_example() -> None:
    paths = {noetl.load(path).metadata.path for path in PLAYBOOKS}
    for path in PLAYBOOKS:
        for step in noetl.load(path).workflow:
            for task in step.tasks:
                if task.kind == "playbook" and "path" in task.inputs:
                    assert render(task.inputs["path"], {}) in paths


def test_every_built_in_kind_that_needs_no_later_driver_is_shown() -> None:
    used = {task.kind for path in PLAYBOOKS for step in noetl.load(path).workflow for task in step.tasks}
    assert used <= set(installed_kinds().names)
    assert {"noop", "python", "http", "postgres", "duckdb", "playbook", "quantum", "wait"} <= used
