"""The one place that writes: what waits together goes into one statement.

A commit costs a flush of the disk and the way there and back, whatever is in it. While it is under way more
appends gather, and the next one takes them all.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Sequence
from itertools import chain, islice
from typing import Any, NamedTuple, TypeAlias, TypeVar

import asyncpg

from noetl.ports.store import Append, StoreClosed, Verdict
from noetl.stores.postgres.commit_rounds import AppendChain, CommitRounds
from noetl.stores.postgres.commit_statement import CommitStatement
from noetl.stores.postgres.database_connections import Connection, PostgresConnection
from noetl.stores.postgres.database_schema import PostgresSchema
from noetl.stores.postgres.failures import DATABASE_ERRORS, is_lost, may_be_repeated
from noetl.stores.postgres.job_statements import PostgresJobs
from noetl.stores.postgres.partitions import EventPartitions
from noetl.stores.postgres.reader import PostgresReader

T = TypeVar("T")
Job: TypeAlias = Callable[[PostgresJobs], Awaitable[T]]
Work: TypeAlias = Sequence[Append] | Job[Any]
QUEUE_BYTES = 32 << 20
"""What may wait for the database; beyond it callers wait."""
COMMIT_BYTES = 4 << 20
"""What goes into one commit, roughly: a larger one gains nothing and delays the first in it."""
RETRY_SECONDS = 0.2
"""After which a lost connection is opened again."""
_ROW_BYTES = 128
"""What a row weighs beside its body."""


class _QueuedWork(NamedTuple):
    work: Work
    weight: int
    answer: asyncio.Future[Any]
    rings: bool


class PostgresWriter:
    """Runs work in the order of the calls. Belongs to one event loop.

    `patience` is for how many seconds a lost connection is tried again before StoreError. `on_written` gets
    the executions that were written to.
    """

    def __init__(
        self,
        connection: PostgresConnection,
        schema: PostgresSchema,
        label: str,
        *,
        patience: float,
        on_written: Callable[[Collection[str]], None],
    ) -> None:
        self._connection = connection
        self._schema = schema
        self._label = label
        self._patience = patience
        self._on_written = on_written
        self._queue: deque[_QueuedWork] = deque()
        self._queue_lock = asyncio.Lock()
        self._space_freed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._closed = False
        self.queued_bytes = 0
        """What waits for the database, roughly."""
        self.repeated = 0
        """Commits that PostgreSQL took back because of a deadlock or the like, and that were asked again."""

    async def commit(self, appends: Sequence[Append]) -> list[Verdict]:
        verdicts: list[Verdict] = await self._enqueue(appends)
        return verdicts

    async def run_job(self, job: Job[T], *, rings: bool = True) -> T:
        """The result of `job`. What it raises comes through; StoreError if the database fails.

        `rings`: others want to know of it.
        """
        result: T = await self._enqueue(job, rings=rings)
        return result

    async def close(self) -> None:
        """Waits for what is queued. A second call does nothing."""
        async with self._queue_lock:
            self._closed = True
        if self._task is not None:
            await asyncio.shield(self._task)
        await self._connection.close()

    async def _enqueue(self, work: Work, *, rings: bool = True) -> Any:
        weight = _weight(work)
        async with self._queue_lock:  # fair: who came first is queued first
            while self.queued_bytes and self.queued_bytes + weight > QUEUE_BYTES:
                self._space_freed.clear()
                await self._space_freed.wait()
            if self._closed:
                raise StoreClosed(f"{self._label} is closed")
            answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
            self.queued_bytes += weight
            self._queue.append(_QueuedWork(work, weight, answer, rings))
            if self._task is None or self._task.done():
                self._task = asyncio.create_task(self._work_off())
        return await answer

    async def _work_off(self) -> None:
        while self._queue:
            group = self._next_group()
            try:
                results: list[Any] | BaseException = await self._transact([queued.work for queued in group])
            except asyncio.CancelledError:  # the loop is about to end, and nobody waits any more
                self._deliver([*group, *self._queue], StoreClosed(f"{self._label} is closed"))
                self._queue.clear()
                raise
            except Exception as error:  # noqa: BLE001 - it is the callers' to handle
                results = error
            self._deliver(group, results)

    def _next_group(self) -> list[_QueuedWork]:
        """Takes what goes into the next commit: many appends, or one job."""
        group = [self._queue.popleft()]
        weight = group[0].weight
        while self._queue and not callable(group[0].work):
            queued = self._queue[0]
            if callable(queued.work) or weight + queued.weight > COMMIT_BYTES:
                break
            group.append(self._queue.popleft())
            weight += queued.weight
        return group

    async def _transact(self, works: Sequence[Work]) -> list[Any]:
        if callable(job := works[0]):
            return [await self._patiently(lambda: self._run_job(job), repeatable=may_be_repeated)]
        groups = [work for work in works if not callable(work)]
        verdicts = iter(await self._commit(list(chain.from_iterable(groups))))
        return [list(islice(verdicts, len(group))) for group in groups]

    async def _run_job(self, job: Job[T]) -> T:
        async def work(connection: Connection) -> T:
            async with connection.transaction():
                return await job(PostgresJobs(connection))

        return await self._connection.run(work)

    async def _commit(self, appends: Sequence[Append]) -> list[Verdict]:
        rounds = CommitRounds(appends)
        while chains := rounds.next_chains():
            request = _Request(chains, self._schema)
            await self._patiently(lambda: self._connection.run(request.send), repeatable=_may_ask_again)  # noqa: B023 - awaited at once
            rounds.settle(chains, request.won, request.versions, request.keys)
        return rounds.verdicts

    async def _patiently(
        self, work: Callable[[], Awaitable[T]], *, repeatable: Callable[[BaseException], bool]
    ) -> T:
        """What `work` gives. What may be asked again is; raises StoreError after `patience`."""
        loop = asyncio.get_running_loop()
        # Whoever has never reached the database hears of it at once.
        deadline = loop.time() + (self._patience if self._schema.ready else 0)
        while True:
            try:
                return await work()
            except DATABASE_ERRORS as error:
                if may_be_repeated(error):
                    self.repeated += 1
                    continue
                if not repeatable(error) or loop.time() >= deadline:
                    raise self._schema.failure(error) from error
            await asyncio.sleep(RETRY_SECONDS)

    def _deliver(self, group: Sequence[_QueuedWork], results: list[Any] | BaseException) -> None:
        for number, queued in enumerate(group):
            self.queued_bytes -= queued.weight
            if queued.answer.done():
                continue  # cancelled; what it asked for was written all the same
            if isinstance(results, BaseException):
                queued.answer.set_exception(results)
            else:
                queued.answer.set_result(results[number])
        self._space_freed.set()
        if any(queued.rings for queued in group):
            appends = chain.from_iterable(queued.work for queued in group if not callable(queued.work))
            self._on_written({append.execution_id for append in appends})


class _Request:
    """One statement, until it has its answer.

    If the answer was lost the same is asked again. What is refused then may be there because it was written
    the first time: that its rows are ours says so.
    """

    def __init__(self, chains: Sequence[AppendChain], schema: PostgresSchema) -> None:
        self._chains = chains
        self._schema = schema
        self._uncertain = False
        self.won: set[str] = set()
        self.versions: dict[str, int] = {}
        self.keys: dict[str, str] = {}

    async def send(self, connection: Connection) -> None:
        try:
            await self._ask(connection)
        except asyncpg.CheckViolationError:  # the only one that there is: a week has no partition
            await EventPartitions(connection).make_for(chain.execution_id for chain in self._chains)
            await self._ask(connection)

    async def _ask(self, connection: Connection) -> None:
        statement = CommitStatement(self._chains, self._schema.shift)
        uncertain, self._uncertain = self._uncertain, True
        try:
            rows = await connection.fetch(statement.query.text, *statement.arguments)
        except asyncpg.PostgresError as error:
            # PostgreSQL has answered, so it has taken all back.
            self._uncertain = uncertain or is_lost(error)
            raise
        self.won = {row["id"] for row in rows}
        lost = [chain for chain in self._chains if chain.execution_id not in self.won]
        if lost:
            await self._explain(PostgresReader(connection), lost, may_be_ours=uncertain)

    async def _explain(
        self, reader: PostgresReader, lost: Sequence[AppendChain], *, may_be_ours: bool
    ) -> None:
        ids = [chain.execution_id for chain in lost]
        keys = [chain.start_key for chain in lost if chain.start_key]
        self.versions, self.keys = await reader.current(ids, keys)
        if may_be_ours:
            for append_chain in lost:
                rows = [*append_chain.rows()]
                if await reader.rows(append_chain.execution_id, append_chain.expected, len(rows)) == rows:
                    self.won.add(append_chain.execution_id)


def _may_ask_again(error: BaseException) -> bool:
    return may_be_repeated(error) or is_lost(error)


def _weight(work: Work) -> int:
    if callable(work):
        return _ROW_BYTES
    return sum([len(row.body) + _ROW_BYTES for append in work for row in append.rows])
