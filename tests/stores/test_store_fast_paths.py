"""Whatever a store does to be fast, it gives what the slow way gives."""

import asyncio
import hashlib
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Literal, NamedTuple

import apsw
import pyarrow
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from pyarrow import ipc

from noetl.ports.results import ResultStore
from noetl.ports.store import Append, Committed, Effects, Verdict
from noetl.stores.results.file_backend import FileResults
from noetl.stores.results.memory_backend import MemoryResults
from noetl.stores.results.result_reader import ResultReader, read_result
from noetl.stores.sqlite.batch import NO_KNOWN_VERSIONS
from noetl.stores.sqlite.connection import create_schema, open_writer
from noetl.stores.sqlite.queries import ROWS_PER_STATEMENT, insert_values
from noetl.stores.sqlite.reader import list_inbox
from noetl.stores.sqlite.store import SqliteStore
from noetl.testing.store.store_fixtures import new_append

EXECUTION = "0192f0c1-0000-7000-8000-000000000001"


class Step(NamedTuple):
    """An append that expects the version that there is, or another; `behind` says by how much."""

    name: str
    behind: int
    effects: tuple[Effects, ...]
    key: str


EFFECTS = st.builds(
    Effects,
    status=st.sampled_from([None, "running", "completed"]),
    labels=st.sampled_from([None, {}, {"a": "1"}]),
    timers=st.dictionaries(st.sampled_from(["t", "u"]), st.none() | st.integers(1, 9)),
    outbox=st.dictionaries(st.sampled_from(["m", "n"]), st.none() | st.binary(max_size=3)),
)
STEPS = st.builds(
    Step,
    name=st.sampled_from("abcd"),
    behind=st.sampled_from([0, 0, 0, 0, 1, -1]),
    effects=st.lists(EFFECTS, min_size=1, max_size=3).map(tuple),
    key=st.sampled_from(["", "", "k"]),
)
COMMITS = st.lists(st.lists(STEPS, min_size=1, max_size=4), min_size=1, max_size=8)


def appends_of(commit: list[Step], versions: dict[str, int]) -> list[Append]:
    """The appends of a commit to executions at these versions, which are left where they will be."""
    appends = []
    for step in commit:
        version = versions.get(step.name, 0)
        expected = max(0, version - step.behind)
        key = step.key if expected == 0 else ""
        appends.append(new_append(step.name, expected, *step.effects, start_key=key))
        if expected == version:
            versions[step.name] = version + len(step.effects)
    return appends


async def contents(store: SqliteStore) -> list[Any]:
    """All that can be read of it."""
    page = await store.executions()
    outbox = [(message.execution_id, message.key, message.body) for message in await store.outbox()]
    return [await store.feed(), page.executions, await store.timers(), sorted(outbox)]


async def play(
    store: SqliteStore, commits: list[list[Step]], *, forget: Literal["", "versions", "everything"] = ""
) -> tuple[list[list[Verdict]], list[Any]]:
    """The verdicts, and what is there in the end.

    A writer that forgets everything looks every execution up. One that forgets versions alone takes those for
    new whose first append comes.
    """
    verdicts = []
    try:
        for commit in commits:
            page = await store.executions()
            versions = {record.execution_id: record.version for record in page.executions}
            known = store._writer._known_versions
            if forget == "everything":
                store._writer._known_versions = NO_KNOWN_VERSIONS
            elif forget == "versions":
                store._writer._known_versions = replace(known, executions={})
            verdicts.append(await store.commit(appends_of(commit, versions)))
        return verdicts, await contents(store)
    finally:
        await store.close()


@given(COMMITS)
def test_versions_that_are_known_are_those_that_would_be_looked_up(commits: list[list[Step]]) -> None:
    async def compare() -> None:
        fast = await play(SqliteStore.in_memory(), commits)
        assert fast == await play(SqliteStore.in_memory(), commits, forget="everything")

    asyncio.run(compare())


@example([[Step("a", 0, (Effects(),), "")], [Step("a", 1, (Effects(),), ""), Step("b", 0, (Effects(),), "")]])
@example([[Step("a", 0, (Effects(),), "")], [Step("a", 0, (Effects(),), "")]])
@given(COMMITS)
def test_executions_that_are_taken_for_new_are_judged_as_if_they_were_looked_up(
    commits: list[list[Step]],
) -> None:
    async def compare() -> None:
        fast = await play(SqliteStore.in_memory(), commits, forget="versions")
        assert fast == await play(SqliteStore.in_memory(), commits, forget="everything")

    asyncio.run(compare())


@settings(max_examples=20, deadline=None)
@given(COMMITS)
def test_a_commit_in_the_thread_of_the_loop_is_that_of_the_writer(commits: list[list[Step]]) -> None:
    async def compare() -> None:
        with tempfile.TemporaryDirectory() as folder:
            fast = await play(SqliteStore.at(Path(folder, "fast.db"), inline="commits"), commits)
            slow = await play(SqliteStore.at(Path(folder, "slow.db"), inline="nothing"), commits)
            assert fast == slow

    asyncio.run(compare())


@settings(max_examples=20, deadline=None)
@given(COMMITS)
def test_what_waits_is_committed_together_as_it_would_be_alone(commits: list[list[Step]]) -> None:
    async def together(path: Path) -> tuple[list[list[Verdict]], list[Any]]:
        store = SqliteStore.at(path, inline="nothing")
        versions: dict[str, int] = {}
        groups = [appends_of(commit, versions) for commit in commits]
        verdicts = await asyncio.gather(*(store.commit(group) for group in groups))
        try:
            return list(verdicts), await contents(store)
        finally:
            await store.close()

    async def alone(path: Path) -> tuple[list[list[Verdict]], list[Any]]:
        store = SqliteStore.at(path)
        versions: dict[str, int] = {}
        verdicts = [await store.commit(appends_of(commit, versions)) for commit in commits]
        try:
            return verdicts, await contents(store)
        finally:
            await store.close()

    async def compare() -> None:
        with tempfile.TemporaryDirectory() as folder:
            assert await together(Path(folder, "fast.db")) == await alone(Path(folder, "slow.db"))

    asyncio.run(compare())


def rows_for(query: str, count: int) -> list[tuple[Any, ...]]:
    match query:
        case "insert_events":
            return [(1, seq, seq, 1, 1, b"{}", seq == count, 7) for seq in range(1, count + 1)]
        case "clear_timers":
            return [(1, f"t{number}") for number in range(0, 2 * count, 2)]
        case "describe_executions":
            return [(number, None, f"status {number}", *[None] * 12) for number in range(1, count + 1)]
        case _:
            return [(1, f"t{number}", number) for number in range(count)]


def tables_after(query: str, rows: list[tuple[Any, ...]], together: int) -> list[list[Any]]:
    """The tables after the query was run with so many rows at a time."""
    connection = apsw.Connection(":memory:")
    create_schema(connection)
    for number in range(1, 20):
        facts = (number, f"x{number}", 1, "new", *[""] * 5, "{}", 0, "", 0, 0, 0, "", 0)
        connection.execute("INSERT INTO execution VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)", facts)
        connection.execute("INSERT INTO timer (x, key, due) VALUES (1, ?, 1)", (f"t{number}",))
    width = len(rows[0])
    for start in range(0, len(rows), together):
        values = [value for row in rows[start : start + together] for value in row]
        insert_values(connection, query, values, width)
    tables = ("event", "execution", "timer")
    contents = [sorted(connection.execute(f"SELECT * FROM {table}")) for table in tables]  # noqa: S608 - our own
    connection.close()
    return contents


@pytest.mark.parametrize("query", ["insert_events", "describe_executions", "set_timers", "clear_timers"])
@pytest.mark.parametrize("count", [*range(1, 18), 63, 64, 65, ROWS_PER_STATEMENT + 1, 2 * ROWS_PER_STATEMENT])
def test_rows_in_one_statement_are_written_as_one_by_one(query: str, count: int) -> None:
    rows = rows_for(query, count)
    assert tables_after(query, rows, together=count) == tables_after(query, rows, together=1)


def with_results(work: Callable[[ResultStore], Awaitable[None]]) -> None:
    async def use_both() -> None:
        with tempfile.TemporaryDirectory() as folder:
            for results in (MemoryResults(), FileResults(Path(folder))):
                await work(results)

    asyncio.run(use_both())


@settings(max_examples=50, deadline=None)
@given(
    st.binary(max_size=50) | st.just(b"\x93NOETL\x01zoo") | st.just(b"again " * 50),
    st.sampled_from(["none", "gzip", "zstd"]),
    st.integers(0, 400),
    st.none() | st.integers(0, 400),
)
def test_a_part_of_a_result_is_that_part_of_all_of_it(
    data: bytes, compression: str, start: int, end: int | None
) -> None:
    async def compare(results: ResultStore) -> None:
        key = f"{EXECUTION}/{hashlib.sha256(data).hexdigest()}"
        await results.put(key, data, compression)
        assert await results.read(key, start, end) == (await results.get(key))[start:end]
        for _ in range(2):  # the second time its checksum is known
            async with results.local(key) as path:
                assert path.read_bytes() == data

    with_results(compare)


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.integers(0, 4), max_size=6),
    st.lists(st.tuples(st.integers(0, 12), st.integers(0, 6)), min_size=1, max_size=6),
)
def test_rows_read_one_part_after_the_other_are_those_read_at_once(
    batches: list[int], parts: list[tuple[int, int]]
) -> None:
    numbers = iter(range(100))
    schema = pyarrow.schema([("n", pyarrow.int64())])
    sink = pyarrow.BufferOutputStream()
    with ipc.new_stream(sink, schema) as stream:
        for size in batches:
            column = pyarrow.array([next(numbers) for _ in range(size)], pyarrow.int64())
            stream.write_batch(pyarrow.record_batch([column], schema=schema))
    data = sink.getvalue().to_pybytes()

    async def compare(results: ResultStore) -> None:
        key = f"{EXECUTION}/{hashlib.sha256(data).hexdigest()}"
        await results.put(key, data)
        reader = ResultReader(results)
        for start, size in parts:
            rows = f"{key}#{start}-{start + size}"
            assert await reader.read(rows) == await read_result(results, rows)
        await reader.close()

    with_results(compare)


def test_the_steps_of_these_tests_are_accepted_and_refused() -> None:
    """Else they would compare nothing with nothing."""
    step = Step("a", 0, (Effects(status="running"),), "")
    verdicts, _ = asyncio.run(play(SqliteStore.in_memory(), [[step], [step, step._replace(behind=1)]]))
    assert [[type(verdict) is Committed for verdict in commit] for commit in verdicts] == [
        [True],
        [True, False],
    ]


def test_an_empty_inbox_costs_the_same_for_one_execution_and_for_thousands() -> None:
    connection = open_writer(":memory:")
    steps: list[int] = []

    def count_step() -> bool:
        steps.append(1)
        return False

    def steps_for(execution_ids: list[str] | None) -> int:
        steps.clear()
        connection.set_progress_handler(count_step, 1)
        assert list_inbox(connection, execution_ids) == []
        connection.set_progress_handler(None)
        return len(steps)

    steps_for([])  # prepares the statement
    assert 0 < steps_for(["a"]) == steps_for([str(number) for number in range(5_000)]) == steps_for(None)
    connection.close()
