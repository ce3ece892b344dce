"""The order of cells within their layers, with few crossings."""

from noetl.graph.layout.layered_graph import Cell, LayeredGraph, Strand

SWEEPS = 16
PATIENCE = 4
"""Sweeps without any gain after which nothing more is expected."""
SIDEWAYS = 0.4
"""A strand at a box's left side counts as this much further left than the box."""


def order_layers(graph: LayeredGraph, root: Cell) -> None:
    """Orders every layer in place and numbers its cells; equal graphs get equal orders."""
    layers = graph.layers
    _depth_first_order(layers, root)
    best = [list(layer) for layer in layers]
    fewest = count_crossings(layers)
    stale = 0
    for sweep in range(SWEEPS):
        if fewest == 0 or stale == PATIENCE:
            break
        _sweep(layers, downwards=sweep % 2 == 0)
        _swap_neighbours(layers)
        count = count_crossings(layers)
        stale += 1
        if count < fewest:
            best, fewest, stale = [list(layer) for layer in layers], count, 0
    for layer, order in zip(layers, best, strict=True):
        layer[:] = order
        _number_cells(layer)


def count_crossings(layers: list[list[Cell]]) -> int:
    """What all crossings between neighbouring layers cost together.

    The sum over all pairs of strands, in n log n: a thousand arcs have half a million pairs, and every
    sweep counts anew. The tree (Fenwick's) holds the costs of the strands passed, by their lower ends.
    """
    total = 0
    for layer in layers[:-1]:
        strands = [strand for cell in layer for strand in cell.below]
        ends = sorted((_upper_position(strand), _lower_position(strand), strand.cost) for strand in strands)
        slots = {end: slot for slot, end in enumerate(sorted({end for _, end, _ in ends}), start=1)}
        tree = [0] * (len(slots) + 1)
        passed = 0
        for _, end, cost in ends:
            slot, before = slots[end], 0
            while slot:
                before += tree[slot]
                slot &= slot - 1
            total += cost * (passed - before)
            passed += cost
            slot = slots[end]
            while slot < len(tree):
                tree[slot] += cost
                slot += slot & -slot
    return total


def _upper_position(strand: Strand) -> float:
    cell = strand.upper
    return cell.position - SIDEWAYS if strand.back and cell.kind == "box" else cell.position


def _lower_position(strand: Strand) -> float:
    cell = strand.lower
    return cell.position - SIDEWAYS if strand.back and cell.kind == "box" else cell.position


def _number_cells(layer: list[Cell]) -> None:
    for position, cell in enumerate(layer):
        cell.position = position


def _depth_first_order(layers: list[list[Cell]], root: Cell) -> None:
    """Depth first from the root, so that what belongs together starts together, in arc order."""
    ordered: list[list[Cell]] = [[] for _ in layers]
    seen: set[Cell] = set()
    for start in (root, *(cell for layer in layers for cell in layer)):
        stack = [start]
        while stack:
            cell = stack.pop()
            if cell in seen:
                continue
            seen.add(cell)
            ordered[cell.layer].append(cell)
            stack.extend(strand.lower for strand in reversed(cell.below))
    for layer, order in zip(layers, ordered, strict=True):
        layer[:] = order
        _number_cells(layer)


def _sweep(layers: list[list[Cell]], *, downwards: bool) -> None:
    """Sorts each layer by where its neighbours in the layer before stand on average."""
    for layer in layers if downwards else reversed(layers):
        mean_position: dict[Cell, float] = {}
        for cell in layer:
            strands, position_of = (
                (cell.above, _upper_position) if downwards else (cell.below, _lower_position)
            )
            total = sum(strand.weight for strand in strands)
            mean_position[cell] = (
                sum(position_of(s) * s.weight for s in strands) / total if total else cell.position
            )
        layer.sort(key=mean_position.__getitem__)
        _number_cells(layer)


def _swap_neighbours(layers: list[list[Cell]]) -> None:
    """Swaps neighbours wherever that alone removes crossings."""
    for layer in layers:
        for index in range(len(layer) - 1):
            left, right = layer[index], layer[index + 1]
            cost = _pair_cost(left, right)
            if cost and _pair_cost(right, left) < cost:
                layer[index], layer[index + 1] = right, left
                left.position, right.position = right.position, left.position


def _pair_cost(left: Cell, right: Cell) -> int:
    """The cost of crossings between the strands of two neighbours, `left` standing before `right`."""
    above = _inversion_cost(
        [(_upper_position(s), s.cost) for s in left.above],
        [(_upper_position(s), s.cost) for s in right.above],
    )
    below = _inversion_cost(
        [(_lower_position(s), s.cost) for s in left.below],
        [(_lower_position(s), s.cost) for s in right.below],
    )
    return above + below


def _inversion_cost(left: list[tuple[float, int]], right: list[tuple[float, int]]) -> int:
    # Most neighbours do not cross at all: that is seen without looking at every pair.
    if not left or not right or max(left)[0] <= min(right)[0]:
        return 0
    return sum(cost * price for end, cost in left for other, price in right if other < end)
