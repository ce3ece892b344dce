"""What an execution must decide next: a closed union, in a set that keeps its order."""

from collections import OrderedDict
from collections.abc import Hashable, Iterable
from typing import ClassVar, Self, TypeAlias, TypeVar

from msgspec import Struct, structs

Entry = TypeVar("Entry", bound=Hashable)


class OrderedSet(OrderedDict[Entry, None]):
    """First in, first out, and any entry can leave. Everything is O(1). Adding what is there keeps its turn.

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


# Several are made for each event, and none can be part of a cycle: the collector need not know them.
class _Item(Struct, frozen=True, gc=False):
    """Snapshots keep `name` alone; people see items by it, too."""

    prefix: ClassVar[str] = ""

    @property
    def name(self) -> str:
        (subject,) = structs.astuple(self)
        return f"{self.prefix}{subject}"

    def __repr__(self) -> str:
        return repr(self.name)


class AdmitToken(_Item, frozen=True, gc=False):
    """A token came to its step, or what its rules read has changed."""

    token: str


class RouteRun(_Item, frozen=True, gc=False):
    """A run has ended, and its arcs are to be judged; or its step has no tasks, and it ends at once."""

    run: str


class FireJoin(_Item, frozen=True, gc=False):
    """The join of the step with this number is full."""

    prefix = "j"
    step: int


class DeliverSignal(_Item, frozen=True, gc=False):
    """A signal has come that a run waits for."""

    prefix = "s"
    signal: str


AgendaItem: TypeAlias = AdmitToken | RouteRun | FireJoin | DeliverSignal


class Agenda(OrderedSet[AgendaItem]):
    """What must be decided, each thing once, what came first first."""

    __slots__ = ()

    @property
    def names(self) -> list[str]:
        """The items as snapshots keep them: tokens `t…`, runs `r…`, joins `j…`, signals `s…`."""
        return [item.name for item in self]


def item_named(name: str) -> AgendaItem:
    """The item that a snapshot names. Raises ValueError if there is none of this kind."""
    match name[:1]:
        case "t":
            return AdmitToken(name)
        case "r":
            return RouteRun(name)
        case "j":
            return FireJoin(int(name[1:]))
        case "s":
            return DeliverSignal(name[1:])
        case _:
            raise ValueError(f"a snapshot's agenda names {name!r}")
