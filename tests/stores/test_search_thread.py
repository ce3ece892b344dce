"""Lists of a server never hold up its loop, and end in time."""

import asyncio
from pathlib import Path

import apsw
import pytest

from noetl.ports.store import ExecutionQuery, StoreSlow
from noetl.server.http.problems import problem_of
from noetl.stores.sqlite.search_thread import SearchThread
from noetl.stores.sqlite.store import SqliteStore
from noetl.testing.store.store_fixtures import begin_execution

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"


def endless(connection: apsw.Connection) -> None:
    connection.execute(ENDLESS).fetchall()


def test_a_search_without_end_is_given_up_and_the_loop_goes_on_meanwhile(tmp_path: Path) -> None:
    async def play() -> None:
        store = SqliteStore.at(tmp_path / "store.db", inline="nothing")
        search = SearchThread(str(tmp_path / "store.db"), 0.2)
        try:
            asking = asyncio.create_task(search.ask(endless))
            turns = 0
            while not asking.done():
                turns += 1
                await asyncio.sleep(0)
            with pytest.raises(StoreSlow, match="and was given up"):
                await asking
            assert turns > 10
            assert await search.ask(lambda connection: connection.execute("SELECT 1").get) == 1
        finally:
            await search.close()
            await store.close()

    asyncio.run(play())


def test_waiting_for_its_turn_counts(tmp_path: Path) -> None:
    async def play() -> None:
        store = SqliteStore.at(tmp_path / "store.db", inline="nothing")
        search = SearchThread(str(tmp_path / "store.db"), 0.1)
        try:
            answers = await asyncio.gather(search.ask(endless), search.ask(endless), return_exceptions=True)
            assert [type(answer) for answer in answers] == [StoreSlow, StoreSlow]
        finally:
            await search.close()
            await store.close()

    asyncio.run(play())


def test_a_server_that_lists_too_slowly_says_what_to_narrow_and_when_to_come_again(tmp_path: Path) -> None:
    async def play() -> None:
        store = SqliteStore.at(tmp_path / "store.db", inline="nothing", search_seconds=0.0)
        try:
            await begin_execution(store, "a")
            assert await store.execution("a") is not None, "what is asked of one execution is not a list"
            for listing in (store.executions(ExecutionQuery()), store.catalog_entries(), store.audit()):
                with pytest.raises(StoreSlow) as slow:
                    await listing
            problem = problem_of(slow.value)
            assert problem is not None
            assert (problem.status, problem.code, "path" in problem.hint) == (503, "overloaded", True)
            assert problem.headers["Retry-After"]
        finally:
            await store.close()

    asyncio.run(play())


def test_what_was_written_is_in_the_next_list(tmp_path: Path) -> None:
    async def play() -> None:
        store = SqliteStore.at(tmp_path / "store.db", inline="nothing")
        try:
            for number in range(20):
                await begin_execution(store, f"e{number}")
                assert len((await store.executions()).executions) == number + 1
        finally:
            await store.close()

    asyncio.run(play())
