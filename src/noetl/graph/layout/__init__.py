"""A layered drawing of any directed graph: sizes and links in, coordinates and routes out.

Pure and deterministic. Flow runs downwards; links that close a cycle run up at the left side of
boxes; tall drawings are set in columns, as a long text is on a newspaper page; parts that are not
connected stand in rows.
"""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate, pairwise
from math import sqrt

from noetl.graph.layout.alignment import Alignment
from noetl.graph.layout.geometry import BoxLink, BoxSize, Layout, Point, Rect, Route
from noetl.graph.layout.layer_order import order_layers
from noetl.graph.layout.layered_graph import Cell, build_layers, rank_boxes
from noetl.graph.layout.routes import move_layout, route_links

__all__ = ["BoxLink", "BoxSize", "Layout", "Point", "Rect", "Route", "layout"]

GAP = 48.0
"""What lies between two parts."""
TALL = 1500.0
"""Below this height nothing is folded."""
ASPECT_RATIO = 1.4
"""The width to height that a folded drawing aims at."""
SHORTEST = 800.0
"""Columns are not made shorter than this on average."""
CHANNEL = 44.0
"""About what lies between two layers."""
GUTTER = 80.0
"""About what lies between two columns."""
TRIES = 3
"""Folding changes widths, and widths the number of columns: so many rounds come near enough."""


def layout(sizes: Sequence[BoxSize], links: Sequence[BoxLink], *, root: int = 0) -> Layout:
    """Places boxes of these sizes and routes these links; the flow is read from box `root`."""
    parts = [_layout_part(members, sizes, links, root) for members in _components(len(sizes), links, root)]
    return _pack_parts(parts, len(sizes), len(links))


_Part = tuple[list[int], list[int], Layout]


def _components(count: int, links: Sequence[BoxLink], root: int) -> list[list[int]]:
    """Boxes that hang together, the root's first, then by their lowest number."""
    parent = list(range(count))

    def find(box: int) -> int:
        while parent[box] != box:
            # Halves the path, so that later searches are short.
            parent[box] = parent[parent[box]]
            box = parent[box]
        return box

    for link in links:
        parent[find(link.source)] = find(link.target)
    components: dict[int, list[int]] = {}
    for box in range(count):
        components.setdefault(find(box), []).append(box)
    return sorted(components.values(), key=lambda members: (root not in members, members[0]))


def _layout_part(members: list[int], sizes: Sequence[BoxSize], links: Sequence[BoxLink], root: int) -> _Part:
    index = {box: position for position, box in enumerate(members)}
    numbers = [number for number, link in enumerate(links) if link.source in index]
    part_links = [
        BoxLink(index[link.source], index[link.target], link.kind, link.label)
        for link in (links[number] for number in numbers)
    ]
    ranking = rank_boxes(len(members), part_links, index.get(root, 0))
    graph = build_layers([sizes[box] for box in members], part_links, ranking)
    order_layers(graph, graph.boxes[index.get(root, 0)])
    return members, numbers, route_links(graph, part_links, _fold_into_columns(graph.layers))


def _fold_into_columns(layers: list[list[Cell]]) -> list[int]:
    """Aligns the layers, in as many columns as give the drawing a good shape.

    The answer is the column of each layer, from 0. Each column begins at x = 0.
    """
    alignment = Alignment(layers)
    alignment.align(0, len(layers))
    column_of = [0] * len(layers)
    heights = [max(cell.room for cell in layer) + CHANNEL for layer in layers]
    total, count = sum(heights), 1
    for _ in range(TRIES if total > TALL else 0):
        # How wide a column will be is known only when it is aligned by itself.
        width = sum(_column_width(column) for column in _split_columns(layers, column_of)) / count + GUTTER
        better = max(1, min(round(sqrt(ASPECT_RATIO * total / width)), int(total / SHORTEST)))
        if better == count:
            break
        count = better
        cuts = _column_cuts(layers, heights, count)
        column_of = [bisect_right(cuts, number) for number in range(len(layers))]
        for first, end in pairwise([0, *cuts, len(layers)]):
            alignment.align(first, end)
    return column_of


def _split_columns(layers: list[list[Cell]], column_of: list[int]) -> list[list[list[Cell]]]:
    columns: list[list[list[Cell]]] = [[] for _ in range(column_of[-1] + 1)]
    for layer, column in zip(layers, column_of, strict=True):
        columns[column].append(layer)
    return columns


def _column_width(column: list[list[Cell]]) -> float:
    return max(cell.x + cell.right for layer in column for cell in layer)


def _column_cuts(layers: list[list[Cell]], heights: list[float], count: int) -> list[int]:
    """The first layers of all columns but the first."""
    share = sum(heights) / count
    tops = [0.0, *accumulate(heights)]
    cuts: list[int] = []
    for column in range(1, count):
        aim = column * share
        # A label stays with the step it leaves, so only a layer of boxes begins a column.
        near = [
            number
            for number in range(cuts[-1] + 1 if cuts else 1, len(layers))
            if abs(tops[number] - aim) < share * 0.3 and any(cell.kind == "box" for cell in layers[number])
        ]
        if near:
            cuts.append(min(near, key=lambda number: (_count_lines(layers[number]), abs(tops[number] - aim))))
    return cuts


def _count_lines(layer: list[Cell]) -> int:
    """How many separate lines come down to a layer."""
    return len({strand.net for cell in layer for strand in cell.above})


def _pack_parts(parts: list[_Part], boxes: int, links: int) -> Layout:
    """Parts side by side in rows about as wide as the drawing should be."""
    area = sum((part.width + GAP) * (part.height + GAP) for _, _, part in parts)
    limit = max([(ASPECT_RATIO * area) ** 0.5, *(part.width for _, _, part in parts)], default=0.0)
    placed_boxes, placed_routes = [Rect(0, 0, 0, 0)] * boxes, [Route(())] * links
    x = y = row = width = 0.0
    for members, numbers, part in parts:
        if x and x + part.width > limit:
            x, y, row = 0.0, y + row + GAP, 0.0
        moved = move_layout(part, x, y)
        for box, rect in zip(members, moved.boxes, strict=True):
            placed_boxes[box] = rect
        for number, route in zip(numbers, moved.routes, strict=True):
            placed_routes[number] = route
        x, row, width = x + part.width + GAP, max(row, part.height), max(width, x + part.width)
    return Layout(width, y + row, tuple(placed_boxes), tuple(placed_routes))
