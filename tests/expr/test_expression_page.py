"""The page about expressions says what there is, and nothing else."""

import re
from pathlib import Path

from noetl.expr.language.parser import STATEMENTS
from noetl.expr.library.filters import FILTERS
from noetl.expr.library.functions import FUNCTIONS
from noetl.expr.library.methods import METHODS
from noetl.expr.library.tests import TESTS
from noetl.expr.runtime import limits
from noetl.expr.runtime.scope import NAMESPACES

PAGE = (Path(__file__).parents[2] / "docs" / "expressions.md").read_text("utf-8")


def rows(heading: str) -> list[list[str]]:
    """The cells of the rows of the table under a heading."""
    section = PAGE.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    lines = [line for line in section.splitlines() if line.startswith("| ")][2:]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def names(cells: list[str]) -> list[str]:
    """The code in the cells, without arguments."""
    return [code.partition("(")[0] for cell in cells for code in re.findall(r"`([^`]+)`", cell)]


def test_the_page_lists_every_namespace() -> None:
    assert set(names([row[0] for row in rows("Names")])) == NAMESPACES


def test_the_page_lists_every_statement() -> None:
    listed = {re.findall(r"{% (\w+)", row[0])[0] for row in rows("Statements")}
    assert listed == {*STATEMENTS, "raw"}


def test_the_page_lists_every_function() -> None:
    assert names([row[0] for row in rows("Functions")]) == sorted(FUNCTIONS)


def test_the_page_lists_every_filter() -> None:
    listed = names([row[0] for row in rows("Filters")])
    assert set(listed) == set(FILTERS)
    assert len(listed) == len(FILTERS) + 1  # `map` has two forms


def test_the_page_lists_every_test() -> None:
    assert sorted(names([row[0] for row in rows("Tests")])) == sorted(TESTS)


def test_the_page_lists_every_method() -> None:
    listed = {row[0].split()[-1].strip("`"): names([row[1]]) for row in rows("Methods")}
    assert listed == {kind: sorted(methods) for kind, methods in METHODS.items()}


def test_the_page_gives_every_limit() -> None:
    limited = "\n".join(" ".join(row) for row in rows("Limits"))
    for number in (
        limits.MAX_SOURCE,
        limits.MAX_TOKENS,
        limits.MAX_DEPTH,
        limits.MAX_BRACKETS,
        limits.MAX_BLOCKS,
        limits.MAX_MACRO_DEPTH,
        limits.MAX_TEXT,
        limits.MAX_RANGE,
        limits.MAX_INTEGER_BITS,
        limits.MAX_RESULT_DEPTH,
        limits.WORK_BUDGET,
    ):
        assert re.search(rf"\b{number:,}\b", limited), number
