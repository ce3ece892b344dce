"""The drawing as cells in layers, joined by strands that each reach from one layer to the next.

A ranking says which way is down: a row for every box, and the links that run upwards against the flow.
A link becomes a chain of strands through its label and through `dummy` cells, one in every layer it
passes. Links of one kind to one target share their dummies: thirty failures that lead to one
handler are one line with thirty feeders.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

from msgspec import Struct

from noetl.graph.layout.geometry import BoxLink, BoxSize

TRACK = 10.0
"""The distance between two lines that run side by side."""
DUMMY_WIDTH = 6.0
SIDE = 12.0
"""How far from a box the first line runs that leaves it at its left side."""
LOOP = 18.0
"""How far a line from a box to itself reaches out."""
LABEL_GAP = 6.0


class Ranking(Struct, frozen=True):
    """Rows counted from 0; a link whose number is in `back` points to a row above its source.

    Links of more weight are straighter: the main flow goes on below a step, side branches bend.
    """

    rows: list[int]
    back: frozenset[int]
    weights: list[int]


@dataclass(slots=True, eq=False)
class Cell:
    """Something that takes room in a layer; `left` and `right` reach from its `x` to its sides."""

    kind: Literal["box", "label", "dummy"]
    layer: int
    height: float
    left: float
    right: float
    width: float = 0.0
    x: float = 0.0
    y: float = 0.0
    room: float = 0.0
    """The height it takes in its layer, labels of loops included."""
    position: int = 0
    above: list["Strand"] = field(default_factory=list)
    below: list["Strand"] = field(default_factory=list)
    back_in: list[str] = field(default_factory=list)
    """Kinds of links that come back up to this box: each ends at its left side."""
    back_out: list[int] = field(default_factory=list)
    """Links that leave this box upwards, from its left side."""
    loops: list[int] = field(default_factory=list)
    """Links from this box to itself, at its right side."""


SIDEWAYS = 0.4
"""A strand at a box's left side counts as this much further left than the box, when layers are ordered."""


@dataclass(slots=True, eq=False)
class Strand:
    """A line between neighbouring layers. A `back` strand is travelled upwards."""

    upper: Cell
    lower: Cell
    kind: str
    back: bool
    link: int
    """The link it serves, the first one if it serves several."""
    weight: int = 0
    """The sum of the weights of the links it serves."""
    cost: int = 1
    """What it costs to cross it: the greatest weight among those links."""
    upper_x: float = 0.0
    lower_x: float = 0.0
    upper_shift: float = field(init=False)
    lower_shift: float = field(init=False)
    """How much further left than its cell an end counts when layers are ordered."""

    def __post_init__(self) -> None:
        # Once for each strand: its ends are asked for hundreds of times.
        self.upper_shift = SIDEWAYS if self.back and self.upper.kind == "box" else 0.0
        self.lower_shift = SIDEWAYS if self.back and self.lower.kind == "box" else 0.0

    @property
    def net(self) -> tuple[bool, int, str]:
        """Strands with the same net meet: downwards where they arrive, upwards where they part."""
        return (self.back, id(self.upper if self.back else self.lower), self.kind)


@dataclass(slots=True, eq=False)
class LayeredGraph:
    """All cells by layer, and the chain of strands of every link, top first."""

    layers: list[list[Cell]]
    boxes: list[Cell]
    labels: dict[int, Cell]
    chains: dict[int, list[Strand]]


def rank_boxes(count: int, links: Sequence[BoxLink], root: int) -> Ranking:
    """Every link points downwards, except those that close a cycle when the flow is read from `root`."""
    leaving: list[list[int]] = [[] for _ in range(count)]
    for number, link in enumerate(links):
        if link.source != link.target:
            leaving[link.source].append(number)
    back, order = _depth_first(leaving, links, root)
    rows = [0] * count
    for box in order:
        for number in leaving[box]:
            if number not in back:
                rows[links[number].target] = max(rows[links[number].target], rows[box] + 1)
    _tighten(rows, order, links, back)
    return Ranking(rows, back, _weights(leaving, order, links, back))


def _depth_first(
    leaving: list[list[int]], links: Sequence[BoxLink], root: int
) -> tuple[frozenset[int], list[int]]:
    """The links that point to a box still open, and all boxes in topological order without them."""
    back: set[int] = set()
    closed: list[int] = []
    state = [0] * len(leaving)
    for start in (root, *range(len(leaving))):
        if state[start]:
            continue
        state[start] = 1
        # No recursion: a chain of a thousand steps is deeper than Python goes.
        stack = [(start, iter(leaving[start]))]
        while stack:
            box, open_links = stack[-1]
            for number in open_links:
                target = links[number].target
                if state[target] == 1:
                    back.add(number)
                elif state[target] == 0:
                    state[target] = 1
                    stack.append((target, iter(leaving[target])))
                    break
            else:
                state[box] = 2
                closed.append(box)
                stack.pop()
    return frozenset(back), closed[::-1]


def _tighten(rows: list[int], order: list[int], links: Sequence[BoxLink], back: frozenset[int]) -> None:
    """Moves a box down to its targets where more links leave it than come in."""
    targets: list[list[int]] = [[] for _ in rows]
    incoming = [0] * len(rows)
    for number, link in enumerate(links):
        if number not in back and link.source != link.target:
            targets[link.source].append(link.target)
            incoming[link.target] += 1
    for box in reversed(order):
        if len(targets[box]) > incoming[box]:
            rows[box] = max(rows[box], min(rows[target] for target in targets[box]) - 1)
    lowest = min(rows, default=0)
    for box, row in enumerate(rows):
        rows[box] = row - lowest


def _weights(
    leaving: list[list[int]], order: list[int], links: Sequence[BoxLink], back: frozenset[int]
) -> list[int]:
    """Where two or three links leave a box, the one with the longest way still to go outweighs the others."""
    depth = [0] * len(leaving)
    weights = [1] * len(links)
    for box in reversed(order):
        down = [number for number in leaving[box] if number not in back]
        depths = sorted((depth[links[number].target] for number in down), reverse=True)
        depth[box] = depths[0] + 1 if depths else 0
        if 2 <= len(down) <= 3 and depths[0] > depths[1]:
            main = next(number for number in down if depth[links[number].target] == depths[0])
            weights[main] = len(down)
    return weights


def build_layers(sizes: Sequence[BoxSize], links: Sequence[BoxLink], ranking: Ranking) -> LayeredGraph:
    """Boxes stand in even rows and labels between them; a row in which nothing stands is left out."""
    used = {2 * row for row in ranking.rows}
    for number, link in enumerate(links):
        if link.label is not None and link.source != link.target:
            used.add(_label_row(number, link, ranking))
    index = {row: layer for layer, row in enumerate(sorted(used))}
    graph = LayeredGraph([[] for _ in index], [], {}, {})
    for size, row in zip(sizes, ranking.rows, strict=True):
        half = size.width / 2
        graph.boxes.append(_add_cell(graph, Cell("box", index[2 * row], size.height, half, half, size.width)))
    trunks: dict[tuple[int, str, bool], _Trunk] = {}
    for number, link in enumerate(links):
        if link.source == link.target:
            graph.boxes[link.source].loops.append(number)
            continue
        label_layer = None
        if link.label is not None:
            label_layer = index[_label_row(number, link, ranking)]
        back = number in ranking.back
        key = (link.target, link.kind, back)
        if key not in trunks:
            trunks[key] = _Trunk(graph.boxes[link.target], back)
        weight = ranking.weights[number]
        _add_chain(graph, trunks[key], number, link, label_layer=label_layer, weight=weight)
    for trunk in trunks.values():
        _weigh_trunk(trunk)
    for box in graph.boxes:
        _reserve_sides(box, links)
    return graph


def _label_row(number: int, link: BoxLink, ranking: Ranking) -> int:
    """A label stands next to its source: below it, or above it where the link runs upwards."""
    return 2 * ranking.rows[link.source] + (-1 if number in ranking.back else 1)


def _add_cell(graph: LayeredGraph, cell: Cell) -> Cell:
    cell.room = cell.height
    graph.layers[cell.layer].append(cell)
    return cell


@dataclass(slots=True, eq=False)
class _Trunk:
    """What links of one kind to one box share: a dummy in every layer, the one next to the box first."""

    target: Cell
    back: bool
    cells: list[Cell] = field(default_factory=list)
    strands: list[Strand] = field(default_factory=list)
    """Each from the dummy with its index towards the box."""
    joining: list[list[int]] = field(default_factory=list)
    """The weights of the links that use the trunk from the dummy with this index on."""


def _add_chain(
    graph: LayeredGraph, trunk: _Trunk, number: int, link: BoxLink, *, label_layer: int | None, weight: int
) -> None:
    """Joins the cells a link passes. Only what lies before the trunk is its own."""
    source, target, back = graph.boxes[link.source], trunk.target, trunk.back
    own = [source]
    if label_layer is not None and link.label is not None:
        half = link.label.width / 2
        label = Cell("label", label_layer, link.label.height, half, half, link.label.width)
        graph.labels[number] = _add_cell(graph, label)
        own.append(label)
    length = abs(source.layer - target.layer) - len(own)
    _grow_trunk(graph, trunk, length, number, link.kind)
    own.append(trunk.cells[length - 1] if length else target)
    chain = [_join_cells(first, second, number, link.kind, back=back) for first, second in pairwise(own)]
    for strand in chain:
        strand.weight, strand.cost = weight, weight
    if length:
        trunk.joining[length - 1].append(weight)
    chain += reversed(trunk.strands[:length])
    graph.chains[number] = chain[::-1] if back else chain
    if back:
        source.back_out.append(number)
        if link.kind not in target.back_in:
            target.back_in.append(link.kind)


def _grow_trunk(graph: LayeredGraph, trunk: _Trunk, length: int, number: int, kind: str) -> None:
    for index in range(len(trunk.cells), length):
        layer = trunk.target.layer + (index + 1 if trunk.back else -index - 1)
        cell = _add_cell(graph, Cell("dummy", layer, 0.0, DUMMY_WIDTH / 2, DUMMY_WIDTH / 2))
        towards = trunk.cells[-1] if trunk.cells else trunk.target
        trunk.cells.append(cell)
        trunk.strands.append(_join_cells(cell, towards, number, kind, back=trunk.back))
        trunk.joining.append([])


def _join_cells(first: Cell, second: Cell, number: int, kind: str, *, back: bool) -> Strand:
    upper, lower = (second, first) if back else (first, second)
    strand = Strand(upper, lower, kind, back, number)
    upper.below.append(strand)
    lower.above.append(strand)
    return strand


def _weigh_trunk(trunk: _Trunk) -> None:
    weight, cost = 0, 1
    for strand, joining in zip(reversed(trunk.strands), reversed(trunk.joining), strict=True):
        weight += sum(joining)
        cost = max(cost, *joining, 1)
        strand.weight, strand.cost = weight, cost


def _reserve_sides(box: Cell, links: Sequence[BoxLink]) -> None:
    """Room beside a box for what leaves or enters it at its sides."""
    tracks = max(len(box.back_in), len(box.back_out))
    if tracks:
        box.left += SIDE + TRACK * (tracks - 1) + DUMMY_WIDTH
    if box.loops:
        labels = [label for number in box.loops if (label := links[number].label)]
        box.right += LOOP + max((label.width + LABEL_GAP for label in labels), default=0.0)
        tallest = max((label.height + LABEL_GAP for label in labels), default=0.0)
        box.room = max(box.height, tallest * len(box.loops))
