"""An ordered set of names: first in, first out, and any of them can leave."""

from collections import OrderedDict
from collections.abc import Iterable, Iterator


class Queue:
    """Everything is O(1). Adding what is there keeps its place.

    A plain dict would do but for its front: after many removals, finding the first entry is linear.
    """

    __slots__ = ("_entries",)

    def __init__(self, entries: Iterable[str] = ()) -> None:
        self._entries: OrderedDict[str, None] = OrderedDict.fromkeys(entries)

    def add(self, entry: str) -> None:
        self._entries.setdefault(entry)

    def discard(self, entry: str) -> None:
        self._entries.pop(entry, None)

    @property
    def first(self) -> str:
        """The entry that has been here longest. Raises StopIteration if there is none."""
        return next(iter(self._entries))

    def __contains__(self, entry: object) -> bool:
        return entry in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Queue) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Queue({list(self)!r})"
