"""A layered drawing of any directed graph: sizes and links in, coordinates and routes out.

Pure and deterministic. Flow runs downwards; links that close a cycle run up at the left side of
boxes; tall drawings are set in columns; parts that are not connected stand in rows.
"""

from collections.abc import Sequence

from noetl.graph.layout.columns import ASPECT_RATIO, fold_into_columns
from noetl.graph.layout.geometry import BoxLink, BoxSize, Layout, Point, Rect, Route
from noetl.graph.layout.layer_order import order_layers
from noetl.graph.layout.ranks import rank_boxes
from noetl.graph.layout.routes import move_layout, route_links
from noetl.graph.layout.strands import build_layers

__all__ = ["BoxLink", "BoxSize", "Layout", "Point", "Rect", "Route", "layout"]

GAP = 48.0


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
    return members, numbers, route_links(graph, part_links, fold_into_columns(graph.layers))


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
