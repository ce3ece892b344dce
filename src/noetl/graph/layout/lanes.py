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
    """Strands that meet at one horizontal line, with the places where lines from above and below end."""

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
    found: dict[tuple[bool, int, str], ChannelNet] = {}
    for strand in strands:
        net = found.setdefault(strand.net, ChannelNet([], [], []))
        net.strands.append(strand)
        net.tops.append(strand.upper_x)
        net.bottoms.append(strand.lower_x)
    return list(found.values())


def assign_lanes(group: list[ChannelNet]) -> tuple[dict[ChannelNet, int], int]:
    """A lane for every net that is not straight, counted from the top, and the number of lanes."""
    bent = sorted((net for net in group if not net.straight), key=lambda net: (net.low, net.high))
    above: dict[ChannelNet, dict[ChannelNet, int]] = {net: {} for net in bent}
    for number, one in enumerate(bent):
        for two in bent[number + 1 :]:
            if two.low > one.high + NEAR:
                break
            gain = _cost(two, one) - _cost(one, two)
            if gain > 0:
                above[one][two] = gain
            elif gain < 0:
                above[two][one] = -gain
    lanes: dict[ChannelNet, int] = {}
    taken: list[list[ChannelNet]] = []
    for net in _sequence(bent, above):
        lane = max((lanes[other] + 1 for other in lanes if net in above[other]), default=0)
        while lane < len(taken) and any(_touch(net, other) for other in taken[lane]):
            lane += 1
        while lane >= len(taken):
            taken.append([])
        taken[lane].append(net)
        lanes[net] = lane
    return lanes, len(taken)


def _touch(one: ChannelNet, two: ChannelNet) -> bool:
    return one.low <= two.high + NEAR and two.low <= one.high + NEAR


def _cost(upper: ChannelNet, lower: ChannelNet) -> int:
    """Crossings, and lines on lines, if `upper` runs above `lower`."""
    cost = sum(1 for x in upper.bottoms if lower.low < x < lower.high)
    cost += sum(1 for x in lower.tops if upper.low < x < upper.high)
    cost += OVERLAP * sum(1 for x in upper.bottoms for y in lower.tops if abs(x - y) < NEAR)
    return cost


def _sequence(bent: list[ChannelNet], above: dict[ChannelNet, dict[ChannelNet, int]]) -> list[ChannelNet]:
    """An order from top to bottom that breaks as little of `above` as a greedy choice can."""
    balance = {net: sum(above[net].values()) for net in bent}
    for others in above.values():
        for other, gain in others.items():
            balance[other] -= gain
    incoming: dict[ChannelNet, dict[ChannelNet, int]] = {net: {} for net in bent}
    for net, others in above.items():
        for other, gain in others.items():
            incoming[other][net] = gain
    order: list[ChannelNet] = []
    left = dict.fromkeys(bent)
    while left:
        free = next((net for net in left if not any(other in left for other in incoming[net])), None)
        net = free if free is not None else max(left, key=lambda candidate: balance[candidate])
        del left[net]
        order.append(net)
        for other, gain in above[net].items():
            balance[other] += gain
        for other, gain in incoming[net].items():
            balance[other] -= gain
    return order
