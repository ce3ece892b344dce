"""Where the history of executions is kept: the port that every store implements.

The log is the truth. An execution is a list of rows numbered 1, 2, 3 … without gaps; its *version* is the
number of the last one. Whatever else a store knows about an execution (status, labels, timers, messages, runs
that are ready or leased) follows from its rows, is written together with them, and can be rebuilt from them.

A store does not know what a row means: kinds are numbers and bodies are bytes. Times are microseconds since
1970, UTC. A store object belongs to one event loop; any number of them, in many processes, may share data.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any, NamedTuple, Protocol, TypeAlias

from msgspec import Struct

from noetl.model.errors import NoetlError
from noetl.model.run_rows import LeasedRun, ReadyRun
from noetl.ports.catalog import AccessStore, AuditEntry, CatalogStore
from noetl.ports.credentials import SealedStore


class Row(Struct, frozen=True, gc=False):
    """One event as it is stored. `version` is the format of the body.

    `last` marks the end of an append: the places where a history may be cut.
    """

    seq: int
    ts: int
    kind: int
    version: int
    body: bytes
    last: bool


class Effects(Struct, frozen=True, kw_only=True):
    """What rows change in the derived facts about their execution.

    None leaves a fact as it is; an empty text and 0 mean "none". `labels` replaces all labels.
    `timers` gives keys with the time they are due, None takes one away. `outbox` gives keys with
    the message to send, None takes one back; `ready` and `leases` likewise. Keys are unique within the
    execution, and setting one again replaces it.
    """

    started_at: int | None = None
    """The time of the first row, unless one says otherwise."""
    status: str | None = None
    path: str | None = None
    playbook: str | None = None
    """The hash of the document that the execution runs; it must have been put before."""
    namespace: str | None = None
    parent: str | None = None
    root: str | None = None
    labels: Mapping[str, str] | None = None
    priority: int | None = None
    fair_key: str | None = None
    next_wake: int | None = None
    ended_at: int | None = None
    expires_at: int | None = None
    forked_from: str | None = None
    """The execution of whose rows it has a copy."""
    timers: Mapping[str, int | None] = {}
    outbox: Mapping[str, bytes | None] = {}
    ready: Mapping[str, ReadyRun | None] = {}
    leases: Mapping[str, LeasedRun | None] = {}
    served: bool | None = None
    """Whether its timers, ready and leased runs are all kept here; given with its first rows only.

    No fact: it does not follow from the rows. A process that has an execution to itself until it ends need
    not write them, and whoever takes it up from there folds it and says `put_rows`.
    """


NO_EFFECTS = Effects()
_NO_FACTS = ("timers", "outbox", "ready", "leases", "served")
FACTS = tuple(name for name in Effects.__struct_fields__ if name not in _NO_FACTS)
fact_values: Callable[[Effects], tuple[Any, ...]] = attrgetter(*FACTS)
"""The facts of effects in this order: all with one call, as each execution needs them several times."""

Derive: TypeAlias = Callable[[Row], Effects]
"""What one row changes. It must be a function of the row alone."""


def merge_effects(first: Effects, then: Effects) -> Effects:
    """The effects of `first` followed by those of `then`."""
    if first is NO_EFFECTS:
        return then
    if then is NO_EFFECTS:
        return first
    pairs = zip(FACTS, fact_values(first), fact_values(then), strict=True)
    facts = {name: old if new is None else new for name, old, new in pairs}
    served = first.served if then.served is None else then.served
    return Effects(
        **facts,
        timers={**first.timers, **then.timers},
        outbox={**first.outbox, **then.outbox},
        ready={**first.ready, **then.ready},
        leases={**first.leases, **then.leases},
        served=served,
    )


class Append(Struct, frozen=True, kw_only=True):
    """Rows to write after the version that the writer believes in, with what follows from them.

    `rows` are numbered from `expected_version + 1`, at least one, and the last is marked. The first
    append of an execution expects version 0; only it may have a `start_key`. `answers` are the messages
    of the inbox that these rows answer, `delivered` those of the outbox that led to them: both are removed.
    `audit` is noted of the request that asked for the rows.
    """

    execution_id: str
    expected_version: int
    rows: Sequence[Row]
    effects: Effects = NO_EFFECTS
    start_key: str = ""
    answers: Sequence[int] = ()
    delivered: Sequence[int] = ()
    audit: Sequence[AuditEntry] = ()


class Committed(Struct, frozen=True):
    """The append is durable; `version` is the execution's new one."""

    version: int


class Conflict(Struct, frozen=True):
    """Nothing was written: the execution is at `version` (0: there is none), not where it was expected."""

    version: int


class KeyTaken(Struct, frozen=True):
    """Nothing was written: this execution was started with the same key before."""

    execution_id: str


Verdict: TypeAlias = Committed | Conflict | KeyTaken


class FeedEntry(NamedTuple):
    """A row at its position in the order of commits, over all executions."""

    pos: int
    execution_id: str
    row: Row


ENDED_STATUSES = ("completed", "failed", "cancelled")
"""Of an execution that is over."""


class ExecutionRecord(Struct, frozen=True, kw_only=True):
    """What is known about an execution without reading its rows. See `Effects` for the facts."""

    execution_id: str
    version: int
    updated_at: int
    """The time of the last row."""
    started_at: int
    status: str
    path: str
    playbook: str
    namespace: str
    parent: str
    root: str
    labels: dict[str, str]
    priority: int
    fair_key: str
    next_wake: int
    ended_at: int
    expires_at: int
    forked_from: str
    served: bool = False
    """See `Effects`."""

    @property
    def lives_on_server(self) -> bool:
        """Whether it belongs to the server of its store, if there is one."""
        return self.served and not self.ended_at


class ExecutionQuery(Struct, frozen=True, kw_only=True):
    """Which executions to list: those for which everything given holds.

    `execution_id` is the beginning of their id and `path` that of their path, `since` the earliest start and
    `until` the first that is too late, `labels` must all be there. `playbook` is the hash of what they run,
    `error_kind` of what they ended with; `text` stands in id, path, labels or the message of that error, in
    whatever case. `roots` leaves out what others started, `unserved` what a server keeps the rows of.
    `cursor` is the `next` of the page before.
    """

    execution_id: str = ""
    status: tuple[str, ...] = ()
    path: str = ""
    labels: Mapping[str, str] = {}
    since: int = 0
    until: int = 0
    playbook: str = ""
    error_kind: str = ""
    text: str = ""
    parent: str = ""
    roots: bool = False
    unserved: bool = False
    cursor: str = ""
    limit: int = 100


EVERYTHING = ExecutionQuery()


class ExecutionPage(Struct, frozen=True):
    """Executions, newest first. `next` is the cursor of the next page, empty on the last one."""

    executions: list[ExecutionRecord]
    next: str


class Timer(NamedTuple):
    due: int
    execution_id: str
    key: str


class ReadyRow(NamedTuple):
    """A run that is ready. `id` grows in the order in which runs became so."""

    id: int
    execution_id: str
    key: str
    run: ReadyRun


class LeaseRow(NamedTuple):
    execution_id: str
    key: str
    run: LeasedRun


class OutboxMessage(NamedTuple):
    """Something that an execution has to tell others. `id` grows in the order of commits."""

    id: int
    execution_id: str
    key: str
    body: bytes


class InboxMessage(NamedTuple):
    """A command to an execution from somebody who does not own it. `id` grows in the order of sending."""

    id: int
    execution_id: str
    body: bytes


class Snapshot(NamedTuple):
    """The state after row `seq`. `format` says how it is encoded; another format is never returned."""

    seq: int
    format: int
    body: bytes


class Inconsistency(NamedTuple):
    """Something in the store that cannot be. `execution_id` is empty where it concerns no single one."""

    execution_id: str
    message: str


class StoreError(NoetlError):
    """The store could not do what was asked. `hint` says what to do; `noetl.model.errors` has the tree."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class StoreUnusable(StoreError): ...


class StoreUrlWrong(StoreUnusable): ...


class StoreBusy(StoreError): ...


class StoreSlow(StoreError):
    """A list or search took too long, and was given up."""


class StoreFull(StoreError): ...


class StoreDamaged(StoreError): ...


class StoreClosed(StoreError): ...


class ExecutionUnknown(StoreError): ...


class Store(SealedStore, CatalogStore, AccessStore, Protocol):
    """Every method that writes returns when the data is durable: it survives the loss of power.

    Writes take effect in the order of their calls. If one fails with a StoreError nothing of it was written.
    Cancelling a write that waits may or may not take it back: read to find out. Reads see every write that
    has returned. An execution that does not exist has no rows, messages or snapshots; only where it says so
    is ExecutionUnknown raised.
    """

    async def commit(self, appends: Sequence[Append]) -> list[Verdict]:
        """Appends to any number of executions; a verdict for each append, in the same order.

        An append is written whole, with its effects, or not at all, and those that are refused do not
        hinder the others. Several appends to one execution are judged one after the other, so a caller
        may send the next before it knows the verdict on the last: after a refused one, those that were
        built on it are refused, too. The same append again is a Conflict, or KeyTaken if it had a key.
        A key is free again when its execution is deleted.

        Waits while too much is queued. Raises ValueError if rows are not numbered as `Append` says.
        """
        ...

    async def read(self, execution_id: str, *, after: int = 0, limit: int = 1_000) -> list[Row]:
        """Up to `limit` rows with numbers above `after`, in order. Fewer than `limit` means: no more.

        Raises StoreDamaged if a row is missing, or one of their appends is not what was written.
        """
        ...

    async def feed(self, *, after: int = 0, limit: int = 1_000) -> list[FeedEntry]:
        """Rows of all executions in the order of commits, above position `after`, without their checksums.

        A position is never used twice, and nothing appears later below one that was seen. The rows of
        a deleted execution are missing.
        """
        ...

    async def feed_end(self) -> int:
        """The position of the newest row; 0 if there is none."""
        ...

    def changes(self) -> AsyncIterator[frozenset[str] | None]:
        """Rings at once, and then whenever another store object may have written something.

        It gives the executions that were written to, or None where it cannot say; other rows may be new, too.
        Rings come together and may be false; whoever reads what is new at every ring misses nothing.
        Ends when the store is closed.
        """
        ...

    async def execution(self, execution_id: str) -> ExecutionRecord | None: ...

    async def start_key(self, execution_id: str) -> str:
        """The key that it was started with; empty if there is none."""
        ...

    async def executions(self, query: ExecutionQuery = EVERYTHING) -> ExecutionPage:
        """The executions that match, in the reverse order of their first appends.

        Executions that start between two pages appear on neither. Raises ValueError for what is not
        a cursor of this store.
        """
        ...

    async def timers(self, *, until: int | None = None, limit: int = 1_000) -> list[Timer]:
        """Timers due at or before `until`, all if None, the earliest first.

        A timer stays until an append takes it away: asking twice gives it twice.
        """
        ...

    async def ready(self, *, after: int = 0, limit: int = 1_000) -> list[ReadyRow]:
        """Runs that are ready, with ids above `after`, in their order."""
        ...

    async def leases(self) -> list[LeaseRow]:
        """All runs that are leased: no more than there are workers' slots."""
        ...

    async def rows_of(self, execution_id: str) -> Effects:
        """The timers, messages, ready and leased runs of an execution, and whether it is `served`."""
        ...

    async def put_rows(self, execution_id: str, version: int, rows: Effects) -> bool:
        """Puts these timers, ready and leased runs, and `served`, in the place of what there is.

        False, and nothing is written, unless the execution is at that version.
        """
        ...

    async def outbox(self, *, after: int = 0, limit: int = 1_000) -> list[OutboxMessage]:
        """What has still to be sent, the oldest first, with ids above `after`.

        A message stays until it is `sent` or taken back, or an append says that it was `delivered`.
        """
        ...

    async def sent(self, messages: Sequence[OutboxMessage]) -> None:
        """Removes messages that were delivered. One that was replaced meanwhile, or is gone, is left alone.

        After a crash or `rebuild` a message may be there again: receivers must expect it twice.
        """
        ...

    async def put_snapshot(self, execution_id: str, snapshot: Snapshot) -> None:
        """Keeps a snapshot, and of all its snapshots the two with the highest `seq`.

        A second one at the same `seq` replaces the first. Raises ExecutionUnknown, and ValueError if
        `seq` is above the version: nothing may rest on rows that are not durable.
        """
        ...

    async def snapshot(
        self, execution_id: str, *, state_format: int, at: int | None = None
    ) -> Snapshot | None:
        """The newest snapshot in this format, at or before row `at`, of those that are what was written."""
        ...

    async def put_playbook(self, playbook_hash: str, document: bytes) -> None:
        """Keeps a document under the hash of its content. A second call with the same hash does nothing."""
        ...

    async def playbook(self, playbook_hash: str) -> bytes | None:
        """Raises StoreDamaged if the document is not what was written."""
        ...

    async def playbooks(self) -> list[str]:
        """The hashes of all documents, in order."""
        ...

    async def put_blob(self, name: str, data: bytes) -> None:
        """Keeps bytes by a name that means nothing to the store; what had it before is replaced."""
        ...

    async def blob(self, name: str, start: int = 0, end: int | None = None) -> bytes | None:
        """The bytes by this name, or those between the two places; None if there are none."""
        ...

    async def blobs(self, prefix: str) -> list[str]:
        """The names that begin so, in order."""
        ...

    async def blob_sizes(self, prefix: str) -> list[tuple[str, int]]:
        """As `blobs`, each with how many bytes it has: without reading them."""
        ...

    async def delete_blobs(self, names: Sequence[str]) -> None:
        """What is not there is no fault."""
        ...

    async def send(self, execution_id: str, body: bytes) -> InboxMessage:
        """Puts a command into the inbox of an execution, for whoever owns it. Raises ExecutionUnknown."""
        ...

    async def inbox(self, execution_ids: Sequence[str] | None) -> list[InboxMessage]:
        """The commands to these executions, the oldest first; None for all that there are.

        A message stays until an append `answers` it, in the same commit as its rows,
        or until `take`.
        """
        ...

    async def take(self, messages: Sequence[InboxMessage]) -> None:
        """Removes messages that no row answers. Those that are gone are left alone."""
        ...

    async def delete(self, execution_id: str) -> bool:
        """Removes an execution with everything that belongs to it; False if there is none.

        It does not ask whether the execution runs: own it first. Documents stay.
        """
        ...

    async def ended(self, *, before: int, limit: int = 100) -> list[str]:
        """Up to `limit` executions that ended before this time, the oldest first.

        Not those whose parent, or the first of whose parents, has not ended.
        """
        ...

    async def reclaim(self) -> int:
        """Gives back what deleted executions took, where deleting alone does not; how many pieces went."""
        ...

    async def check(self, derive: Derive | None = None) -> list[Inconsistency]:
        """What is wrong with the store; empty if nothing is. With `derive`, derived facts are compared, too.

        So are the timers and messages of executions that are not `served`.
        A message that was `sent` and that no row has taken back does not count as missing.
        """
        ...

    async def unchecked_appends(self) -> int:
        """How many appends have no checksum: an older release wrote them."""
        ...

    async def rebuild(self, derive: Derive) -> int:
        """Recreates all that is derived from the rows; the number of executions it was done for.

        What belongs to an execution that is `served` follows from more than its rows one by one: `put_rows`.
        Damaged snapshots go. A second call changes nothing. Whatever `derive` raises comes through.
        """
        ...

    async def close(self) -> None:
        """Waits for what was asked, then frees everything. A second call does nothing.

        Afterwards every other method raises StoreClosed.
        """
        ...
