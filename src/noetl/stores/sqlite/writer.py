"""The one place that writes: whoever finds it idle commits at once, the others are committed together.

A commit costs a flush of the disk, whatever is in it. While the writer thread waits for one, more
appends gather in the queue, and the next commit takes them all.
"""

import asyncio
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, islice
from queue import Empty, SimpleQueue
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar

import apsw

from noetl.ports.store import Append, StoreBusy, StoreClosed, Verdict
from noetl.stores.sqlite.batch import NO_KNOWN_VERSIONS, AppendBatch, KnownVersions
from noetl.stores.sqlite.connection import ErrorTranslation, Transaction

CHECKPOINT_PAGES = 512
"""When the log has as many, its pages go into the database, and it begins again from its start."""
LOG_ROOM = 512 << 10
"""By how many bytes the log is lengthened."""
_FRAME_HEADER = 24
T = TypeVar("T")
Job: TypeAlias = Callable[[apsw.Connection], T]
Inline: TypeAlias = Literal["nothing", "quick commits", "commits", "everything"]
Work: TypeAlias = Sequence[Append] | Job[Any]
QUEUE_BYTES = 32 << 20
"""What may wait for the disk; beyond it callers wait."""
INLINE_ROWS = 512
"""More than this is worth two changes of threads: meanwhile the loop can go on."""
QUICK_SECONDS = 0.001
"""What a commit takes at most that a server does in its loop's own thread."""
QUICK_ROW = 10
"""So many in a row must have been quick."""
COMMIT_BYTES = 4 << 20
"""What goes into one commit, roughly: a larger one gains nothing and delays the first in it."""
THREAD = "noetl-writer"
_ROW_BYTES = 128
"""What a row weighs beside its body."""


class WriteAheadLog:
    """The log behind one connection that writes: longer than what is in it, and emptied in time.

    A commit that makes the log longer waits for the file system's own journal as well as for the data. So
    the log is lengthened by many commits' worth of zeros at once: SQLite takes them for the end of the log.
    Nothing of this concerns a database in memory.
    """

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._frame = connection.pragma("page_size") + _FRAME_HEADER
        self._used = 0
        # A second descriptor of the file is safe: SQLite locks the shared memory beside the log, not the log.
        self._file = os.open(connection.filename_wal, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        self._size = os.fstat(self._file).st_size
        # In place of SQLite's own, which empties the log after 1,000 pages: ours has to know how full it is.
        connection.set_wal_hook(self._after_commit)

    def make_room(self) -> None:
        """To be called in a transaction that writes: so nobody else lengthens the log at the same time."""
        if self._used + LOG_ROOM // 4 > self._size:
            with suppress(OSError):  # a full disk: the commit will say so, if it needs the room
                os.write(self._file, bytes(LOG_ROOM))
            self._size = os.fstat(self._file).st_size

    def close(self) -> None:
        os.close(self._file)

    def _after_commit(self, connection: apsw.Connection, _: str, pages: int) -> int:
        self._used = pages * self._frame
        if pages >= CHECKPOINT_PAGES:
            with suppress(apsw.Error):  # as where SQLite does it: whoever commits next tries again
                connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        return apsw.SQLITE_OK


class _QueuedWork(NamedTuple):
    work: Work
    weight: int
    answer: asyncio.Future[Any]


class SqliteWriter:
    """Runs work in transactions, in the order of the calls. Belongs to one event loop.

    `inline` says what is done in the loop's own thread. `commits`: while nothing is queued, it saves two
    changes of threads, but the loop stands still for as long as the disk takes. `quick commits`: the same as
    long as the disk takes no longer than the changes of threads would. `everything`: there is no thread.
    `patience` is how many seconds another process may hold the database.
    """

    def __init__(
        self, connection: apsw.Connection, filename: str, *, inline: Inline, patience: float
    ) -> None:
        self._connection = connection
        self._filename = filename
        self._inline = inline
        self._patience_ms = round(patience * 1000)
        self._transaction = Transaction(connection)
        self._translation = ErrorTranslation(filename)
        self._queue: SimpleQueue[_QueuedWork | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._queued_weight = 0
        self._queued_count = 0
        self._queue_lock = asyncio.Lock()
        self._space_freed = asyncio.Event()
        self._closed = False
        self._known_versions = NO_KNOWN_VERSIONS
        self._busy_timeout_ms = -1
        self._quick_commits = 0
        """So many of the last ones were quick, one after the other."""
        self._log = (
            WriteAheadLog(connection) if connection.filename_wal and not connection.readonly("main") else None
        )

    async def commit(self, appends: Sequence[Append]) -> list[Verdict]:
        # The fast path: in the loop's thread it saves two changes of threads. The slow path, which gives the
        # same verdicts, is the queue; it also takes over when another process holds the database.
        results: list[list[Verdict]] | None = None
        if self._may_commit_inline(appends):
            results = self._transact_inline(appends)
        verdicts: list[Verdict] = results[0] if results is not None else await self._enqueue(appends)
        return verdicts

    async def run_job(self, job: Job[T]) -> T:
        """The result of `job`, which writes in a transaction of its own. What it raises comes through."""
        results: list[T] | None = self._transact_inline(job) if self._inline == "everything" else None
        result: T = results[0] if results is not None else await self._enqueue(job)
        return result

    @property
    def queued_bytes(self) -> int:
        """What waits for the disk, roughly."""
        return self._queued_weight

    async def close(self) -> None:
        """Waits for what is queued. A second call does nothing."""
        async with self._queue_lock:
            if self._closed:
                return
            self._closed = True
        if self._thread:
            self._queue.put(None)
            await asyncio.to_thread(self._thread.join)
        self._connection.close()
        if self._log:
            self._log.close()

    def _may_commit_inline(self, appends: Sequence[Append]) -> bool:
        # Never past what is queued or waits for room: writes take effect in the order of their calls.
        is_allowed = self._inline == "commits" or (
            self._inline == "quick commits" and self._quick_commits >= QUICK_ROW
        )
        if is_allowed and not self._queued_count and not self._queue_lock.locked():
            return sum([len(append.rows) for append in appends]) <= INLINE_ROWS
        return self._inline == "everything"

    def _transact_inline(self, work: Work) -> list[Any] | None:
        """What the transaction gives. None if another process writes: the thread can wait for it."""
        if self._closed:
            raise StoreClosed(f"{self._filename} is closed")
        try:
            with self._translation:
                return self._transact([work], 0)
        except StoreBusy:
            return None

    async def _enqueue(self, work: Work) -> Any:
        weight = _weight(work)
        async with self._queue_lock:  # fair: who came first is queued first
            while self._queued_count and self._queued_weight + weight > QUEUE_BYTES:
                self._space_freed.clear()
                await self._space_freed.wait()
            if self._closed:
                raise StoreClosed(f"{self._filename} is closed")
            loop = asyncio.get_running_loop()
            if self._thread is None:
                # a daemon, so that a program that forgets to close can end
                self._thread = threading.Thread(
                    target=self._run_thread, args=(loop,), name=THREAD, daemon=True
                )
                self._thread.start()
            answer: asyncio.Future[Any] = loop.create_future()
            self._queued_weight += weight
            self._queued_count += 1
            self._queue.put(_QueuedWork(work, weight, answer))
        return await answer

    def _run_thread(self, loop: asyncio.AbstractEventLoop) -> None:
        pending: deque[_QueuedWork | None] = deque()
        while True:
            if not pending:
                pending.append(self._queue.get())
            pending.extend(_drain(self._queue))
            group = _next_group(pending)
            if not group:
                return
            results = self._transact_or_error([queued.work for queued in group])
            try:
                loop.call_soon_threadsafe(self._deliver, group, results)
            except RuntimeError:
                return  # the loop was closed: nobody waits any more

    def _transact_or_error(self, works: Sequence[Work]) -> list[Any] | Exception:
        try:
            with self._translation:
                return self._transact(works, self._patience_ms)
        except Exception as error:  # noqa: BLE001 - it is the callers' to handle, in their thread
            return error

    def _transact(self, works: Sequence[Work], patience_ms: int) -> list[Any]:
        if patience_ms != self._busy_timeout_ms:  # nearly always it is the last one's
            self._connection.set_busy_timeout(patience_ms)
            self._busy_timeout_ms = patience_ms
        # Forgotten before the transaction: one that fails, or a job, may leave other versions than these.
        known_versions, self._known_versions = self._known_versions, NO_KNOWN_VERSIONS
        if callable(job := works[0]):
            with self._transaction:
                return [job(self._connection)]
        groups = [work for work in works if not callable(work)]
        appends = groups[0] if len(groups) == 1 else list(chain.from_iterable(groups))
        try:
            verdicts = self._append(appends, known_versions)
        except apsw.ConstraintError:
            # An execution that was taken for new is there already. The slow path looks all of them up.
            verdicts = self._append(appends, NO_KNOWN_VERSIONS)
        if len(groups) == 1:
            return [verdicts]
        remaining = iter(verdicts)
        return [list(islice(remaining, len(group))) for group in groups]

    def _append(self, appends: Sequence[Append], known_versions: KnownVersions) -> list[Verdict]:
        began = time.monotonic()
        with self._transaction:
            batch = AppendBatch(self._connection, known_versions)
            verdicts = batch.apply(appends)
            if self._log:
                self._log.make_room()  # inside, where nobody else can lengthen the log
        self._known_versions = batch.known
        self._quick_commits = self._quick_commits + 1 if time.monotonic() - began < QUICK_SECONDS else 0
        return verdicts

    def _deliver(self, group: Sequence[_QueuedWork], results: list[Any] | Exception) -> None:
        for number, queued in enumerate(group):
            self._queued_weight -= queued.weight
            self._queued_count -= 1
            if queued.answer.done():
                continue  # cancelled; what it asked for was written all the same
            if isinstance(results, Exception):
                queued.answer.set_exception(results)
            else:
                queued.answer.set_result(results[number])
        self._space_freed.set()


def _weight(work: Work) -> int:
    if callable(work):
        return _ROW_BYTES
    return sum([len(row.body) + _ROW_BYTES for append in work for row in append.rows])


def _drain(queue: SimpleQueue[_QueuedWork | None]) -> Iterator[_QueuedWork | None]:
    try:
        while True:
            yield queue.get_nowait()
    except Empty:
        return


def _next_group(pending: deque[_QueuedWork | None]) -> list[_QueuedWork]:
    """Takes what goes into the next commit: many appends, or one job. Empty when it is time to stop."""
    group: list[_QueuedWork] = []
    weight = 0
    while pending and (queued := pending[0]) is not None:
        if group and (callable(queued.work) or weight + queued.weight > COMMIT_BYTES):
            break
        group.append(queued)
        pending.popleft()
        weight += queued.weight
        if callable(queued.work):
            break
    return group
