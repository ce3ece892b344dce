"""A line of a document with the place in it that a problem is about."""

import unicodedata

from noetl.cli.console import visible

WIDTH = 100
TAB = 4


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
        return "".join(shown for shown, _ in cells), before
    first = 0
    while before > WIDTH // 2:
        before -= cells[first][1]
        first += 1
    last, room = first, WIDTH
    while last < len(cells) and cells[last][1] <= room:
        room -= cells[last][1]
        last += 1
    head, tail = "…" if start + first else "", "…" if start + last < len(line) else ""
    return head + "".join(shown for shown, _ in cells[first:last]) + tail, before + len(head)


def _cells(line: str) -> list[tuple[str, int]]:
    """What is shown for each character, and how many cells wide that is."""
    cells: list[tuple[str, int]] = []
    place = 0
    for character in line:
        shown, width = _cell(character, place)
        cells.append((shown, width))
        place += width
    return cells


def _cell(character: str, place: int) -> tuple[str, int]:
    if character == "\t":
        width = TAB - place % TAB
        return " " * width, width
    if unicodedata.category(character) in ("Mn", "Me"):
        return character, 0
    return visible(character), 2 if unicodedata.east_asian_width(character) in "WF" else 1
