"""A set that keeps its order: first in, first out, and any entry can leave."""

from collections import OrderedDict
from collections.abc import Hashable, Iterable
from typing import Self, TypeVar

Entry = TypeVar("Entry", bound=Hashable)


class OrderedSet(OrderedDict[Entry, None]):
    """Everything is O(1). Adding what is there keeps its turn.

    A plain dict would do but for its front: after many removals, finding the first entry is linear.
    """

    __slots__ = ()

    @classmethod
    def of(cls, entries: Iterable[Entry]) -> Self:
        return cls((entry, None) for entry in entries)

    add = OrderedDict.setdefault  # the method of C itself: a Python one around it would cost as much again

    def discard(self, entry: Entry) -> None:
        self.pop(entry, None)

    @property
    def first(self) -> Entry:
        """The entry that has been here longest. Raises StopIteration if there is none."""
        return next(iter(self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}.of({list(self)!r})"
