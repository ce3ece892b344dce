"""A step as a card: its lines of text, icons and pills with their positions, and the size they need."""

from typing import Literal, TypeAlias

from msgspec import Struct

from noetl.graph.layout import BoxSize
from noetl.graph.picture import Badge, PictureNode, TaskRow
from noetl.graph.playbook_text import fit_text, text_width, wrap_text

TextStyle: TypeAlias = Literal["name", "desc", "note", "badge", "detail", "task", "kind", "mark"]
FONT_SIZES: dict[TextStyle, float] = {
    "name": 14, "desc": 11.5, "note": 11, "badge": 11.5, "detail": 11, "task": 12, "kind": 11, "mark": 11,
}  # fmt: skip
PAD = 14.0
LINE = 20.0
ICON = 11.0
PILL_FONT_SIZE = 10.0
"""The font size in pills."""
NARROWEST, WIDEST = 132.0, 330.0
DESC_ROOM, BADGE_ROOM = 240.0, 250.0
STACK = 5.0
"""How far the second card of a loop looks out below and beside the first."""
MOST_BADGES = 4


class CardText(Struct, frozen=True):
    """A line of text; `y` is its baseline."""

    x: float
    y: float
    text: str
    style: TextStyle


class CardIcon(Struct, frozen=True):
    """A small drawing whose middle is at `x`, `y`."""

    x: float
    y: float
    kind: str


class CardPill(Struct, frozen=True):
    """A rounded field with a word; `y` is its middle."""

    x: float
    y: float
    width: float
    text: str


class Card(Struct, frozen=True):
    """`rule` is the height of the line above the pipeline, `dots` are the heights of its tasks.

    `stack` is what a second card behind it takes of its size, at the right and below.
    """

    size: BoxSize
    stack: float
    texts: tuple[CardText, ...]
    icons: tuple[CardIcon, ...]
    pills: tuple[CardPill, ...]
    rule: float | None
    dots: tuple[float, ...]


def card_of(node: PictureNode) -> Card:
    """The card of a node, as wide as its longest line, within limits."""
    writer = _Writer()
    writer.head(node)
    for badge in node.badges[:MOST_BADGES]:
        writer.badge(badge)
    if len(node.badges) > MOST_BADGES:
        writer.line(PAD, f"… {len(node.badges) - MOST_BADGES} more rules", "detail")
        writer.y += LINE - 3
    if node.rows:
        writer.rows(node.rows)
    return writer.card(node)


class _Writer:
    """Writes from top to bottom; `y` is where the next line begins."""

    def __init__(self) -> None:
        self.y = 8.0
        self.width = NARROWEST
        self.texts: list[CardText] = []
        self.icons: list[CardIcon] = []
        self.dots: list[float] = []
        self.rule: float | None = None

    def line(self, x: float, text: str, style: TextStyle, room: float = WIDEST) -> float:
        """Writes on the current line and returns where the text ends."""
        size, bold = FONT_SIZES[style], style == "name"
        text = fit_text(text, min(room, WIDEST - PAD - x) + 0.5, size, bold=bold)
        self.texts.append(CardText(x, self.y + LINE / 2 + size * 0.35, text, style))
        end = x + text_width(text, size, bold=bold)
        self.width = max(self.width, end + PAD)
        return end

    def head(self, node: PictureNode) -> None:
        pills = sum(_pill_width(word) + 6 for word in _pill_words(node))
        end = self.line(PAD, node.name, "name", WIDEST - 2 * PAD - pills - 6)
        self.width = max(self.width, end + pills + 6 + PAD)
        self.y += LINE
        for text in wrap_text(node.desc, DESC_ROOM, FONT_SIZES["desc"], lines=2):
            self.y -= 2
            self.line(PAD, text, "desc")
            self.y += LINE - 3
        if node.note:
            self.y -= 2
            self.line(PAD, node.note, "note")
            self.y += LINE - 3
        self.y += 2

    def badge(self, badge: Badge) -> None:
        self.icons.append(CardIcon(PAD + ICON / 2, self.y + LINE / 2, badge.kind))
        for number, text in enumerate(wrap_text(badge.text, BADGE_ROOM, FONT_SIZES["badge"], lines=2)):
            self.y -= 3 * number
            self.line(PAD + ICON + 7, text, "badge")
            self.y += LINE - 2
        if badge.detail:
            self.y -= 3
            self.line(PAD + ICON + 7, badge.detail, "detail")
            self.y += LINE - 3

    def rows(self, rows: tuple[TaskRow, ...]) -> None:
        """Tasks one below the other, their kinds and marks in columns."""
        self.rule = self.y + 3
        self.y += 6
        start = PAD + ICON + 5
        kinds = start + 14 + min(max(text_width(row.label, FONT_SIZES["task"]) for row in rows), 140.0)
        marks = kinds + 14 + min(max(text_width(row.kind, FONT_SIZES["kind"]) for row in rows), 80.0)
        for row in rows:
            self.dots.append(self.y + LINE / 2)
            self.line(start, row.label, "task", kinds - start - 14)
            self.line(kinds, row.kind, "kind", marks - kinds - 14)
            x = marks
            for mark in row.marks:
                if x > WIDEST - 3 * PAD:
                    break
                self.icons.append(CardIcon(x + ICON / 2, self.y + LINE / 2, mark.kind))
                x = self.line(x + ICON + 4, mark.text, "mark", 90.0) + 9
            self.y += LINE

    def card(self, node: PictureNode) -> Card:
        pills: list[CardPill] = []
        right = self.width - 10
        for word in reversed(_pill_words(node)):
            width = _pill_width(word)
            right -= width
            pills.append(CardPill(right, 8 + LINE / 2, width, word))
            right -= 6
        stack = STACK if any(badge.kind == "loop" for badge in node.badges) else 0.0
        size = BoxSize(round(self.width) + stack, round(self.y + 8) + stack)
        return Card(
            size, stack, tuple(self.texts), tuple(self.icons), tuple(pills), self.rule, tuple(self.dots)
        )


def _pill_words(node: PictureNode) -> list[str]:
    state = fit_text(node.state.replace("_", " "), 80.0, PILL_FONT_SIZE) if node.state else None
    return [*node.roles, *([state] if state else [])]


def _pill_width(word: str) -> float:
    return text_width(word, PILL_FONT_SIZE, bold=True) + 14
