"""An event that is too large though no value in it is: more of them leave it, the largest first."""

from collections.abc import Callable, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar

from noetl.kernel.references.reference_builder import Member, ReferenceBuilder, Room
from noetl.kernel.result_rules import ResultRules
from noetl.kernel.server_reads import NOTHING, Need
from noetl.model.reference import MARKER, encode_value, part_reference

T = TypeVar("T")

EVENT_MAX_BYTES = 262_144
"""What an event takes at most (000 §9.1), whatever is in it."""

ALONE = 4_096
"""Values of so many bytes are stored each by itself, so that one can be had without the others."""
PART = 256
"""Values of fewer bytes stay where they are: what stands for a part of something takes as many."""
_REFERENCE_COST = 640
"""About what a reference takes here."""
_PREVIEW = 128

Manner: TypeAlias = Literal["alone", "small", "all", "entire"]
"""How values leave: one `alone`; the `small` ones of a mapping or list, or `all` of them, stored as one; or
the `entire` mapping with its names. In this order it is tried."""

Slot: TypeAlias = tuple[int, int]
"""Of a value: the number of the mapping or list that holds it, in the order of the body, and its position."""
Leaving: TypeAlias = frozenset[tuple[Manner, Slot]]

_MANNERS: tuple[Manner, ...] = ("alone", "small", "all", "entire")


class Departure(NamedTuple):
    """Values that can leave an event."""

    manner: Manner
    slot: Slot
    saving: int


class FittingBuilder(ReferenceBuilder):
    """A builder for an event that is too large. `leaving` leaves it, `departures` is what else can.

    Its references are short: little is shown, and kept at hand, of what they stand for.
    """

    room = 2_048

    def __init__(self, execution_id: str, everything: Need, leaving: Leaving) -> None:
        super().__init__(execution_id, everything)
        self.departures: list[Departure] = []
        self._leaving = leaving
        self._holders = 0

    def externalize_value(self, value: Any, rules: ResultRules, need: Need = NOTHING) -> Any:
        return self._externalize_at((self._next_holder(), 0), value, rules, need)

    def externalize_members(self, members: Sequence[Member], rules: ResultRules) -> list[Any] | None:
        holder = self._next_holder()
        parts = self._parts_to_leave(holder, [_size(member.value) for member in members], rules)
        key = ""
        if parts:
            stored = {str(members[position].key): members[position].value for position in parts}
            key = self.store_bytes(encode_value(stored), rules)
        room = Room(self.room)
        inline = []
        for position, (name, value, need) in enumerate(members):
            if position in parts:
                path = (str(name),)
                extracted, absent = self.extract_parts(value, key, path, need, room)
                reference = part_reference(key, path, value, extracted=extracted, absent=absent)
                inline.append({**reference, **rules.reference_fields})
            else:
                inline.append(self._externalize_at((holder, position), value, rules, need))
        return inline

    def externalize_arguments(self, values: dict[str, Any], rules: ResultRules) -> dict[str, Any]:
        slot = (self._next_holder(), 0)
        if ("entire", slot) in self._leaving:
            return self.build_reference(values, encode_value(values), _shortened(rules), NOTHING)
        self.departures.append(Departure("entire", slot, len(encode_value(values)) - _REFERENCE_COST))
        return super().externalize_arguments(values, rules)

    def _next_holder(self) -> int:
        self._holders += 1
        return self._holders

    def _parts_to_leave(self, holder: int, sizes: Sequence[int], rules: ResultRules) -> set[int]:
        """Which members leave together. What else could is noted."""
        slot = (holder, 0)
        every = {position for position, size in enumerate(sizes) if size > PART}
        small = {position for position in every if sizes[position] < ALONE}
        if ("all", slot) in self._leaving:
            return every

        def note(manner: Manner, positions: set[int]) -> None:
            inline = (sizes[position] for position in positions)
            costs = (_REFERENCE_COST if size > rules.limit else size for size in inline)
            self.departures.append(Departure(manner, slot, sum(costs) - PART * len(positions)))

        note("all", every)
        if ("small", slot) in self._leaving:
            return small
        note("small", small)
        return set()

    def _externalize_at(self, slot: Slot, value: Any, rules: ResultRules, need: Need) -> Any:
        if type(value) is dict and "tail" in value and MARKER in value:
            return self.shorten_tail(value, rules)
        size = _size(value)
        if ("alone", slot) in self._leaving or size > max(rules.limit, PART):
            return self.build_reference(value, encode_value(value), _shortened(rules), need)
        if size >= ALONE:
            self.departures.append(Departure("alone", slot, size - _REFERENCE_COST))
        return value


def fit_event(build: Callable[[Leaving], tuple[T, int, list[Departure]]]) -> T:
    """What `build` makes with as little leaving as brings it below the limit, or with all that can.

    It is given what leaves, and gives what it made, the size of that and what else could leave.
    """
    leaving: Leaving = frozenset()
    while True:
        built, size, departures = build(leaving)
        # Of each manner the largest first; the next manner only when all of this one have left.
        candidates = sorted(
            (departure for departure in departures if departure.saving > 0),
            key=lambda departure: (_MANNERS.index(departure.manner), -departure.saving),
        )
        if size <= EVENT_MAX_BYTES or not candidates:
            return built
        _, first = next(groupby(candidates, attrgetter("manner")))
        excess = size - EVENT_MAX_BYTES
        for departure in first:
            leaving |= {(departure.manner, departure.slot)}
            excess -= departure.saving
            if excess <= 0:
                break


def _size(value: Any) -> int:
    """The bytes that a value takes; 0 if it cannot leave."""
    if not isinstance(value, str | dict | list) or (type(value) is dict and MARKER in value):
        return 0
    return len(encode_value(value))


def _shortened(rules: ResultRules) -> ResultRules:
    return rules._replace(preview=min(rules.preview, _PREVIEW))
