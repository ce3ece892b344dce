"""The order of cells within their layers, with few crossings."""

from noetl.graph.layout.layered_graph import Cell, LayeredGraph

SWEEPS = 16
PATIENCE = 4
"""Sweeps without any gain after which nothing more is expected."""


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
        ends = sorted(
            (
                strand.upper.position - strand.upper_shift,
                strand.lower.position - strand.lower_shift,
                strand.cost,
            )
            for cell in layer
            for strand in cell.below
        )
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


def _ends_above(cell: Cell) -> list[tuple[float, int]]:
    """Where the strands of a cell end above, and what each costs to cross."""
    return [(strand.upper.position - strand.upper_shift, strand.cost) for strand in cell.above]


def _ends_below(cell: Cell) -> list[tuple[float, int]]:
    return [(strand.lower.position - strand.lower_shift, strand.cost) for strand in cell.below]


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
            total, mean = 0, 0.0
            if downwards:
                for strand in cell.above:
                    total += strand.weight
                    mean += (strand.upper.position - strand.upper_shift) * strand.weight
            else:
                for strand in cell.below:
                    total += strand.weight
                    mean += (strand.lower.position - strand.lower_shift) * strand.weight
            mean_position[cell] = mean / total if total else cell.position
        layer.sort(key=mean_position.__getitem__)
        _number_cells(layer)


def _swap_neighbours(layers: list[list[Cell]]) -> None:
    """Swaps neighbours wherever that alone removes crossings."""
    for layer in layers:
        # The other ends of its strands stand in other layers: they stay where they are meanwhile.
        above = {cell: _ends_above(cell) for cell in layer}
        below = {cell: _ends_below(cell) for cell in layer}
        for index in range(len(layer) - 1):
            left, right = layer[index], layer[index + 1]
            cost = _inversion_cost(above[left], above[right]) + _inversion_cost(below[left], below[right])
            if not cost:
                continue
            swapped = _inversion_cost(above[right], above[left]) + _inversion_cost(below[right], below[left])
            if swapped < cost:
                layer[index], layer[index + 1] = right, left
                left.position, right.position = right.position, left.position


def _inversion_cost(left: list[tuple[float, int]], right: list[tuple[float, int]]) -> int:
    """What the crossings of two neighbours' strands cost that end so, `left` standing before `right`."""
    # Most neighbours do not cross at all: that is seen without looking at every pair.
    if not left or not right or max(left)[0] <= min(right)[0]:
        return 0
    total = 0
    for end, cost in left:
        for other, price in right:
            if other < end:
                total += cost * price
    return total
