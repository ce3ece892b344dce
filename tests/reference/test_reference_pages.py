"""The documentation cannot rot: what it says is made from the code, or tried on it."""

import re
from pathlib import Path

import pytest

from noetl.dsl.document.problem_codes import CODES
from noetl.loader import examine
from tests.playbooks import document_of
from tests.reference import generate
from tests.reference.clauses import CLAUSES, DEVIATIONS, REMARKS
from tests.reference.generate import PAGES, ROOT


@pytest.mark.parametrize("page", PAGES)
def test_generated_pages_are_current(page: str) -> None:
    assert (ROOT / page).read_text("utf-8") == PAGES[page](), "run scripts/docs"


def test_remarks_and_deviations_are_about_clauses_that_there_are() -> None:
    assert set(REMARKS) <= set(CLAUSES)
    sections = {clause.partition(" (")[0] for clause in CLAUSES}
    for deviation in DEVIATIONS:
        document, _, names = deviation.clause.partition(" ")
        assert {f"{document} {name}" for name in names.split(", ")} <= sections
        assert deviation.reason


def test_every_clause_has_a_test_or_says_that_it_is_optional() -> None:
    tests = generate.tests_by_clause()  # imported by its name, it would be taken for a test
    assert [clause for clause in CLAUSES if clause not in tests] == ["002 §6"]
    assert REMARKS["002 §6"].startswith("Optional")


def test_every_code_has_a_page_and_every_page_a_code() -> None:
    pages = {path.stem for path in (ROOT / "docs" / "checks").glob("*.md")} - {"README"}
    assert pages == set(CODES)


@pytest.mark.parametrize("code", sorted(CODES))
def test_the_examples_of_a_check_show_it(code: str) -> None:
    page = (ROOT / "docs" / "checks" / f"{code}.md").read_text("utf-8")
    assert page.startswith(f"# {code}\n")
    bad, good = _block(page, "Bad"), _block(page, "Good")
    problems = examine(bad, "bad").problems
    assert code in {problem.code for problem in problems}
    others = {problem.code for problem in problems if problem.severity == "error"} - {code}
    assert not others, problems
    assert examine(good, "good").problems == ()


def _block(page: str, heading: str) -> str:
    match = re.search(rf"^## {heading}\n.*?^```yaml\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    assert match, f"no yaml block under {heading}"
    return document_of(match[1])


def test_links_between_pages_lead_somewhere() -> None:
    for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#\s]+)", path.read_text("utf-8")):
            if "://" not in target:
                assert (path.parent / Path(target)).exists(), f"{path.name} links to {target}"
