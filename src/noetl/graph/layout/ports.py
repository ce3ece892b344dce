"""Where on a box's border its lines begin and end."""

from collections.abc import Sequence

from noetl.graph.layout.lanes import channel_nets
from noetl.graph.layout.strands import SIDE, TRACK, Cell, Strand

CORNER = 18.0
"""A box's corners stay free of lines this far."""
SPREAD = 20.0
"""The distance between two lines that leave a box side by side, where there is room."""
LEAN = 0.28
"""A line that cannot be straight leaves this part of the width from the middle."""


def place_ports(layers: list[list[Cell]], column_of: Sequence[int]) -> None:
    """Sets both ends of every strand: straight under or over its neighbour where the box allows.

    `column_of` gives each layer's column; a strand from one column to the next leaves in the middle.
    """
    for layer in layers:
        for cell in layer:
            for strand in cell.below:
                strand.upper_x = _enter_x(cell, strand) if strand.back and cell.kind == "box" else cell.x
            for strand in cell.above:
                strand.lower_x = _leave_x(cell, strand) if strand.back and cell.kind == "box" else cell.x
    boxes = [cell for layer in layers for cell in layer if cell.kind == "box"]
    for box in boxes:
        leaving = [strand for strand in box.below if not strand.back]
        wishes = []
        for strand in leaving:
            low, high = _entry_range(strand.lower)
            turns = column_of[strand.lower.layer] != column_of[box.layer]
            wishes.append((box.x, box.x) if turns else (low, high))
        for strand, x in zip(leaving, _spread_ports(box, wishes), strict=True):
            strand.upper_x = x
    for box in boxes:
        arriving = channel_nets(strand for strand in box.above if not strand.back)
        wishes = []
        for net in arriving:
            ends = sorted(strand.upper_x for strand in net.strands for _ in range(strand.weight))
            middle = (ends[(len(ends) - 1) // 2] + ends[len(ends) // 2]) / 2
            turns = column_of[net.strands[0].upper.layer] != column_of[box.layer]
            wishes.append((box.x, box.x) if turns else (middle, middle))
        for net, x in zip(arriving, _spread_ports(box, wishes), strict=True):
            for strand in net.strands:
                strand.lower_x = x


def side_offsets(box: Cell) -> dict[tuple[str, int | str], float]:
    """Heights, from the box's top, of lines at its left side: those that leave above those that enter."""
    keys: list[tuple[str, int | str]] = [("out", number) for number in box.back_out]
    keys += [("in", kind) for kind in reversed(box.back_in)]
    step = box.height / (len(keys) + 1)
    return {key: step * (index + 1) for index, key in enumerate(keys)}


def _enter_x(box: Cell, strand: Strand) -> float:
    return box.x - box.width / 2 - SIDE - TRACK * box.back_in.index(strand.kind)


def _leave_x(box: Cell, strand: Strand) -> float:
    return box.x - box.width / 2 - SIDE - TRACK * box.back_out.index(strand.link)


def _entry_range(cell: Cell) -> tuple[float, float]:
    """Where a line from above can enter a cell."""
    free = max(cell.width / 2 - CORNER, 0.0) if cell.kind == "box" else 0.0
    return cell.x - free, cell.x + free


def _spread_ports(box: Cell, wishes: list[tuple[float, float]]) -> list[float]:
    """Positions on the border for lines that want to be within `wishes`, apart and in the same order."""
    if not wishes:
        return []
    low, high = _entry_range(box)
    step = min(SPREAD, (high - low) / max(len(wishes) - 1, 1))
    aims: list[tuple[float, int, float]] = []
    for number, (first, last) in enumerate(wishes):
        middle = (first + last) / 2
        if max(first, low) <= min(last, high):
            aims.append((middle, number, min(max(middle, first, low), last, high)))
        else:
            lean = LEAN * box.width
            aims.append((middle, number, box.x + (lean if middle > box.x else -lean)))
    aims.sort()
    xs = [0.0] * len(aims)
    for start, end, mean in _pooled_positions([aim for _, _, aim in aims], step):
        for index in range(start, end):
            xs[index] = mean + (index - start) * step
    # Spreading keeps distances; what was pushed over an end is moved back as a whole.
    for index in range(len(xs)):
        xs[index] = max(xs[index], low + index * step)
    for index in reversed(range(len(xs))):
        xs[index] = min(xs[index], high - (len(xs) - 1 - index) * step)
    result = [0.0] * len(aims)
    for (_, number, _), x in zip(aims, xs, strict=True):
        result[number] = x
    return result


def _pooled_positions(aims: list[float], step: float) -> list[tuple[int, int, float]]:
    """Groups of neighbours that stand `step` apart, each with its first `x`: least squares."""
    pools: list[tuple[int, int, float]] = []
    for number, aim in enumerate(aims):
        start, end, first = number, number + 1, aim
        while pools and pools[-1][2] + (pools[-1][1] - pools[-1][0]) * step > first:
            before, middle, earlier = pools.pop()
            left, right = middle - before, end - start
            first = (earlier * left + (first - left * step) * right) / (left + right)
            start = before
        pools.append((start, end, first))
    return pools
