"""Where everything of a picture is: cards, labels and routes, for whoever draws it."""

from typing import NamedTuple

from noetl.graph.card import Card, card_of
from noetl.graph.layout import BoxLink, BoxSize, Layout, layout
from noetl.graph.picture import Picture, PictureEdge
from noetl.graph.playbook_text import EventMark, text_width, wrap_text

GUARD = 11.0
"""The font size of guards."""
GUARD_ROOM = 176.0
CHIP = 16.0
MARK = 12.0


class EdgeLabel(NamedTuple):
    """What stands on an edge: its number in the router, after what, its guard, and how often it was taken."""

    order: str
    mark: EventMark
    lines: tuple[str, ...]
    times: str
    size: BoxSize


class Drawing(NamedTuple):
    """Cards in the order of the nodes, labels in that of the edges, and where both are."""

    cards: list[Card]
    labels: list[EdgeLabel | None]
    plan: Layout


def drawing_of(picture: Picture) -> Drawing:
    """Equal pictures give equal drawings."""
    cards = [card_of(node) for node in picture.nodes]
    labels = [_label_of(edge) for edge in picture.edges]
    links = [
        BoxLink(edge.source, edge.target, _link_kind(edge), label.size if label else None)
        for edge, label in zip(picture.edges, labels, strict=True)
    ]
    return Drawing(cards, labels, layout([card.size for card in cards], links, root=picture.entry))


def _link_kind(edge: PictureEdge) -> str:
    """Those of one kind may share their way: what was not taken must not lead over what was."""
    return f"{'failure' if edge.failure else 'flow'} {edge.faded}"


def _label_of(edge: PictureEdge) -> EdgeLabel | None:
    lines = wrap_text(edge.text, GUARD_ROOM, GUARD, lines=2)
    if not edge.label:
        return None
    text = max((text_width(line, GUARD) for line in lines), default=0.0)
    chips = ([CHIP + 4] if edge.order else []) + ([MARK + 4] if edge.mark else [])
    count = text_width(edge.count, GUARD, bold=True) + 2 if edge.count else 0.0
    width = text + sum(chips) + count + (8 if lines else -4 if chips else 4)
    size = BoxSize(round(width), round(max(14.0 * len(lines) + 4, CHIP + 2)))
    return EdgeLabel(edge.order, edge.mark, lines, edge.count, size)
