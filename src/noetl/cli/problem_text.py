"""Problems, printed: for people with the line they are about, for programs as JSON."""

import unicodedata
from collections.abc import Iterable

import msgspec

from noetl.cli.console import Paint, visible
from noetl.dsl.document.problem import Problem
from noetl.dsl.document.source import SourceLines

UNREADABLE = "unreadable"
"""The code of a file that could not be read: it has no line to show."""
WIDTH = 100
TAB = 4


def problems_json(problems: Iterable[Problem]) -> list[dict[str, object]]:
    """The problems as JSON values: file, line, column, code, severity, message, hint."""
    return [msgspec.structs.asdict(problem) for problem in problems]


def problems_text(problems: Iterable[Problem], text: str, *, paint: Paint) -> str:
    """The problems of one document, each with its line of `text`, a caret under the place and the hint."""
    lines = list(SourceLines(text)) if text else []
    return "\n".join(_paragraph(problem, lines, paint) for problem in problems)


def _paragraph(problem: Problem, lines: list[str], paint: Paint) -> str:
    position = f"{visible(problem.file)}:{problem.line}:{problem.column}"
    verdict = paint(problem.severity, f"{problem.severity} {problem.code}")
    paragraph = [f"{paint('position', position)}  {verdict}  {visible(problem.message)}"]
    if problem.code != UNREADABLE:
        paragraph += excerpt_lines(lines, problem.line, problem.column, paint)
    if problem.hint:
        paragraph.append(f"  hint: {visible(problem.hint)}")
    return "\n".join(paragraph)


def excerpt_lines(lines: list[str], number: int, column: int, paint: Paint) -> list[str]:
    """Line `number` of a document and the caret below it; nothing if the document ends before it."""
    return excerpt_line(lines[number - 1], number, column, paint) if number <= len(lines) else []


def excerpt_line(line: str, number: int, column: int, paint: Paint) -> list[str]:
    """A line with its number, and the caret below it."""
    text, before = excerpt(line, column)
    return [
        f"{paint('faint', f'{number:>5} |')} {text}",
        f"{paint('faint', '      |')} {' ' * before}{paint('caret', '^')}",
    ]


def excerpt(line: str, column: int) -> tuple[str, int]:
    """The line as a terminal shows it, and how many cells stand before `column` (from 1) there.

    Tabs are spread and control characters made visible. A long line is cut around the column.
    """
    # Only what may be shown is looked at: a file may be one long line with a problem in every part.
    start, end = max(0, column - 1 - 2 * WIDTH), column - 1 + 2 * WIDTH
    cells = _cells(line[start:end])
    at = min(column - 1 - start, len(cells))
    before = sum(width for _, width in cells[:at])
    if start == 0 and end >= len(line) and sum(width for _, width in cells) <= WIDTH:
        return "".join(text for text, _ in cells), before
    first = 0
    while before > WIDTH // 2:
        before -= cells[first][1]
        first += 1
    last, room = first, WIDTH
    while last < len(cells) and cells[last][1] <= room:
        room -= cells[last][1]
        last += 1
    head, tail = "…" if start + first else "", "…" if start + last < len(line) else ""
    return head + "".join(text for text, _ in cells[first:last]) + tail, before + len(head)


def _cells(line: str) -> list[tuple[str, int]]:
    """What a terminal shows for each character, and how many cells wide that is."""
    cells: list[tuple[str, int]] = []
    column = 0
    for character in line:
        text, width = _cell(character, column)
        cells.append((text, width))
        column += width
    return cells


def _cell(character: str, column: int) -> tuple[str, int]:
    if character == "\t":
        width = TAB - column % TAB
        return " " * width, width
    # Combining marks share the cell of the character before them; East Asian wide ones take two:
    # counted by characters, the caret would stand beside what it points at.
    if unicodedata.category(character) in ("Mn", "Me"):
        return character, 0
    return visible(character), 2 if unicodedata.east_asian_width(character) in "WF" else 1
