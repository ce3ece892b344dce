"""Problems, printed: for people with the line they are about, for programs as JSON."""

from collections.abc import Iterable

import msgspec

from noetl.cli.console import Paint, visible
from noetl.cli.excerpt import excerpt
from noetl.dsl.document.problem import Problem
from noetl.dsl.document.source import SourceLines

UNREADABLE = "unreadable"
"""The code of a file that could not be read: it has no line to show."""


def problems_json(problems: Iterable[Problem]) -> list[dict[str, object]]:
    """The problems as JSON values: file, line, column, code, severity, message, hint."""
    return [msgspec.structs.asdict(problem) for problem in problems]


def problems_text(problems: Iterable[Problem], text: str, *, paint: Paint) -> str:
    """The problems of one document, each with its line of `text`, a caret under the place and the hint."""
    lines = list(SourceLines(text))
    return "\n".join(_paragraph(problem, lines, paint) for problem in problems)


def _paragraph(problem: Problem, lines: list[str], paint: Paint) -> str:
    place = f"{visible(problem.file)}:{problem.line}:{problem.column}"
    verdict = paint(problem.severity, f"{problem.severity} {problem.code}")
    paragraph = [f"{paint('place', place)}  {verdict}  {visible(problem.message)}"]
    if problem.code != UNREADABLE and problem.line <= len(lines):
        shown, before = excerpt(lines[problem.line - 1], problem.column)
        paragraph.append(f"{paint('faint', f'{problem.line:>5} |')} {shown}")
        paragraph.append(f"{paint('faint', '      |')} {' ' * before}{paint('caret', '^')}")
    if problem.hint:
        paragraph.append(f"  hint: {visible(problem.hint)}")
    return "\n".join(paragraph)


def pluralize(number: int, noun: str) -> str:
    """The number with its noun: `1 error`, `2 errors`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
