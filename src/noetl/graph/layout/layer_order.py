"""The order of cells within their layers, with few crossings."""

from bisect import bisect_right
from typing import TypeAlias

from noetl.graph.layout.layered_graph import Cell, LayeredGraph

SWEEPS = 16
PATIENCE = 4
"""Sweeps without any gain after which nothing more is expected."""


def order_layers(graph: LayeredGraph, root: Cell) -> None:
    """Orders every layer in place and numbers its cells; equal graphs get equal orders."""
    layers = graph.layers
    _depth_first_order(layers, root)
    sweeps = _Sweeps(layers)
    best = [list(layer) for layer in layers]
    fewest = sweeps.count_crossings()
    stale = 0
    for number in range(SWEEPS):
        if fewest == 0 or stale == PATIENCE:
            break
        sweeps.sort_layers(downwards=number % 2 == 0)
        sweeps.swap_neighbours()
        count = sweeps.count_crossings()
        stale += 1
        if count < fewest:
            best, fewest, stale = [list(layer) for layer in layers], count, 0
    for layer, order in zip(layers, best, strict=True):
        layer[:] = order
        _number_cells(layer)


class _Sweeps:
    """Sorts, swaps and counts again only where something has moved since: most layers soon stand still.

    A layer's version grows with every change of its order. What moved nothing is remembered with the
    versions that it saw: with the same ones it would move nothing again.
    """

    def __init__(self, layers: list[list[Cell]]) -> None:
        self._layers = layers
        self._versions = [0] * len(layers)
        self._sorted: dict[tuple[int, bool], tuple[int, int]] = {}
        self._swapped: dict[int, list[int]] = {}
        self._counted: dict[int, tuple[list[int], int]] = {}

    def sort_layers(self, *, downwards: bool) -> None:
        """Sorts each layer by where its neighbours in the layer before stand on average."""
        count, versions = len(self._layers), self._versions
        step = 1 if downwards else -1
        for index in range(count)[::step]:
            before = index - step
            seen = versions[before] if 0 <= before < count else 0
            if self._sorted.get((index, downwards)) == (seen, versions[index]):
                continue
            if _sort_layer(self._layers[index], downwards=downwards):
                versions[index] += 1
            else:
                self._sorted[index, downwards] = (seen, versions[index])

    def swap_neighbours(self) -> None:
        """Swaps neighbours wherever that alone removes crossings."""
        for index, layer in enumerate(self._layers):
            seen = self._versions[max(index - 1, 0) : index + 2]
            if self._swapped.get(index) == seen:
                continue
            if _swap_in_layer(layer):
                self._versions[index] += 1
            else:
                self._swapped[index] = seen

    def count_crossings(self) -> int:
        """What `count_crossings` says of all layers."""
        total = 0
        for index in range(len(self._layers) - 1):
            seen = self._versions[index : index + 2]
            known = self._counted.get(index)
            if known is None or known[0] != seen:
                known = self._counted[index] = (seen, _count_below(self._layers[index]))
            total += known[1]
        return total


def count_crossings(layers: list[list[Cell]]) -> int:
    """What all crossings between neighbouring layers cost together."""
    return sum(_count_below(layer) for layer in layers)


def _count_below(layer: list[Cell]) -> int:
    """What the crossings between a layer and the next cost: the sum over all pairs of strands.

    Not pair by pair: a thousand arcs have half a million pairs. From left to right each strand meets those
    passed that end further right. One that costs n stands n times among them.
    """
    total = 0
    passed: list[float] = [-1.0]
    for cell in layer:
        ends = [(-s.upper_shift, s.lower.position - s.lower_shift, s.cost) for s in cell.below]
        if len(ends) > 1:
            ends.sort()
        for _, end, cost in ends:
            if end >= passed[-1]:
                passed += [end] * cost
            else:
                index = bisect_right(passed, end)
                total += cost * (len(passed) - index)
                passed[index:index] = [end] * cost
    return total


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


def _sort_layer(layer: list[Cell], *, downwards: bool) -> bool:
    """By the mean of the other ends of strands from above, or from below; whether that moved any."""
    means: list[float] = []
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
        means.append(mean / total if total else cell.position)
    if sorted(means) == means:
        return False
    layer[:] = [layer[index] for index in sorted(range(len(layer)), key=means.__getitem__)]
    _number_cells(layer)
    return True


_Ends: TypeAlias = list[tuple[float, int]]
"""Where the strands of a cell end, from left to right, and what each costs to cross."""


def _swap_in_layer(layer: list[Cell]) -> bool:
    """Whether any two have swapped."""
    # The other ends of its strands stand in other layers: they stay where they are meanwhile.
    left = layer[0]
    above, below = _ends_above(left), _ends_below(left)
    moved = False
    for index in range(1, len(layer)):
        right = layer[index]
        right_above, right_below = _ends_above(right), _ends_below(right)
        # Most neighbours do not cross at all: that is seen without looking at every pair.
        crossing = (above and right_above and above[-1] > right_above[0]) or (
            below and right_below and below[-1] > right_below[0]
        )
        if crossing and _swap_gain(above, right_above) + _swap_gain(below, right_below) > 0:
            layer[index - 1], layer[index] = right, left
            left.position, right.position = index, index - 1
            moved = True
        else:
            left, above, below = right, right_above, right_below
    return moved


def _ends_above(cell: Cell) -> _Ends:
    ends = [(strand.upper.position - strand.upper_shift, strand.cost) for strand in cell.above]
    if len(ends) > 1:
        ends.sort()
    return ends


def _ends_below(cell: Cell) -> _Ends:
    ends = [(strand.lower.position - strand.lower_shift, strand.cost) for strand in cell.below]
    if len(ends) > 1:
        ends.sort()
    return ends


def _swap_gain(left: _Ends, right: _Ends) -> int:
    """What the crossings of two neighbours' strands that end so cost less, if they swap."""
    gain = 0
    for end, cost in left:
        for other, price in right:
            if other < end:
                gain += cost * price
            elif other > end:
                gain -= cost * price
    return gain
