"""Draws together what alignment left apart: lines stay as straight as they are and become shorter."""

from bisect import bisect_left
from dataclasses import dataclass, field
from itertools import pairwise

from noetl.graph.layout.strands import SIDE, Cell, Strand

ROUNDS = 10
STILL = 0.5
END_PULL, SIDE_PULL = 5, 1
"""What a line is joined to at its ends moves it; what branches off on the way follows it."""
GAPS = {"box": 40.0, "label": 16.0, "dummy": 14.0}


def cell_distance(left: Cell, right: Cell) -> float:
    """The least distance between the `x` of two neighbours."""
    return left.right + right.left + min(GAPS[left.kind], GAPS[right.kind])


def is_side_strand(strand: Strand) -> bool:
    """A line at a box's side."""
    return strand.back and "box" in (strand.upper.kind, strand.lower.kind)


@dataclass(slots=True, eq=False)
class _Block:
    """Cells on one vertical line, which move together."""

    x: float
    cells: list[Cell] = field(default_factory=list)
    pulls: list[tuple["_Block", float, int]] = field(default_factory=list)
    """Blocks it is joined to, where that one wants it as a distance from itself, and how strongly."""
    left: list[tuple["_Block", float]] = field(default_factory=list)
    right: list[tuple["_Block", float]] = field(default_factory=list)


def compact_blocks(layers: list[list[Cell]]) -> None:
    """Moves whole lines towards what they are joined to, as far as their neighbours allow."""
    blocks = _blocks(layers)
    for number in range(ROUNDS):
        moved = 0.0
        # To and fro: what stood in the way in one direction has moved when the other comes.
        for block in blocks if number % 2 == 0 else reversed(blocks):
            if not block.pulls:
                continue
            low = max((other.x + room for other, room in block.left), default=float("-inf"))
            high = min((other.x - room for other, room in block.right), default=float("inf"))
            aim = min(max(_preferred_x(block), low), high)
            moved = max(moved, abs(aim - block.x))
            block.x = aim
        if moved < STILL:
            break
    for block in blocks:
        for cell in block.cells:
            cell.x = block.x


def _blocks(layers: list[list[Cell]]) -> list[_Block]:
    members = {cell for layer in layers for cell in layer}
    owner: dict[Cell, _Block] = {}
    blocks: list[_Block] = []
    for start in (cell for layer in layers for cell in layer):
        if start in owner:
            continue
        block = _Block(start.x)
        blocks.append(block)
        stack = [start]
        while stack:
            cell = stack.pop()
            if cell in owner:
                continue
            owner[cell] = block
            block.cells.append(cell)
            for strand in (*cell.above, *cell.below):
                other = strand.lower if strand.upper is cell else strand.upper
                if other in members and abs(other.x - cell.x) < 0.01 and not is_side_strand(strand):
                    stack.append(other)
    for layer in layers:
        for left, right in pairwise(layer):
            owner[left].right.append((owner[right], cell_distance(left, right)))
            owner[right].left.append((owner[left], cell_distance(left, right)))
        for strand in (strand for cell in layer for strand in cell.below if strand.lower in members):
            if owner[strand.upper] is not owner[strand.lower]:
                _add_pulls(strand, owner)
    return blocks


def _add_pulls(strand: Strand, owner: dict[Cell, _Block]) -> None:
    """Notes how far right of the upper block the lower one should be for the line to be straight."""
    upper, lower = owner[strand.upper], owner[strand.lower]
    upper_goes_on = any(owner.get(other.lower) is upper for other in strand.upper.below)
    lower_goes_on = any(owner.get(other.upper) is lower for other in strand.lower.above)
    shift = 0.0
    if strand.back:
        shift -= strand.upper.width / 2 + SIDE if strand.upper.kind == "box" else 0.0
        shift += strand.lower.width / 2 + SIDE if strand.lower.kind == "box" else 0.0
    upper.pulls.append((lower, -shift, strand.weight * (SIDE_PULL if upper_goes_on else END_PULL)))
    lower.pulls.append((upper, shift, strand.weight * (SIDE_PULL if lower_goes_on else END_PULL)))


def _preferred_x(block: _Block) -> float:
    """Where lines are shortest, the nearest such `x` if there are several: a weighted median."""
    aims = sorted((other.x + shift, weight) for other, shift, weight in block.pulls)
    sums: list[int] = []
    total = 0
    for _, weight in aims:
        total += weight
        sums.append(total)
    low = bisect_left(sums, total / 2)
    high = min(low + 1, len(aims) - 1) if sums[low] * 2 == total else low
    return min(max(block.x, aims[low][0]), aims[high][0])
