"""The examples in the guides are playbooks without a problem."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.playbooks import NOOP, document_of, problems_of, step

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(r"^```yaml\n(.*?)^```", re.DOTALL | re.MULTILINE)
_EXAMPLE = re.compile(r"apiVersion:|- step:|(workload|keychain|executor|workbook|workflow):")


def examples() -> Iterator[tuple[str, str]]:
    """Every YAML block of the pages in docs and of the README that is a playbook or steps of one."""
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        for block in _BLOCK.finditer(path.read_text("utf-8")):
            line = path.read_text("utf-8").count("\n", 0, block.start()) + 2
            if _EXAMPLE.match(block[1]) and "noetl.io/v1" not in block[1]:
                yield f"{path.name}:{line}", block[1]


EXAMPLES = dict(examples())


@pytest.mark.parametrize("position", EXAMPLES)
def test_an_example_has_no_problem(position: str) -> None:
    text = document_of(EXAMPLES[position])
    if "workflow:" not in text:
        text += "workflow:\n" + step(NOOP)
    assert problems_of(text) == ()


def test_the_guide_to_playbooks_has_an_example_of_every_section() -> None:
    guide = (ROOT / "docs" / "playbooks.md").read_text("utf-8")
    for heading in ("metadata", "keychain", "executor", "workload", "tasks", "policies", "loops", "routing"):
        section = guide.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
        assert "```yaml" in section, heading


def test_links_to_headings_lead_to_one() -> None:
    for path in sorted((ROOT / "docs").glob("*.md")):
        for target, heading in re.findall(r"\]\(([^)#\s]*)#([^)\s]+)\)", path.read_text("utf-8")):
            page = path if not target else path.parent / Path(target)
            headings = re.findall(r"^#+ (.*)$", page.read_text("utf-8"), re.MULTILINE)
            assert heading in {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in headings}


def test_links_lead_to_files() -> None:
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), ROOT / "examples" / "README.md"]
    for page in pages:
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)\s]*)?\)", page.read_text("utf-8")):
            assert "://" in target or (page.parent / target).exists(), f"{page}: {target}"


def test_the_index_names_every_page() -> None:
    index = (ROOT / "docs" / "README.md").read_text("utf-8")
    for folder in ("", "tools/"):
        for page in sorted((ROOT / "docs" / folder).glob("*.md")):
            assert page.name == "README.md" or f"]({folder}{page.name})" in index, page.name
