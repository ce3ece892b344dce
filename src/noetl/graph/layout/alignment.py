"""Horizontal positions: as many straight lines as possible, nothing overlapping.

The method of Brandes and Köpf: align cells with their median neighbours in four directions,
compact each, take the average of the middle two. Then lines are drawn together, where that left
them apart: they stay as straight as they are and become shorter.
"""

from bisect import bisect_left
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from operator import add, sub

from noetl.graph.layout.layered_graph import SIDE, Cell, Strand

ROUNDS = 10
STILL = 0.5
END_PULL, SIDE_PULL = 5, 1
"""What a line is joined to at its ends moves it; what branches off on the way follows it."""
GAPS = {"box": 40.0, "label": 16.0, "dummy": 14.0}


@dataclass(slots=True, eq=False)
class _Block:
    """Cells on one vertical line, which move together."""

    x: float
    cells: list[Cell] = field(default_factory=list)
    pulls: list[tuple["_Block", float, int]] = field(default_factory=list)
    """Blocks it is joined to, where that one wants it as a distance from itself, and how strongly."""
    left: list[tuple["_Block", float]] = field(default_factory=list)
    right: list[tuple["_Block", float]] = field(default_factory=list)


class Alignment:
    """Aligns layers whose order stands: all of them, or some that follow each other, by themselves.

    Cells are numbers here, counted layer by layer and from left to right, and what does not depend on which
    layers are aligned is found once: a folded drawing is aligned several times, and lists are read faster
    than tables of cells.
    """

    def __init__(self, layers: list[list[Cell]]) -> None:
        self._layers = layers
        self._cells = [cell for layer in layers for cell in layer]
        self._starts = [0, *accumulate(len(layer) for layer in layers)]
        number = {cell: index for index, cell in enumerate(self._cells)}
        self._upper = [_medians(_partners_above(cell), number) for cell in self._cells]
        self._lower = [_medians(_partners_below(cell), number) for cell in self._cells]
        self._crossed = {(number[upper], number[lower]) for upper, lower in _crossed_strands(layers)}
        self._rooms = [_cell_distance(left, right) for left, right in pairwise(self._cells)]
        """The least distance to the next cell, which means nothing at the end of a layer."""

    def align(self, first: int, end: int) -> None:
        """Sets `x` of every cell in the layers from `first` to before `end`; the leftmost side is at 0."""
        start, stop = self._starts[first], self._starts[end]
        cells = self._cells[start:stop]
        lefts, rights = [cell.left for cell in cells], [cell.right for cell in cells]
        candidates: list[list[float]] = []
        for downwards in (True, False):
            for rightwards in (True, False):
                roots = self._block_roots(first, end, downwards=downwards, rightwards=rightwards)
                candidates.append(self._compact(first, end, roots, rightwards=rightwards))
        spans = [
            (min(map(sub, candidate, lefts)), max(map(add, candidate, rights))) for candidate in candidates
        ]
        low, high = min(spans, key=lambda span: span[1] - span[0])
        # Candidates pushed to the left agree on their left end, the others on their right.
        shifts = [low - span[0] if number % 2 == 0 else high - span[1] for number, span in enumerate(spans)]
        for cell, positions in zip(cells, zip(*candidates, strict=True), strict=True):
            _, second, third, _ = sorted(map(add, positions, shifts))
            cell.x = (second + third) / 2
        column = self._layers[first:end]
        _compact_blocks(column)
        edge = min((cell.x - cell.left for cell in cells), default=0.0)
        for cell in cells:
            cell.x -= edge

    def _block_roots(self, first: int, end: int, *, downwards: bool, rightwards: bool) -> list[int]:
        """For each cell the first of those it shares a vertical line with, counted from the first cell."""
        start, stop = self._starts[first], self._starts[end]
        roots = list(range(stop - start))
        taken = [False] * (stop - start)
        medians, crossed = self._upper if downwards else self._lower, self._crossed
        sign = 1 if rightwards else -1
        for layer in range(first, end)[:: 1 if downwards else -1]:
            # Mirrored where cells are taken from the right, so that a limit is always passed upwards.
            limit = -len(self._cells)
            for cell in range(self._starts[layer], self._starts[layer + 1])[::sign]:
                for partner in medians[cell][::sign]:
                    # A cell of another column is no partner, though a strand leads there.
                    if partner * sign <= limit or not start <= partner < stop or taken[partner - start]:
                        continue
                    if ((partner, cell) if downwards else (cell, partner)) in crossed:
                        continue
                    roots[cell - start] = roots[partner - start]
                    taken[partner - start] = True
                    limit = partner * sign
                    break
        return roots

    def _compact(self, first: int, end: int, roots: list[int], *, rightwards: bool) -> list[float]:
        """Blocks as far to one side as they go, then pulled back towards what stands on the other."""
        start = self._starts[first]
        after: list[list[tuple[int, float]]] = [[] for _ in roots]
        before: list[list[tuple[int, float]]] = [[] for _ in roots]
        for layer in range(first, end):
            for cell in range(self._starts[layer] - start, self._starts[layer + 1] - start - 1):
                left, right, room = roots[cell], roots[cell + 1], self._rooms[cell + start]
                if not rightwards:
                    left, right = right, left
                after[left].append((right, room))
                before[right].append((left, room))
        order = _topological(after, [len(edges) for edges in before])
        positions = [0.0] * len(roots)
        for block in order:
            position = 0.0
            for other, room in before[block]:
                position = max(position, positions[other] + room)
            positions[block] = position
        for block in reversed(order):
            if after[block]:
                limit = min([positions[other] - room for other, room in after[block]])
                positions[block] = max(positions[block], limit)
        sign = 1.0 if rightwards else -1.0
        return [sign * positions[root] for root in roots]


def _partners_above(cell: Cell) -> list[tuple[Cell, int]]:
    """The cells that lines come from, and for how many links.

    A line at a box's side bends in any case, so its other end is no partner.
    """
    return [(strand.upper, strand.weight) for strand in cell.above if not _is_side_strand(strand)]


def _partners_below(cell: Cell) -> list[tuple[Cell, int]]:
    return [(strand.lower, strand.weight) for strand in cell.below if not _is_side_strand(strand)]


def _medians(partners: list[tuple[Cell, int]], number: dict[Cell, int]) -> list[int]:
    """The middle one or two of the cells a line goes to, each counted once for every link."""
    if len(partners) < 2:
        return [number[partner] for partner, _ in partners]
    partners.sort(key=lambda partner: partner[0].position)
    total = sum(weight for _, weight in partners)
    low, high = _cell_at(partners, (total - 1) // 2), _cell_at(partners, total // 2)
    return [number[low], number[high]] if low is not high else [number[low]]


def _cell_at(partners: list[tuple[Cell, int]], rank: int) -> Cell:
    for cell, weight in partners:
        rank -= weight
        if rank < 0:
            return cell
    raise AssertionError("the rank is one of theirs")


def _topological(after: list[list[tuple[int, float]]], open_counts: list[int]) -> list[int]:
    """Every block after those that stand before it."""
    order = [block for block, count in enumerate(open_counts) if count == 0]
    for block in order:
        for other, _ in after[block]:
            open_counts[other] -= 1
            if open_counts[other] == 0:
                order.append(other)
    return order


def _crossed_strands(layers: list[list[Cell]]) -> set[tuple[Cell, Cell]]:
    """Strands at boxes that cross a strand between dummies: the long line is the one to be straight."""
    pairs: set[tuple[Cell, Cell]] = set()
    for upper, lower in pairwise(layers):
        first, start = 0, 0
        for index, cell in enumerate(lower):
            inner = None
            if cell.kind != "box":
                inner = next((s.upper for s in cell.above if s.upper.kind != "box"), None)
            if inner is None and index < len(lower) - 1:
                continue
            last = inner.position if inner is not None else len(upper)
            for other in lower[start : index + 1]:
                for strand in other.above:
                    outside = not first <= strand.upper.position <= last
                    if outside and "box" in (strand.upper.kind, other.kind):
                        pairs.add((strand.upper, other))
            start, first = index + 1, last
    return pairs


def _cell_distance(left: Cell, right: Cell) -> float:
    """The least distance between the `x` of two neighbours."""
    return left.right + right.left + min(GAPS[left.kind], GAPS[right.kind])


def _is_side_strand(strand: Strand) -> bool:
    """A line at a box's side."""
    return strand.back and "box" in (strand.upper.kind, strand.lower.kind)


def _compact_blocks(layers: list[list[Cell]]) -> None:
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
                if other in members and abs(other.x - cell.x) < 0.01 and not _is_side_strand(strand):
                    stack.append(other)
    for layer in layers:
        for left, right in pairwise(layer):
            owner[left].right.append((owner[right], _cell_distance(left, right)))
            owner[right].left.append((owner[left], _cell_distance(left, right)))
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
