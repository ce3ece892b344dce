"""Heights for the horizontal lines between two layers, so that none lies on another."""

from collections.abc import Iterable
from dataclasses import dataclass

from noetl.graph.layout.strands import Strand

NEAR = 7.0
"""Lines closer than this look like one."""
OVERLAP = 1000
"""What lying on another line costs, in crossings."""


@dataclass(slots=True, eq=False)
class ChannelNet:
    """Strands that meet at one horizontal line, with the `x` at which lines from above and below end."""

    tops: list[float]
    bottoms: list[float]
    strands: list[Strand]

    @property
    def low(self) -> float:
        return min(*self.tops, *self.bottoms)

    @property
    def high(self) -> float:
        return max(*self.tops, *self.bottoms)

    @property
    def straight(self) -> bool:
        return self.high - self.low < 0.5


def channel_nets(strands: Iterable[Strand]) -> list[ChannelNet]:
    """Strands grouped by the line they share, in the order of their first strand."""
    by_net: dict[tuple[bool, int, str], ChannelNet] = {}
    for strand in strands:
        net = by_net.setdefault(strand.net, ChannelNet([], [], []))
        net.strands.append(strand)
        net.tops.append(strand.upper_x)
        net.bottoms.append(strand.lower_x)
    return list(by_net.values())


def assign_lanes(group: list[ChannelNet]) -> tuple[dict[ChannelNet, int], int]:
    """A lane for every net that is not straight, counted from the top, and the number of lanes."""
    bent = sorted((net for net in group if not net.straight), key=lambda net: (net.low, net.high))
    above: dict[ChannelNet, dict[ChannelNet, int]] = {net: {} for net in bent}
    for number, first in enumerate(bent):
        for second in bent[number + 1 :]:
            # They are sorted by their left ends: whatever comes later lies further right still.
            if second.low > first.high + NEAR:
                break
            gain = _order_cost(second, first) - _order_cost(first, second)
            if gain > 0:
                above[first][second] = gain
            elif gain < 0:
                above[second][first] = -gain
    lanes: dict[ChannelNet, int] = {}
    taken: list[list[ChannelNet]] = []
    for net in _top_down_order(bent, above):
        lane = max((lanes[other] + 1 for other in lanes if net in above[other]), default=0)
        while lane < len(taken) and any(_overlap(net, other) for other in taken[lane]):
            lane += 1
        while lane >= len(taken):
            taken.append([])
        taken[lane].append(net)
        lanes[net] = lane
    return lanes, len(taken)


def _overlap(first: ChannelNet, second: ChannelNet) -> bool:
    return first.low <= second.high + NEAR and second.low <= first.high + NEAR


def _order_cost(upper: ChannelNet, lower: ChannelNet) -> int:
    """Crossings, and lines on lines, if `upper` runs above `lower`."""
    cost = sum(1 for x in upper.bottoms if lower.low < x < lower.high)
    cost += sum(1 for x in lower.tops if upper.low < x < upper.high)
    cost += OVERLAP * sum(1 for x in upper.bottoms for y in lower.tops if abs(x - y) < NEAR)
    return cost


def _top_down_order(
    bent: list[ChannelNet], above: dict[ChannelNet, dict[ChannelNet, int]]
) -> list[ChannelNet]:
    """An order from top to bottom that breaks as little of `above` as a greedy choice can."""
    balance = {net: sum(above[net].values()) for net in bent}
    for gains in above.values():
        for other, gain in gains.items():
            balance[other] -= gain
    incoming: dict[ChannelNet, dict[ChannelNet, int]] = {net: {} for net in bent}
    for net, gains in above.items():
        for other, gain in gains.items():
            incoming[other][net] = gain
    order: list[ChannelNet] = []
    # A dict, not a set: the order of equal candidates must be the same every time.
    open_nets = dict.fromkeys(bent)
    while open_nets:
        free = next(
            (net for net in open_nets if not any(other in open_nets for other in incoming[net])), None
        )
        net = free if free is not None else max(open_nets, key=lambda candidate: balance[candidate])
        del open_nets[net]
        order.append(net)
        for other, gain in above[net].items():
            balance[other] += gain
        for other, gain in incoming[net].items():
            balance[other] -= gain
    return order
