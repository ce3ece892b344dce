"""Horizontal positions: as many straight lines as possible, nothing overlapping.

The method of Brandes and Köpf: align cells with their median neighbours in four directions,
compact each, take the average of the middle two. Then lines are drawn together, where that left
them apart: they stay as straight as they are and become shorter.
"""

from bisect import bisect_left
from dataclasses import dataclass, field
from itertools import pairwise

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


def align_cells(layers: list[list[Cell]]) -> None:
    """Sets `x` of every cell in `layers`; the leftmost side is at 0. The order of cells is kept."""
    crossed = _crossed_strands(layers)
    candidates = []
    for downwards in (True, False):
        for rightwards in (True, False):
            view = [layer if rightwards else layer[::-1] for layer in (layers if downwards else layers[::-1])]
            root = _block_roots(view, crossed, downwards=downwards, rightwards=rightwards)
            positions = _compact_left(view, root, rightwards=rightwards)
            sign = 1.0 if rightwards else -1.0
            candidates.append({cell: sign * x for cell, x in positions.items()})
    spans = [_span(candidate) for candidate in candidates]
    low, high = min(spans, key=lambda span: span[1] - span[0])
    for number, candidate in enumerate(candidates):
        # Candidates pushed to the left agree on their left end, the others on their right.
        shift = low - spans[number][0] if number % 2 == 0 else high - spans[number][1]
        for cell in candidate:
            candidate[cell] += shift
    for cell in candidates[0]:
        _, second, third, _ = sorted(candidate[cell] for candidate in candidates)
        cell.x = (second + third) / 2
    _compact_blocks(layers)
    edge = min((cell.x - cell.left for layer in layers for cell in layer), default=0.0)
    for layer in layers:
        for cell in layer:
            cell.x -= edge


def _span(candidate: dict[Cell, float]) -> tuple[float, float]:
    return (
        min(x - cell.left for cell, x in candidate.items()),
        max(x + cell.right for cell, x in candidate.items()),
    )


def _medians(cell: Cell, *, downwards: bool, rightwards: bool) -> list[Cell]:
    """The middle one or two of the cells a line goes to, each counted once for every link.

    A line at a box's side bends in any case, so its other end is no partner.
    """
    if downwards:
        partners = [(strand.upper, strand.weight) for strand in cell.above if not _is_side_strand(strand)]
    else:
        partners = [(strand.lower, strand.weight) for strand in cell.below if not _is_side_strand(strand)]
    if len(partners) < 2:
        return [partner for partner, _ in partners]
    partners.sort(key=lambda partner: partner[0].position)
    total = sum(weight for _, weight in partners)
    low, high = _cell_at(partners, (total - 1) // 2), _cell_at(partners, total // 2)
    both = [low, high] if low is not high else [low]
    return both if rightwards else both[::-1]


def _cell_at(partners: list[tuple[Cell, int]], rank: int) -> Cell:
    for cell, weight in partners:
        rank -= weight
        if rank < 0:
            return cell
    raise AssertionError("the rank is one of theirs")


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


def _block_roots(
    view: list[list[Cell]], crossed: set[tuple[Cell, Cell]], *, downwards: bool, rightwards: bool
) -> dict[Cell, Cell]:
    """For each cell the first of those it shares a vertical line with."""
    root = {cell: cell for layer in view for cell in layer}
    taken: set[Cell] = set()
    members = set(root)
    for layer in view:
        limit: float = -1
        for cell in layer:
            for partner in _medians(cell, downwards=downwards, rightwards=rightwards):
                # Mirrored where the view is, so that a limit is always passed upwards.
                spot = partner.position if rightwards else 1e9 - partner.position
                pair = (partner, cell) if downwards else (cell, partner)
                if root[cell] is not cell or spot <= limit or partner in taken or pair in crossed:
                    continue
                # A cell of another column is no partner, though a strand leads there.
                if partner in members:
                    root[cell] = root[partner]
                    taken.add(partner)
                    limit = spot
    return root


def _compact_left(view: list[list[Cell]], root: dict[Cell, Cell], *, rightwards: bool) -> dict[Cell, float]:
    """Blocks as far to the left as they go, then pulled back towards what stands to their right."""
    after: dict[Cell, dict[Cell, float]] = {cell: {} for cell in root if root[cell] is cell}
    before: dict[Cell, dict[Cell, float]] = {cell: {} for cell in after}
    for layer in view:
        for first, second in pairwise(layer):
            left, right = (first, second) if rightwards else (second, first)
            room = _cell_distance(left, right)
            a, b = root[first], root[second]
            after[a][b] = max(room, after[a].get(b, 0.0))
            before[b][a] = after[a][b]
    order = _topological(after, before)
    positions: dict[Cell, float] = {}
    for block in order:
        positions[block] = max(
            (positions[other] + room for other, room in before[block].items()), default=0.0
        )
    for block in reversed(order):
        if after[block]:
            limit = min(positions[other] - room for other, room in after[block].items())
            positions[block] = max(positions[block], limit)
    return {cell: positions[root[cell]] for cell in root}


def _topological(after: dict[Cell, dict[Cell, float]], before: dict[Cell, dict[Cell, float]]) -> list[Cell]:
    open_counts = {block: len(predecessors) for block, predecessors in before.items()}
    order = [block for block, count in open_counts.items() if count == 0]
    for block in order:
        for other in after[block]:
            open_counts[other] -= 1
            if open_counts[other] == 0:
                order.append(other)
    return order


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
