import json
from typing import Any

import pytest
from msgspec import structs

from noetl.ports.store import Effects, ExecutionQuery, ExecutionRecord, Row, Store
from noetl.testing.store.store_fixtures import begin_execution, commit_accepted, new_append, store_test


class QueryCases:
    """What is known about executions without reading their rows."""

    @store_test
    async def test_an_execution_has_the_facts_of_its_rows(self, store: Store) -> None:
        facts = Effects(
            status="running",
            path="etl/load",
            playbook="h1",
            namespace="team",
            parent="p",
            root="r",
            labels={"b": "2", "a": "ü"},
            priority=-3,
            fair_key="f",
            next_wake=7,
            ended_at=8,
            expires_at=9,
            forked_from="b",
        )
        await begin_execution(store, "a", facts, ts=100)
        assert await store.execution("a") == ExecutionRecord(
            execution_id="a",
            version=1,
            started_at=101,
            updated_at=101,
            status="running",
            path="etl/load",
            playbook="h1",
            namespace="team",
            parent="p",
            root="r",
            labels={"a": "ü", "b": "2"},
            priority=-3,
            fair_key="f",
            next_wake=7,
            ended_at=8,
            expires_at=9,
            forked_from="b",
        )

    @store_test
    async def test_a_start_that_a_row_tells_counts_and_not_that_of_the_first(self, store: Store) -> None:
        await commit_accepted(
            store,
            new_append("a", 0, Effects(status="running"), ts=100),
            new_append("a", 1, Effects(started_at=500, forked_from="b"), ts=500),
        )
        await begin_execution(store, "c", Effects(status="running"), ts=300)
        await commit_accepted(store, new_append("c", 1, Effects(started_at=700), ts=700))
        records = (await store.executions(ExecutionQuery(since=400))).executions
        assert [(record.execution_id, record.started_at, record.forked_from) for record in records] == [
            ("c", 700, ""),
            ("a", 500, "b"),
        ]

    @store_test
    async def test_executions_are_found_by_when_they_began_and_what_they_run(self, store: Store) -> None:
        for name, ts in (("a", 100), ("b", 200), ("c", 300)):
            await begin_execution(store, name, Effects(status="running", playbook=f"h{name}"), ts=ts)

        async def names(**query: Any) -> str:
            page = await store.executions(ExecutionQuery(**query))
            return "".join(record.execution_id for record in page.executions)

        assert await names(until=301) == "ba"
        assert await names(since=201, until=301) == "b"
        assert await names(playbook="hc") == "c"
        assert await names(playbook="h") == ""

    @store_test
    async def test_executions_are_found_by_their_error_and_by_text(self, store: Store) -> None:
        await begin_execution(
            store, "id-A", Effects(status="running", path="shop/Load", labels={"team": "Öl"})
        )
        for name, kind, message in (("b", "sql", "No such TABLE 100%"), ("c", "http", "gone")):
            await begin_execution(store, name, Effects(status="running", path="p"))
            body = json.dumps({"status": "failed", "error": {"kind": kind, "message": message}}).encode()
            ended = structs.replace(
                new_append(name, 1, Effects(status="failed", ended_at=9)),
                rows=[Row(2, 9, 5, 1, body, last=True)],
            )
            await commit_accepted(store, ended)

        async def names(**query: Any) -> list[str]:
            page = await store.executions(ExecutionQuery(**query))
            return [record.execution_id for record in page.executions]

        assert await names(error_kind="sql") == ["b"]
        assert await names(error_kind="SQL") == []
        assert await names(text="such table") == ["b"]
        assert await names(text="0%") == ["b"], "nothing stands for other text"
        assert await names(text="%") == ["b"]
        assert await names(text="ID-a") == ["id-A"]
        assert await names(text="SHOP/l") == ["id-A"]
        assert await names(text="team", status=("failed",)) == []

    @store_test
    async def test_what_is_not_given_stays_and_what_is_empty_is_taken_away(self, store: Store) -> None:
        await begin_execution(
            store, "a", Effects(status="running", path="p", labels={"k": "v"}, next_wake=5), ts=100
        )
        await commit_accepted(store, new_append("a", 1, Effects(status="paused", next_wake=0), ts=200))
        record = await store.execution("a")
        assert record
        assert (record.version, record.started_at, record.updated_at) == (2, 101, 202)
        assert (record.status, record.path, record.labels, record.next_wake) == ("paused", "p", {"k": "v"}, 0)

    @store_test
    async def test_facts_of_several_appends_in_one_commit_follow_their_order(self, store: Store) -> None:
        await commit_accepted(
            store,
            new_append("a", 0, Effects(status="one", path="p")),
            new_append("a", 1, Effects(status="two", labels={"k": "v"})),
            new_append("a", 2, Effects(labels={})),
        )
        record = await store.execution("a")
        assert record
        assert (record.version, record.status, record.path, record.labels) == (3, "two", "p", {})

    @store_test
    async def test_an_unknown_execution_is_none(self, store: Store) -> None:
        assert await store.execution("a") is None
        assert (await store.executions()).executions == []

    @store_test
    async def test_the_newest_come_first(self, store: Store) -> None:
        for name in ("b", "a", "c"):
            await begin_execution(store, name)
        await commit_accepted(store, new_append("b", 1))
        assert await _names(store, ExecutionQuery()) == ["c", "a", "b"]

    @store_test
    async def test_pages_show_each_execution_once(self, store: Store) -> None:
        await commit_accepted(store, *(new_append(f"x{number}", 0) for number in range(7)))
        seen: list[str] = []
        cursor = ""
        for size in (3, 3, 1):
            page = await store.executions(ExecutionQuery(limit=3, cursor=cursor))
            assert len(page.executions) == size
            seen += [record.execution_id for record in page.executions]
            cursor = page.next
            await begin_execution(store, f"new{size}{len(seen)}")
        assert cursor == ""
        assert seen == [f"x{number}" for number in reversed(range(7))]

    @store_test
    async def test_a_wrong_cursor_is_refused(self, store: Store) -> None:
        for cursor in ("x", "-1", "1.5", "9" * 30, "٣"):
            with pytest.raises(ValueError, match="cursor"):
                await store.executions(ExecutionQuery(cursor=cursor))

    @store_test
    async def test_filters(self, store: Store) -> None:
        await commit_accepted(
            store,
            new_append("a", 0, Effects(status="failed", path="etl/load", labels={"k": "1", "l": "x"}), ts=10),
            new_append(
                "b", 0, Effects(status="running", path="etl/loads", labels={"k": "1"}, parent="a"), ts=20
            ),
            new_append(
                "c", 0, Effects(status="failed", path="other", labels={"k": "2", '"$.k': "'%_"}), ts=30
            ),
            new_append("d", 0, Effects(status="ended", path="étl/%", parent="a"), ts=40),
        )
        for query, expected in (
            (ExecutionQuery(status=("failed",)), "ca"),
            (ExecutionQuery(status=("failed", "ended")), "dca"),
            (ExecutionQuery(status=("nothing",)), ""),
            (ExecutionQuery(path="etl/load"), "ba"),
            (ExecutionQuery(path="etl/loads"), "b"),
            (ExecutionQuery(path="ét"), "d"),
            (ExecutionQuery(path="%"), ""),
            (ExecutionQuery(execution_id="b"), "b"),
            (ExecutionQuery(execution_id="bb"), ""),
            (ExecutionQuery(execution_id="%"), ""),
            (ExecutionQuery(execution_id="a", status=("failed",)), "a"),
            (ExecutionQuery(labels={"k": "1"}), "ba"),
            (ExecutionQuery(labels={"k": "1", "l": "x"}), "a"),
            (ExecutionQuery(labels={'"$.k': "'%_"}), "c"),
            (ExecutionQuery(labels={"k": "x"}), ""),
            (ExecutionQuery(since=31), "dc"),
            (ExecutionQuery(since=32), "d"),
            (ExecutionQuery(parent="a"), "db"),
            (ExecutionQuery(roots=True), "ca"),
            (ExecutionQuery(roots=True, path="etl"), "a"),
            (ExecutionQuery(status=("failed",), path="etl", labels={"k": "1"}, since=1), "a"),
            (ExecutionQuery(status=("failed",), path="etl", parent="a"), ""),
        ):
            assert await _names(store, query) == list(expected), query

    @store_test
    async def test_filters_follow_changes(self, store: Store) -> None:
        await begin_execution(store, "a", Effects(status="running", labels={"k": "1"}))
        await commit_accepted(store, new_append("a", 1, Effects(status="ended", labels={"k": "2"})))
        assert await _names(store, ExecutionQuery(status=("running",))) == []
        assert await _names(store, ExecutionQuery(labels={"k": "1"})) == []
        assert await _names(store, ExecutionQuery(status=("ended",), labels={"k": "2"})) == ["a"]


async def _names(store: Store, query: ExecutionQuery) -> list[str]:
    return [record.execution_id for record in (await store.executions(query)).executions]
