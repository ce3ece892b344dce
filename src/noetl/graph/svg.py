"""The picture as SVG: one file, no fonts or styles from elsewhere, its own background. And that as PNG."""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import sqrt
from xml.sax.saxutils import escape, quoteattr

from noetl.graph.card import FONT_SIZES, PILL_FONT_SIZE, Card
from noetl.graph.layout import Layout, Point, Rect, Route
from noetl.graph.palette import (
    BACKGROUND,
    DONE,
    EDGE,
    FAILURE,
    FONTS,
    FORK,
    INK,
    MUTED,
    PILLS,
    TAKEN,
    TEXTS,
    tint_of,
)
from noetl.graph.picture import GraphError, Picture, PictureNode, node_lines
from noetl.graph.picture_layout import CHIP, GUARD, MARK, EdgeLabel, drawing_of
from noetl.graph.playbook_text import fit_text, text_width

MARGIN = 32.0
HEADER = 56.0
ROUND = 7.0
"""The radius of corners in lines."""
SCALE = 2.0
MOST_PIXELS = 32_000_000
"""Larger pictures are drawn at a smaller scale: 32 million pixels take 128 MB while drawing."""

# Icons are drawn, each about 11 pixels wide: the font of a picture may lack glyphs for them.
_STROKE = 'fill="none" stroke-width="1.6" stroke-linecap="round" stroke-linejoin="round"'
_TURN = "M4 -1.5A4.3 4.3 0 1 0 4.2 1.4M4.4 -4.6V-1.4H1.2"

_ICONS = {
    "admit": '<path d="M0 -5.5L5.5 0L0 5.5L-5.5 0Z" fill="#fbbf24" stroke="#b45309" stroke-width="1.2"/>',
    "join": f'<path d="M-4.5 -5V-3Q-4.5 0 0 0Q4.5 0 4.5 -3V-5M0 0V5" stroke="#0e7490" {_STROKE}/>',
    "loop": f'<path d="{_TURN}" stroke="#7c3aed" {_STROKE}/>',
    "retry": f'<path d="{_TURN}" stroke="#2563eb" {_STROKE}/>',
    "jump": f'<path d="M-2 -5L-5 -2L-2 1M-4.6 -2H1.5Q5 -2 5 1.2V4.5" stroke="#9333ea" {_STROKE}/>',
    "break": '<rect x="-4" y="-4" width="8" height="8" rx="1.5" fill="#64748b"/>',
    "done": f'<path d="M-4 0.4L-1.3 3.2L4.2 -3.2" stroke="{DONE}" {_STROKE}/>',
    "failed": f'<path d="M-3.2 -3.2L3.2 3.2M3.2 -3.2L-3.2 3.2" stroke="{FAILURE}" {_STROKE}/>',
}


def svg_of(picture: Picture) -> str:
    """The whole document; equal pictures give equal documents."""
    drawing = drawing_of(picture)
    plan = drawing.plan
    title = fit_text(picture.title, 900, 18, bold=True)
    widest = max(plan.width, text_width(title, 18, bold=True), 200.0)
    width, height = round(widest + 2 * MARGIN), round(plan.height + 2 * MARGIN + HEADER)
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    attributes = f'font-family={quoteattr(FONTS)} role="img" aria-labelledby="title"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} {attributes}>',
            f'<title id="title">{escape(picture.title)}</title>',
            f'<rect width="{width}" height="{height}" fill="{BACKGROUND}"/>',
            _text(MARGIN, MARGIN + 14, title, 18, INK, bold=True),
            _text(MARGIN, MARGIN + 32, fit_text(picture.subtitle, widest, 12), 12, MUTED),
            f'<g transform="translate({_px(MARGIN)} {_px(MARGIN + HEADER)})">',
            *_edges(picture, plan, drawing.labels),
            *_nodes(picture, plan, drawing.cards),
            "</g>",
            "</svg>",
            "",
        ]
    )


def png_of(svg: str) -> bytes:
    """The SVG as PNG, with a font of its own: it also works where no fonts are installed.

    Raises GraphError where the extra `png` is not installed.
    """
    try:
        from font_roboto import font_files  # noqa: PLC0415 - an optional extra
        from resvg_py import svg_to_bytes  # noqa: PLC0415 - an optional extra
    except ImportError as error:
        raise GraphError(f"PNG needs the package `{error.name}`: pip install 'noetl[png]'") from None
    size = re.search(r'width="(\d+)" height="(\d+)"', svg)
    if size is None:
        raise GraphError("the SVG has no size")
    scale = min(SCALE, sqrt(MOST_PIXELS / (int(size[1]) * int(size[2]))))
    fonts = [font_files["Roboto"], font_files["RobotoBold"]]
    # System fonts stay available for scripts that Roboto does not have.
    data = svg_to_bytes(svg_string=svg, font_files=fonts, sans_serif_family="Roboto", zoom=scale)
    return bytes(data)


def _edges(picture: Picture, plan: Layout, labels: Sequence[EdgeLabel | None]) -> Iterator[str]:
    # Spans that are empty, right before left, until an arc widens them.
    forks = {number: [plan.boxes[number].right, plan.boxes[number].x] for number in range(len(picture.nodes))}
    for edge, route, label in zip(picture.edges, plan.routes, labels, strict=True):
        colour = FAILURE if edge.failure else TAKEN if edge.taken else EDGE
        source, target = picture.nodes[edge.source], picture.nodes[edge.target]
        full = f"{source.name} → {target.name}" + (f": {edge.guard}" if edge.guard else "")
        if edge.taken is not None:
            full += f" (taken {edge.taken}\u00d7)" if edge.taken else " (not taken)"
        yield f'<g class="edge"{_opacity(faded=edge.faded)}><title>{escape(full)}</title>'
        dash = ' stroke-dasharray="2 4"' if edge.faded else ' stroke-dasharray="5 4"' if edge.failure else ""
        line = "1.9" if edge.taken else "1.5"
        yield f'<path d="{_path(route)}" fill="none" stroke="{colour}" stroke-width="{line}"{dash}/>'
        if route.merges is None:
            yield _arrow_head(route, colour)
        if label is not None and route.label is not None:
            yield from _edge_label(label, route.label, colour, failure=edge.failure)
        yield "</g>"
        start = route.points[0]
        if source.inclusive and abs(start[1] - plan.boxes[edge.source].bottom) < 1:
            fork = forks[edge.source]
            fork[0], fork[1] = min(fork[0], start[0]), max(fork[1], start[0])
    for number, (left, right) in forks.items():
        if left <= right and picture.nodes[number].inclusive:
            y = plan.boxes[number].bottom
            shape = f'x="{_px(left - 9)}" y="{_px(y)}" width="{_px(right - left + 18)}" height="4" rx="2"'
            yield f'<rect class="fork" {shape} fill="{FORK}"{_opacity(faded=picture.nodes[number].faded)}/>'


def _path(route: Route) -> str:
    """The line with round corners; one that joins another line ends a little after they meet."""
    points = _drawn_points(route)
    steps = [f"M{_px(points[0][0])} {_px(points[0][1])}"]
    for number in range(1, len(points) - 1):
        before, corner, after = points[number - 1 : number + 2]
        # Two corners share the line between them; an end of the line is all its own corner's.
        into = _distance(before, corner) / (1 if number == 1 else 2)
        out = _distance(corner, after) / (1 if number == len(points) - 2 else 2)
        radius = min(ROUND, into, out)
        steps.append(f"L{_point_towards(corner, before, radius)}Q{_px(corner[0])} {_px(corner[1])}")
        steps.append(_point_towards(corner, after, radius))
    steps.append(f"L{_px(points[-1][0])} {_px(points[-1][1])}")
    return " ".join(steps)


def _drawn_points(route: Route) -> list[Point]:
    """The part of a route that no earlier one has drawn, and as much more as its last corner needs."""
    if route.merges is None:
        return list(route.points)
    points = [route.points[0]]
    for start, end in pairwise(route.points):
        is_on_segment = (
            _distance(start, route.merges) + _distance(route.merges, end) - _distance(start, end) < 0.2
        )
        if is_on_segment and route.merges != end:
            length = min(ROUND, _distance(route.merges, end)) + _distance(start, route.merges)
            share = length / _distance(start, end)
            return [*points, (start[0] + (end[0] - start[0]) * share, start[1] + (end[1] - start[1]) * share)]
        points.append(end)
    return points


def _distance(start: Point, end: Point) -> float:
    return abs(end[0] - start[0]) + abs(end[1] - start[1])


def _point_towards(start: Point, end: Point, distance: float) -> str:
    share = distance / (_distance(start, end) or 1.0)
    return f"{_px(start[0] + (end[0] - start[0]) * share)} {_px(start[1] + (end[1] - start[1]) * share)}"


def _arrow_head(route: Route, colour: str) -> str:
    (x0, y0), (x, y) = route.points[-2:]
    if abs(x - x0) < abs(y - y0):
        back = -8 if y > y0 else 8
        shape = f"M{_px(x)} {_px(y)}L{_px(x - 4.5)} {_px(y + back)}H{_px(x + 4.5)}Z"
    else:
        back = -8 if x > x0 else 8
        shape = f"M{_px(x)} {_px(y)}L{_px(x + back)} {_px(y - 4.5)}V{_px(y + 4.5)}Z"
    return f'<path d="{shape}" fill="{colour}"/>'


def _edge_label(label: EdgeLabel, rect: Rect, colour: str, *, failure: bool) -> Iterator[str]:
    x, y, middle = rect.x, rect.y, rect.y + rect.height / 2
    yield (
        f'<rect x="{_px(x)}" y="{_px(y)}" width="{_px(rect.width)}" height="{_px(rect.height)}" rx="4"'
        f' fill="{BACKGROUND}"/>'
    )
    if label.order:
        fill, stroke, ink = ("#ffffff", colour, colour) if label.order != "+" else (FORK, FORK, "#ffffff")
        centre = x + CHIP / 2 + (2 if label.lines else 0)
        yield f'<circle cx="{_px(centre)}" cy="{_px(middle)}" r="7.5" fill="{fill}" stroke="{stroke}"/>'
        yield _text(centre, middle + 3.6, label.order, 10, ink, bold=True, anchor="middle")
    start = x + (CHIP + 4 if label.order else 0)
    if label.mark:
        yield _icon(label.mark, start + MARK / 2 + (2 if label.order else 0), middle)
        start += MARK + 4
    start += 4 if label.lines else 0
    for number, line in enumerate(label.lines):
        base = middle + (number - (len(label.lines) - 1) / 2) * 14 + GUARD * 0.35
        yield _text(start, base, line, GUARD, FAILURE if failure else "#475569")
    if label.times:
        base = middle + GUARD * 0.35
        yield _text(rect.right - 2, base, label.times, GUARD, colour, bold=True, anchor="end")


def _nodes(picture: Picture, plan: Layout, cards: Sequence[Card]) -> Iterator[str]:
    for node, box, card in zip(picture.nodes, plan.boxes, cards, strict=True):
        yield from _node(node, box, card)


def _node(node: PictureNode, box: Rect, card: Card) -> Iterator[str]:
    tint = tint_of(node.state, node.roles)
    yield f'<g class="step" transform="translate({_px(box.x)} {_px(box.y)})"{_opacity(faded=node.faded)}>'
    yield f"<title>{escape(chr(10).join(node_lines(node)))}</title>"
    width, height = box.width - card.stack, box.height - card.stack
    frame = f'width="{_px(width)}" height="{_px(height)}" rx="8"'
    if card.stack:
        behind = f'x="{_px(card.stack)}" y="{_px(card.stack)}" {frame}'
        yield f'<rect {behind} fill="{tint.fill}" stroke="{tint.stroke}"/>'
    dash = ' stroke-dasharray="4 3"' if node.state == "not_admitted" else ""
    yield f'<rect {frame} fill="{tint.fill}" stroke="{tint.stroke}" stroke-width="{tint.line}"{dash}/>'
    if card.rule is not None:
        yield f'<path d="M0 {_px(card.rule)}H{_px(width)}" stroke="{tint.stroke}" stroke-opacity="0.55"/>'
    if len(card.dots) > 1:
        line = f"M19.5 {_px(card.dots[0])}V{_px(card.dots[-1])}"
        yield f'<path d="{line}" stroke="#cbd5e1" stroke-width="1.5"/>'
    for y in card.dots:
        yield f'<circle cx="19.5" cy="{_px(y)}" r="3" fill="{INK}" fill-opacity="0.55"/>'
    for drawing in card.icons:
        yield _icon(drawing.kind, drawing.x, drawing.y)
    for pill in card.pills:
        fill, ink = PILLS.get(pill.text, PILLS["end"])
        shape = f'x="{_px(pill.x)}" y="{_px(pill.y - 8)}" width="{_px(pill.width)}" height="16" rx="8"'
        yield f'<rect {shape} fill="{fill}"/>'
        middle = pill.x + pill.width / 2
        yield _text(middle, pill.y + 3.5, pill.text, PILL_FONT_SIZE, ink, bold=True, anchor="middle")
    for text in card.texts:
        bold = text.style == "name"
        yield _text(text.x, text.y, text.text, FONT_SIZES[text.style], TEXTS[text.style], bold=bold)
    yield "</g>"


def _icon(kind: str, x: float, y: float) -> str:
    """The drawing of this kind with its middle at `x`, `y`."""
    return f'<g transform="translate({x:.1f} {y:.1f})">{_ICONS[kind]}</g>'


def _text(
    x: float, y: float, text: str, size: float, fill: str, *, bold: bool = False, anchor: str = ""
) -> str:
    extra = (' font-weight="700"' if bold else "") + (f' text-anchor="{anchor}"' if anchor else "")
    return (
        f'<text x="{_px(x)}" y="{_px(y)}" font-size="{_px(size)}" fill="{fill}"{extra}>{escape(text)}</text>'
    )


def _opacity(*, faded: bool) -> str:
    return ' opacity="0.4"' if faded else ""


def _px(value: float) -> str:
    """A number with at most one digit after the point."""
    return f"{value:.1f}".removesuffix(".0")
