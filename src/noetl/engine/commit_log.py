"""Where decisions become durable: everything that waits goes into one commit."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import TypeVar, assert_never

from noetl.engine.catalog.playbooks import PlaybookDocument
from noetl.engine.execution import LiveExecution
from noetl.events.event import Event
from noetl.kernel.state.execution_state import Blob
from noetl.ports.results import ResultError, ResultStore
from noetl.ports.store import (
    Append,
    Committed,
    Conflict,
    Effects,
    ExecutionUnknown,
    KeyTaken,
    Store,
    StoreClosed,
    StoreDamaged,
    StoreError,
    StoreUnusable,
    Verdict,
)
from noetl.process_log import LogEvent, log_event
from noetl.stores.results.result_reader import ResultReader

T = TypeVar("T")


class WrittenElsewhere(StoreError):
    """Somebody else appended to an execution that this process owns."""


RETRY_SECONDS = 0.5
"""After which a server tries again what the store could not do."""
_FOR_GOOD = (StoreUnusable, StoreClosed, StoreDamaged, ExecutionUnknown)
"""Failures that do not pass."""


class CommitLog:
    """Writes what live executions have pending. `on_durable` hears of each append.

    `on_commit` hears of each commit: how many events, and the seconds that the store took for it.

    `decide_again` gets an execution that somebody else has written to: nothing of what was decided is written
    then. With it the log is patient: what the store cannot do now, as on a full disk, is tried until it can.
    """

    def __init__(
        self,
        store: Store,
        results: ResultStore,
        on_durable: Callable[[LiveExecution, Sequence[Event], Effects], None],
        on_commit: Callable[[int, float], None],
        monotonic: Callable[[], float],
        *,
        decide_again: Callable[[LiveExecution], Awaitable[None]] | None = None,
    ) -> None:
        self.failure: StoreError | None = None
        """Why nothing can be written at the moment."""
        self._decide_again = decide_again
        self._giving_up = asyncio.Event()
        self._store = store
        self._results = results
        self._reader = ResultReader(results)
        self._storing: dict[str, Blob] = {}
        self._on_durable = on_durable
        self._on_commit = on_commit
        self._monotonic = monotonic
        self._dirty: dict[str, LiveExecution] = {}
        self._held: dict[str, int] = {}
        self._flushing = asyncio.Lock()
        self.pending_events = 0
        """Events that wait."""
        self.urgent = False
        """Whether somebody waits for it."""
        self.taken_keys: dict[str, str] = {}
        """Executions that were not begun because their key was taken, and who has it."""
        self._documents: dict[str, PlaybookDocument] = {}
        self._stored_documents: set[str] = set()
        self._tied: dict[str, str] = {}

    def add(self, live: LiveExecution, events: int) -> None:
        self._dirty[live.execution_id] = live
        self.pending_events += events

    def hurry(self) -> None:
        """Somebody waits for what is pending: it is written at the next turn."""
        self.urgent = True

    def hold(self, live: LiveExecution) -> None:
        """Nothing of it is written until `release`: what belongs into one commit is not complete yet."""
        self._held[live.execution_id] = self._held.get(live.execution_id, 0) + 1

    def release(self, live: LiveExecution) -> None:
        """For each `hold` once. Whoever waits for it is served next."""
        self._held[live.execution_id] -= 1
        if not self._held[live.execution_id]:
            del self._held[live.execution_id]
        self.hurry()

    def tie(self, teller: LiveExecution, hearer: LiveExecution) -> None:
        """What one has decided is not written before what the other made of it: a crash would lose that."""
        self._tied[teller.execution_id] = hearer.execution_id

    def add_document(self, document: PlaybookDocument) -> None:
        """The document is stored before anything that names it."""
        if document.playbook.hash not in self._stored_documents:
            self._documents[document.playbook.hash] = document

    async def read_blob(self, live: LiveExecution, key: str) -> bytes:
        """Bytes that events of this execution name, also while they are on their way. Raises ResultError."""
        for blob in live.state.blobs:
            if blob.key == key:
                return blob.data
        storing = self._storing.get(key)
        return storing.data if storing is not None else await self._reader.read(key)

    @property
    def dirty(self) -> bool:
        return bool(self._dirty)

    async def flush(self) -> None:
        """Writes what waits, but for what is held. Raises StoreError; nothing of that commit is written then.

        What is decided meanwhile waits for the next time: there may be no end to it.
        """
        if not (self._dirty or self._documents or self._flushing.locked()):
            return  # the scheduler asks after each of its turns, and many decide nothing
        async with self._flushing:
            if self._documents:
                await self._patiently(self._put_documents)
            if lives := self._take():
                await self._commit(lives)

    async def refresh(self, live: LiveExecution, is_outdated: Callable[[], Awaitable[bool]]) -> None:
        """Decides again what is not written of an execution that somebody else has written to.

        Left alone is one of which something is held: to write it will tell. Raises StoreError.
        """
        if not await is_outdated():
            return
        async with self._flushing:  # what this process was writing meanwhile is known now
            if self._decide_again is None or self.is_held(live) or not await is_outdated():
                return
            self._dirty.pop(live.execution_id, None)
            await self._decide_again(live)

    async def close(self) -> None:
        """Lets go of what was read."""
        await self._reader.close()

    def give_up(self) -> None:
        """What cannot be written from here on raises at once: the process is about to end."""
        self._giving_up.set()

    async def decide_again(self, live: LiveExecution) -> None:
        """What is not written of it is decided again, on what is. Raises StoreError."""
        assert self._decide_again is not None  # noqa: S101 - asked of a server alone
        async with self._flushing:  # what is on its way to the store must not be decided once more
            self._dirty.pop(live.execution_id, None)
            await self._decide_again(live)

    def is_held(self, live: LiveExecution) -> bool:
        return live.execution_id in self._held

    def discard(self, live: LiveExecution) -> None:
        """Nothing of it is to be written."""
        self._dirty.pop(live.execution_id, None)

    async def _patiently(self, write: Callable[[], Awaitable[T]]) -> T:
        """What `write` gives, when it can be done. Raises StoreError, if this log is not patient at once."""
        while True:
            try:
                written = await write()
            except StoreError as error:
                if self._fails_for_good(error):
                    raise
                if self.failure is None:
                    log_event(LogEvent.STORE_FAILING, error=error)
                self.failure = error
                await self._wait_for_store()
            else:
                if self.failure is not None:
                    log_event(LogEvent.STORE_RECOVERED)
                self.failure = None
                return written

    async def read_patiently(self, read: Callable[[], Awaitable[T]]) -> T:
        """The same for what nobody waits for who could ask again. Raises StoreError likewise."""
        while True:
            try:
                return await read()
            except StoreError as error:
                if self._fails_for_good(error):
                    raise
                await self._wait_for_store()

    def _fails_for_good(self, error: StoreError) -> bool:
        return self._decide_again is None or self._giving_up.is_set() or isinstance(error, _FOR_GOOD)

    async def _wait_for_store(self) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._giving_up.wait(), RETRY_SECONDS)

    async def _put_documents(self) -> None:
        while self._documents:
            playbook_hash = next(iter(self._documents))
            await self._store.put_playbook(playbook_hash, self._documents[playbook_hash].encode())
            self._stored_documents.add(playbook_hash)
            del self._documents[playbook_hash]

    async def _put(self) -> None:
        """What the events name is durable before they are."""
        try:
            await asyncio.gather(*(self._results.put(*blob) for blob in self._storing.values()))
        except ResultError as error:
            raise StoreError(str(error), error.hint) from error
        self._storing = {}

    def _take(self) -> dict[str, LiveExecution]:
        """What waits and is not held; from here on it is written."""
        taken, self._dirty = self._dirty, {}
        for name in self._held:
            if name in taken:
                self._dirty[name] = taken.pop(name)
        while waiting := [
            name for name, hearer in self._tied.items() if hearer in self._dirty and name in taken
        ]:
            for name in waiting:
                self._dirty[name] = taken.pop(name)
        if self._tied:
            self._tied = {name: hearer for name, hearer in self._tied.items() if name in self._dirty}
        return taken

    async def _commit(self, lives: Mapping[str, LiveExecution]) -> None:
        # Without a pause up to the commit: what executions decided about each other stays together.
        self.pending_events = 0
        self.urgent = False
        appends: list[Append] = []
        written: list[list[Event]] = []
        for live in lives.values():
            append, events = live.take_append()
            appends.append(append)
            written.append(events)
            if live.state.pending_effects.blobs:
                self._storing |= {blob.key: blob for blob in live.take_blobs()}
        if self._storing:
            await self._patiently(self._put)
        began = self._monotonic()
        verdicts = await self._patiently(_Commit(self._store, appends).write)
        self._on_commit(sum(map(len, written)), self._monotonic() - began)
        for live, append, events, verdict in zip(lives.values(), appends, written, verdicts, strict=True):
            match verdict:
                case Committed(version=version):
                    live.mark_durable(version)
                    self._on_durable(live, events, append.effects)
                case Conflict(version=version):
                    if self._decide_again is None:
                        message = f"{live.execution_id} was written to by somebody else (event {version})"
                        raise WrittenElsewhere(message, "run it from one process at a time")
                    self._dirty.pop(live.execution_id, None)
                    live.answers = [*append.answers, *live.answers]
                    await self._decide_again(live)
                case KeyTaken(execution_id=other):
                    self.taken_keys[live.execution_id] = other
                case _:
                    assert_never(verdict)


class _Commit:
    """Appends that are written until the store answers: an answer may be lost though it has written them."""

    def __init__(self, store: Store, appends: Sequence[Append]) -> None:
        self._store = store
        self._appends = appends
        self._tried = False

    async def write(self) -> list[Verdict]:
        tried, self._tried = self._tried, True
        verdicts = await self._store.commit(self._appends)
        if not tried:
            return verdicts
        pairs = zip(self._appends, verdicts, strict=True)
        return [await self._true_verdict(append, verdict) for append, verdict in pairs]

    async def _true_verdict(self, append: Append, verdict: Verdict) -> Verdict:
        """What is there may be what was written the time before, whose answer was lost."""
        if isinstance(verdict, Committed):
            return verdict
        stored = await self._store.read(
            append.execution_id, after=append.expected_version, limit=len(append.rows)
        )
        return Committed(stored[-1].seq) if stored == list(append.rows) else verdict
