"""An ordered set of names: first in, first out, and any of them can leave."""

from collections import OrderedDict
from collections.abc import Iterable
from typing import Self


class OrderedSet(OrderedDict[str, None]):
    """Everything is O(1). Adding what is there keeps its place.

    A plain dict would do but for its front: after many removals, finding the first entry is linear.
    """

    __slots__ = ()

    @classmethod
    def of(cls, entries: Iterable[str]) -> Self:
        return cls((entry, None) for entry in entries)

    add = OrderedDict.setdefault

    def discard(self, entry: str) -> None:
        self.pop(entry, None)

    @property
    def first(self) -> str:
        """The entry that has been here longest. Raises StopIteration if there is none."""
        return next(iter(self))

    def __repr__(self) -> str:
        return f"Queue.of({list(self)!r})"
