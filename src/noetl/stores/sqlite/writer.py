"""The one place that writes: whoever finds it idle commits at once, the others are committed together.

A commit costs a flush of the disk, whatever is in it. While the writer thread waits for one, more
appends gather in the queue, and the next commit takes them all.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from queue import Empty, SimpleQueue
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar

import apsw

from noetl.ports.store import Append, StoreBusy, StoreClosed, Verdict
from noetl.stores.sqlite.batch import NO_KNOWN_VERSIONS, AppendBatch
from noetl.stores.sqlite.error_translation import ErrorTranslation
from noetl.stores.sqlite.migration import Transaction
from noetl.stores.sqlite.write_ahead_log import WriteAheadLog

T = TypeVar("T")
Job: TypeAlias = Callable[[apsw.Connection], T]
Inline: TypeAlias = Literal["nothing", "commits", "everything"]
Work: TypeAlias = Sequence[Append] | Job[Any]

QUEUE_BYTES = 32 << 20
"""What may wait for the disk; beyond it callers wait."""
INLINE_ROWS = 512
"""More than this is worth two changes of threads: meanwhile the loop can go on."""
COMMIT_BYTES = 4 << 20
"""What goes into one commit, roughly: a larger one gains nothing and delays the first in it."""
THREAD = "noetl-writer"
_ROW_BYTES = 128


class _Waiting(NamedTuple):
    work: Work
    weight: int
    answer: asyncio.Future[Any]


class SqliteWriter:
    """Runs work in transactions, in the order of the calls. Belongs to one event loop.

    `inline` says what is done in the loop's own thread. `commits`: while nothing is queued, it saves two
    changes of threads, but the loop stands still for as long as the disk takes. `everything`: there is
    no thread. `patience` is how many seconds another process may hold the database.
    """

    def __init__(self, connection: apsw.Connection, place: str, *, inline: Inline, patience: float) -> None:
        self._connection = connection
        self._place = place
        self._inline = inline
        self._patience_ms = round(patience * 1000)
        self._transaction = Transaction(connection)
        self._translated = ErrorTranslation(place)
        self._queue: SimpleQueue[_Waiting | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._weight = 0
        self._waiting = 0
        self._gate = asyncio.Lock()
        self._room = asyncio.Event()
        self._closed = False
        self._known = NO_KNOWN_VERSIONS
        self._wal = (
            WriteAheadLog(connection) if connection.filename_wal and not connection.readonly("main") else None
        )

    async def commit(self, appends: Sequence[Append]) -> list[Verdict]:
        found: list[list[Verdict]] | None = self._here(appends) if self._may_commit_here(appends) else None
        verdicts: list[Verdict] = found[0] if found is not None else await self._hand_over(appends)
        return verdicts

    async def run_job(self, job: Job[T]) -> T:
        """The result of `job`, which writes in a transaction of its own. What it raises comes through."""
        found: list[T] | None = self._here(job) if self._inline == "everything" else None
        result: T = found[0] if found is not None else await self._hand_over(job)
        return result

    @property
    def queued_bytes(self) -> int:
        """What waits for the disk, roughly."""
        return self._weight

    async def close(self) -> None:
        """Waits for what is queued. A second call does nothing."""
        async with self._gate:
            if self._closed:
                return
            self._closed = True
        if self._thread:
            self._queue.put(None)
            await asyncio.to_thread(self._thread.join)
        self._connection.close()
        if self._wal:
            self._wal.close()

    def _may_commit_here(self, appends: Sequence[Append]) -> bool:
        if self._inline == "commits" and not self._waiting and not self._gate.locked():
            return sum([len(append.rows) for append in appends]) <= INLINE_ROWS
        return self._inline == "everything"

    def _here(self, work: Work) -> list[Any] | None:
        """What the transaction gives. None if another process writes: the thread can wait for it."""
        if self._closed:
            raise StoreClosed(f"{self._place} is closed")
        try:
            with self._translated:
                return self._transact([work], 0)
        except StoreBusy:
            return None

    async def _hand_over(self, work: Work) -> Any:
        weight = _weight(work)
        async with self._gate:  # fair: who came first is queued first
            while self._waiting and self._weight + weight > QUEUE_BYTES:
                self._room.clear()
                await self._room.wait()
            if self._closed:
                raise StoreClosed(f"{self._place} is closed")
            loop = asyncio.get_running_loop()
            if self._thread is None:
                # a daemon, so that a program that forgets to close can end
                self._thread = threading.Thread(target=self._serve, args=(loop,), name=THREAD, daemon=True)
                self._thread.start()
            answer: asyncio.Future[Any] = loop.create_future()
            self._weight += weight
            self._waiting += 1
            self._queue.put(_Waiting(work, weight, answer))
        return await answer

    def _serve(self, loop: asyncio.AbstractEventLoop) -> None:
        waiting: deque[_Waiting | None] = deque()
        while True:
            if not waiting:
                waiting.append(self._queue.get())
            waiting.extend(_drained(self._queue))
            group = _next_group(waiting)
            if not group:
                return
            results = self._attempt([item.work for item in group])
            try:
                loop.call_soon_threadsafe(self._answer, group, results)
            except RuntimeError:
                return  # the loop was closed: nobody waits any more

    def _attempt(self, works: Sequence[Work]) -> list[Any] | Exception:
        try:
            with self._translated:
                return self._transact(works, self._patience_ms)
        except Exception as error:  # noqa: BLE001 - it is the callers' to handle, in their thread
            return error

    def _transact(self, works: Sequence[Work], patience_ms: int) -> list[Any]:
        self._connection.set_busy_timeout(patience_ms)
        known, self._known = self._known, NO_KNOWN_VERSIONS  # also if this fails
        with self._transaction:
            if callable(job := works[0]):
                return [job(self._connection)]
            batch = AppendBatch(self._connection, known)
            groups = [work for work in works if not callable(work)]
            verdicts = batch.apply(groups[0] if len(groups) == 1 else list(chain.from_iterable(groups)))
            if self._wal:
                self._wal.make_room()
        self._known = batch.known
        if len(groups) == 1:
            return [verdicts]
        each = iter(verdicts)
        return [list(islice(each, len(group))) for group in groups]

    def _answer(self, group: Sequence[_Waiting], results: list[Any] | Exception) -> None:
        for number, item in enumerate(group):
            self._weight -= item.weight
            self._waiting -= 1
            if item.answer.done():
                continue  # cancelled
            if isinstance(results, Exception):
                item.answer.set_exception(results)
            else:
                item.answer.set_result(results[number])
        self._room.set()


def _weight(work: Work) -> int:
    if callable(work):
        return _ROW_BYTES
    return sum([len(row.body) + _ROW_BYTES for append in work for row in append.rows])


def _drained(queue: SimpleQueue[_Waiting | None]) -> Iterator[_Waiting | None]:
    try:
        while True:
            yield queue.get_nowait()
    except Empty:
        return


def _next_group(waiting: deque[_Waiting | None]) -> list[_Waiting]:
    """Takes what goes into the next commit: many appends, or one job. Empty when it is time to stop."""
    group: list[_Waiting] = []
    weight = 0
    while waiting and (item := waiting[0]) is not None:
        if group and (callable(item.work) or weight + item.weight > COMMIT_BYTES):
            break
        group.append(item)
        waiting.popleft()
        weight += item.weight
        if callable(item.work):
            break
    return group
