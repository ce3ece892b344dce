"""The channel between two layers: where lines leave and enter boxes, and at which heights they run across.

Ports are the ends of lines on a box's border. Lanes are heights, so that no line lies on another.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from noetl.graph.layout.layered_graph import SIDE, TRACK, Cell, Strand

NEAR = 7.0
"""Lines closer than this look like one."""
OVERLAP = 1000
"""What lying on another line costs, in crossings."""
CORNER = 18.0
"""A box's corners stay free of lines this far."""
SPREAD = 20.0
"""The distance between two lines that leave a box side by side, where there is room."""
LEAN = 0.28
"""A line that cannot be straight leaves this part of the width from the middle."""


@dataclass(slots=True, eq=False)
class ChannelNet:
    """Strands that meet at one horizontal line, with the `x` at which they end above and below, sorted."""

    strands: list[Strand]
    tops: list[float] = field(init=False)
    bottoms: list[float] = field(init=False)
    low: float = field(init=False)
    high: float = field(init=False)

    def __post_init__(self) -> None:
        # Once for each net: every net is held against all others of its channel.
        self.tops = sorted([strand.upper_x for strand in self.strands])
        self.bottoms = sorted([strand.lower_x for strand in self.strands])
        self.low = min(self.tops[0], self.bottoms[0])
        self.high = max(self.tops[-1], self.bottoms[-1])

    @property
    def straight(self) -> bool:
        return self.high - self.low < 0.5


def channel_nets(strands: Iterable[Strand]) -> list[ChannelNet]:
    """Strands grouped by the line they share, in the order of their first strand."""
    return [ChannelNet(members) for members in strands_by_net(strands)]


def strands_by_net(strands: Iterable[Strand]) -> list[list[Strand]]:
    by_net: dict[tuple[bool, int, str], list[Strand]] = {}
    for strand in strands:
        by_net.setdefault(strand.net, []).append(strand)
    return list(by_net.values())


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
        arriving = strands_by_net(strand for strand in box.above if not strand.back)
        wishes = []
        for strands in arriving:
            ends = sorted(strand.upper_x for strand in strands for _ in range(strand.weight))
            middle = (ends[(len(ends) - 1) // 2] + ends[len(ends) // 2]) / 2
            turns = column_of[strands[0].upper.layer] != column_of[box.layer]
            wishes.append((box.x, box.x) if turns else (middle, middle))
        for strands, x in zip(arriving, _spread_ports(box, wishes), strict=True):
            for strand in strands:
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


def assign_lanes(group: list[ChannelNet]) -> tuple[dict[ChannelNet, int], int]:
    """A lane for every net that is not straight, counted from the top, and the number of lanes."""
    bent = sorted((net for net in group if not net.straight), key=lambda net: (net.low, net.high))
    above: dict[ChannelNet, dict[ChannelNet, int]] = {net: {} for net in bent}
    below: dict[ChannelNet, dict[ChannelNet, int]] = {net: {} for net in bent}
    for number, first in enumerate(bent):
        reach = first.high + NEAR
        for index in range(number + 1, len(bent)):
            second = bent[index]
            # They are sorted by their left ends: whatever comes later lies further right still.
            if second.low > reach:
                break
            gain = _order_cost(second, first) - _order_cost(first, second)
            if gain > 0:
                above[first][second] = below[second][first] = gain
            elif gain < 0:
                above[second][first] = below[first][second] = -gain
    lanes: dict[ChannelNet, int] = {}
    taken: list[list[tuple[float, float]]] = []
    for net in _top_down_order(bent, above, below):
        lane = max((lanes[other] + 1 for other in below[net] if other in lanes), default=0)
        while lane < len(taken) and not _is_free(taken[lane], net):
            lane += 1
        while lane >= len(taken):
            taken.append([])
        insort(taken[lane], (net.low, net.high))
        lanes[net] = lane
    return lanes, len(taken)


def _is_free(spans: list[tuple[float, float]], net: ChannelNet) -> bool:
    """Whether a net fits between the sorted spans of a lane, which lie apart: only its neighbours matter."""
    index = bisect_left(spans, (net.low, net.high))
    if index and spans[index - 1][1] + NEAR >= net.low:
        return False
    return index == len(spans) or spans[index][0] > net.high + NEAR


def _order_cost(upper: ChannelNet, lower: ChannelNet) -> int:
    """Crossings, and lines on lines, if `upper` runs above `lower`."""
    feet, heads = upper.bottoms, lower.tops
    cost = bisect_left(feet, lower.high) - bisect_right(feet, lower.low)
    cost += bisect_left(heads, upper.high) - bisect_right(heads, upper.low)
    for x in feet:
        for y in heads:
            if -NEAR < x - y < NEAR:
                cost += OVERLAP
    return cost


def _top_down_order(
    bent: list[ChannelNet],
    above: dict[ChannelNet, dict[ChannelNet, int]],
    below: dict[ChannelNet, dict[ChannelNet, int]],
) -> list[ChannelNet]:
    """An order from top to bottom that breaks as little of `above` as a greedy choice can."""
    balance = {net: sum(above[net].values()) - sum(below[net].values()) for net in bent}
    waiting = {net: len(below[net]) for net in bent}
    order: list[ChannelNet] = []
    # A dict, not a set: the order of equal candidates must be the same every time.
    open_nets = dict.fromkeys(bent)
    while open_nets:
        net = next((net for net in open_nets if not waiting[net]), None)
        if net is None:
            net = max(open_nets, key=balance.__getitem__)
        del open_nets[net]
        order.append(net)
        for other, gain in above[net].items():
            balance[other] += gain
            waiting[other] -= 1
        for other, gain in below[net].items():
            balance[other] -= gain
    return order
