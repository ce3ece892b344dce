"""Several processes on one file."""

import asyncio
from contextlib import ExitStack
from pathlib import Path

import apsw

from noetl.ports.store import Committed
from noetl.stores.sqlite.connection import SCHEMA_VERSION, open_writer, read_schema_version
from noetl.stores.sqlite.store import SqliteStore
from noetl.testing.store.store_fixtures import effects_in_row, new_append
from tests.stores.store_process import child, next_line

# Appends 50 times to an execution of its own and to one that all share, starting over after each conflict.
WRITE = """
async def write(store, name):
    version = 0
    for _ in range(50):
        while not isinstance((verdict := (await store.commit([new_append(name, version)]))[0]), Committed):
            version = verdict.version
        version = verdict.version
async def main():
    store = SqliteStore.at(PATH)
    await asyncio.gather(write(store, f"own-{os.getpid()}"), write(store, "shared"))
    await store.close()
    say("done")
say("ready")
sys.stdin.readline()
asyncio.run(main())
"""
PROCESSES = 4


def test_processes_that_make_and_write_one_file_at_once_lose_nothing(tmp_path: Path) -> None:
    store_path = tmp_path / "store.db"
    with ExitStack() as stack:
        processes = [stack.enter_context(child(WRITE, store_path)) for _ in range(PROCESSES)]
        assert [next_line(process) for process in processes] == ["ready"] * PROCESSES
        for process in processes:
            assert process.stdin
            process.stdin.write("go\n")
            process.stdin.flush()
        assert [next_line(process) for process in processes] == ["done"] * PROCESSES
    asyncio.run(_check_everything_is_there(store_path))


async def _check_everything_is_there(store_path: Path) -> None:
    store = SqliteStore.at(store_path)
    records = {record.execution_id: record.version for record in (await store.executions()).executions}
    assert records.pop("shared") == 50 * PROCESSES
    assert sorted(records.values()) == [50] * PROCESSES
    assert [row.seq for row in await store.read("shared")] == [*range(1, 50 * PROCESSES + 1)]
    assert await store.check(effects_in_row) == []
    await store.close()


def test_a_live_run_notices_the_command_of_another_process(tmp_path: Path) -> None:
    store_path = tmp_path / "store.db"
    send = 'asyncio.run(SqliteStore.at(PATH).send("a", b"cancel"))'

    async def run() -> None:
        store = SqliteStore.at(store_path)
        assert await store.commit([new_append("a", 0)]) == [Committed(1)]
        rings = aiter(store.changes())
        await anext(rings)
        with child(send, store_path):
            while not (letters := await store.inbox(["a"])):
                await asyncio.wait_for(anext(rings), 30)
        assert [letter.body for letter in letters] == [b"cancel"]
        await store.commit([new_append("a", 1, answers=(letters[0].id,))])
        assert await store.inbox(["a"]) == []
        await store.close()

    asyncio.run(run())


def test_a_store_that_another_process_makes_meanwhile_is_not_taken_for_a_foreign_one(tmp_path: Path) -> None:
    filename = str(tmp_path / "store.db")
    connection = apsw.Connection(filename)
    statements: list[str] = []

    def make_before_the_second(_cursor: object, statement: str, _bindings: object) -> bool:
        statements.append(statement)
        if len(statements) == 2:
            open_writer(filename).close()
        return True

    connection.exec_trace = make_before_the_second
    assert read_schema_version(connection, filename) == 0
    assert read_schema_version(connection, filename) == SCHEMA_VERSION
    connection.close()
