"""From cells in layers to rectangles and lines: heights, columns, and the points of every route."""

from collections.abc import Sequence
from itertools import pairwise
from typing import TypeAlias

from noetl.graph.layout.channels import ChannelNet, assign_lanes, channel_nets, place_ports, side_offsets
from noetl.graph.layout.geometry import BoxLink, Layout, Point, Rect, Route
from noetl.graph.layout.layered_graph import LABEL_GAP, LOOP, TRACK, Cell, LayeredGraph, Strand

LEAVE = 14.0
"""How far a line runs straight after a layer, at least."""
ARRIVE = 22.0
"""How far a line runs straight into a box, at least: an arrow head has to fit."""
OPEN = 40.0
"""The least distance between two layers of boxes."""
GUTTER = 26.0
"""The room on either side of the lines between two columns."""


_Bends: TypeAlias = dict[Strand, list[Point]]
"""The corners of every strand, between its two ends, rounded: a strand is part of many routes."""


def route_links(graph: LayeredGraph, links: Sequence[BoxLink], column_of: list[int]) -> Layout:
    """Places all cells and draws all links; each layer stands in the column that `column_of` names."""
    turns = _column_turns(graph, column_of)
    gutters = _place_columns(graph, column_of, turns)
    place_ports(graph.layers, column_of)
    bends_of = _place_layers(graph, column_of, turns, gutters)
    routes = [_link_route(number, link, graph, bends_of) for number, link in enumerate(links)]
    return _framed_layout(graph, _mark_merges(routes, links))


def _strands_below(layer: list[Cell]) -> list[Strand]:
    return [strand for cell in layer for strand in cell.below]


def _column_turns(graph: LayeredGraph, column_of: list[int]) -> dict[int, list[Strand]]:
    """The strands from each column to the next, by the number of the column they leave."""
    return {
        column_of[number]: _strands_below(layer)
        for number, layer in enumerate(graph.layers[:-1])
        if column_of[number] != column_of[number + 1]
    }


def _place_columns(
    graph: LayeredGraph, column_of: list[int], turns: dict[int, list[Strand]]
) -> dict[int, float]:
    """Sets each column right of the one before; the answer is where the lines in each gutter start."""
    edge = 0.0
    gutters: dict[int, float] = {}
    for column in sorted(set(column_of)):
        column_layers = [
            layer
            for layer, column_number in zip(graph.layers, column_of, strict=True)
            if column_number == column
        ]
        for layer in column_layers:
            for cell in layer:
                cell.x += edge
        edge = max(cell.x + cell.right for layer in column_layers for cell in layer) + GUTTER
        gutters[column] = edge
        edge += TRACK * max(len(channel_nets(turns.get(column, ()))) - 1, 0) + GUTTER
    return gutters


def _place_layers(
    graph: LayeredGraph, column_of: list[int], turns: dict[int, list[Strand]], gutters: dict[int, float]
) -> _Bends:
    """Sets `y` of all cells; each column begins at 0."""
    bends_of: _Bends = {}
    y = 0.0
    for number, layer in enumerate(graph.layers):
        tall = max(cell.room for cell in layer)
        for cell in layer:
            cell.y = y if cell.kind == "box" else y + (tall - cell.height) / 2
        y += tall
        column, following = column_of[number], column_of[number + 1 : number + 2]
        if following == [column]:
            y += _draw_channel(bends_of, layer, graph.layers[number + 1], y)
        elif following:
            _draw_turn(bends_of, turns[column], y, gutters[column])
            y = 0.0
    return bends_of


def _draw_channel(bends_of: _Bends, upper: list[Cell], lower: list[Cell], y: float) -> float:
    """Draws the lines between two layers, `y` being the bottom of the upper one; how far apart they are."""
    lanes, count = assign_lanes(group := channel_nets(_strands_below(upper)))
    arrive = ARRIVE if any(cell.kind == "box" for cell in lower) else LEAVE
    for net in group:
        for strand in net.strands:
            if net in lanes:
                at = y + LEAVE + TRACK * lanes[net]
                bends_of[strand] = [_rounded(strand.upper_x, at), _rounded(strand.lower_x, at)]
            else:
                bends_of[strand] = []
    open_boxes = any(c.kind == "box" for c in upper) and any(c.kind == "box" for c in lower)
    return max(LEAVE + arrive + TRACK * max(count - 1, 0), OPEN if open_boxes else 0.0)


def _draw_turn(bends_of: _Bends, strands: list[Strand], y: float, gutter: float) -> None:
    """Draws the lines from the foot of one column, up the gutter, to the head of the next."""
    group: list[ChannelNet] = sorted(
        channel_nets(strands), key=lambda net: (-max(net.bottoms), -max(net.tops))
    )
    for index, net in enumerate(group):
        foot, track = y + LEAVE + TRACK * index, gutter + TRACK * index
        head = -ARRIVE - TRACK * (len(group) - 1 - index)
        for strand in net.strands:
            bends_of[strand] = [
                _rounded(strand.upper_x, foot),
                _rounded(track, foot),
                _rounded(track, head),
                _rounded(strand.lower_x, head),
            ]


def _link_route(number: int, link: BoxLink, graph: LayeredGraph, bends_of: _Bends) -> Route:
    source, target = graph.boxes[link.source], graph.boxes[link.target]
    if source is target:
        return _loop_route(number, link, source)
    chain = graph.chains[number]
    first, last = chain[0].upper_x, chain[-1].lower_x
    bends = [point for strand in chain for point in bends_of[strand]]
    if chain[0].back:
        enter = target.y + side_offsets(target)["in", link.kind]
        leave = source.y + side_offsets(source)["out", number]
        points = [_rounded(target.x - target.width / 2, enter), _rounded(first, enter), *bends]
        points += [_rounded(last, leave), _rounded(source.x - source.width / 2, leave)]
        points.reverse()
    else:
        points = [_rounded(first, source.y + source.height), *bends, _rounded(last, target.y)]
    label = None
    if (cell := graph.labels.get(number)) is not None:
        label = Rect(cell.x - cell.width / 2, cell.y, cell.width, cell.height)
    return Route(_without_midpoints(points), label)


def _loop_route(number: int, link: BoxLink, box: Cell) -> Route:
    """Out of a box's right side and back into it, one loop below the other."""
    index, slot = box.loops.index(number), box.height / len(box.loops)
    right, y = box.x + box.width / 2, box.y + slot * (index + 0.5)
    half = min(LOOP / 2, slot / 3)
    points = ((right, y + half), (right + LOOP, y + half), (right + LOOP, y - half), (right, y - half))
    label = None
    if link.label is not None:
        middle = box.y + box.room / len(box.loops) * (index + 0.5)
        left, top = right + LOOP + LABEL_GAP, middle - link.label.height / 2
        label = Rect(left, top, link.label.width, link.label.height)
    return Route(points, label)


def _without_midpoints(points: list[Point]) -> tuple[Point, ...]:
    """The same line without points that lie on it between two others."""
    corners: list[Point] = []
    for point in points:
        if corners and corners[-1] == point:
            continue
        while len(corners) > 1 and (
            corners[-2][0] == corners[-1][0] == point[0] or corners[-2][1] == corners[-1][1] == point[1]
        ):
            corners.pop()
        corners.append(point)
    return tuple(corners)


def _rounded(x: float, y: float) -> Point:
    return (round(x, 1), round(y, 1))


def _mark_merges(routes: list[Route], links: Sequence[BoxLink]) -> list[Route]:
    """Marks where each route meets one drawn before it that leads to the same box and is of its kind."""
    drawn: dict[tuple[int, str], dict[tuple[Point, Point], float]] = {}
    result: list[Route] = []
    for route, link in zip(routes, links, strict=True):
        lines = drawn.setdefault((link.target, link.kind), {})
        meets = _meeting_point(route, lines)
        result.append(Route(route.points, route.label, meets))
        for start, end in pairwise(route.points):
            way, length = _direction(start, end)
            lines[end, way] = max(length, lines.get((end, way), 0.0))
    return result


def _meeting_point(route: Route, lines: dict[tuple[Point, Point], float]) -> Point | None:
    """Walks back from the arrow head along what is drawn; where that ends, if it is anywhere."""
    meets: Point | None = None
    for start, end in reversed(list(pairwise(route.points))):
        way, length = _direction(start, end)
        known = lines.get((end, way), 0.0)
        if not known:
            return meets
        if known < length - 0.01:
            return (end[0] - way[0] * known, end[1] - way[1] * known)
        meets = start
    return meets


def _direction(start: Point, end: Point) -> tuple[Point, float]:
    """Which way a horizontal or vertical line runs, and its length."""
    dx, dy = end[0] - start[0], end[1] - start[1]
    length = abs(dx) + abs(dy)
    return (round(dx / length), round(dy / length)), length


def _framed_layout(graph: LayeredGraph, routes: list[Route]) -> Layout:
    """Moves the drawing so that it begins at 0, 0."""
    rects = [Rect(box.x - box.width / 2, box.y, box.width, box.height) for box in graph.boxes]
    rects_and_labels = rects + [route.label for route in routes if route.label is not None]
    xs = [rect.x for rect in rects_and_labels] + [rect.right for rect in rects_and_labels]
    ys = [rect.y for rect in rects_and_labels] + [rect.bottom for rect in rects_and_labels]
    for route in routes:
        xs.extend(x for x, _ in route.points)
        ys.extend(y for _, y in route.points)
    left, top = min(xs), min(ys)
    layout = Layout(max(xs) - left, max(ys) - top, tuple(rects), tuple(routes))
    return move_layout(layout, -left, -top)


def move_layout(layout: Layout, dx: float, dy: float) -> Layout:
    """The same drawing elsewhere."""

    def rect(old: Rect) -> Rect:
        return Rect(old.x + dx, old.y + dy, old.width, old.height)

    routes = tuple(
        Route(
            tuple((x + dx, y + dy) for x, y in route.points),
            rect(route.label) if route.label is not None else None,
            (route.merges[0] + dx, route.merges[1] + dy) if route.merges is not None else None,
        )
        for route in layout.routes
    )
    return Layout(layout.width, layout.height, tuple(rect(box) for box in layout.boxes), routes)
