"""Executions, read back from a store."""

from collections.abc import Iterable
from typing import Any

import msgspec
import pytest

from noetl.engine.catalog.playbook_record import (
    PlaybookSource,
    PlaybookUnreadable,
    encode_source,
    load_record,
)
from noetl.engine.history.lookup import PAGE, HistoryUnreadable, find_execution
from noetl.engine.history.read import read_history, read_plan, read_state
from noetl.events.bodies import ParentTask, PlaybookProcessed
from noetl.kernel.state.execution_state import STATE_FORMAT
from noetl.kernel.state.replay import dump_state
from noetl.loader import examine
from noetl.ports.store import Append, Effects, ExecutionUnknown, Row, Snapshot, Store
from tests.executions.execution_playbooks import BREAK, BROKEN, GREET, GREETED, HOLD
from tests.executions.recorded_executions import RecordedExecutions, append_of
from tests.playbooks import document_of

ENDLESS = """\
- step: start
  loop: {in: "{{ range(0, 400) | list }}", iterator: item}
  tool: {kind: noop}
"""


def test_a_history_is_all_that_happened_and_what_it_amounts_to(recorded: RecordedExecutions) -> None:
    execution = recorded.begin(GREET, GREETED)
    execution.driver.run(labels={"team": "data"})
    execution.save()
    history = recorded.with_store(lambda store: read_history(store, execution.id))
    assert history.events == execution.driver.events
    assert dump_state(history.state) == dump_state(execution.driver.state)
    assert history.playbook == execution.driver.plan.playbook
    assert history.request.labels == {"team": "data"}


def test_a_state_is_that_of_any_event(recorded: RecordedExecutions) -> None:
    name = recorded.run(GREET, GREETED)
    history = recorded.with_store(lambda store: read_history(store, name))
    assert history.state_at(0).status == "new"
    assert [history.state_at(seq).version for seq in (1, 7)] == [1, 7]
    assert history.state_at(len(history.events)).result == "bye"
    for seq in (-1, len(history.events) + 1):
        with pytest.raises(ValueError, match="is not one of"):
            history.state_at(seq)


def test_long_histories_are_read_in_pages(recorded: RecordedExecutions) -> None:
    name = recorded.run(ENDLESS)
    history = recorded.with_store(lambda store: read_history(store, name))
    assert len(history.events) > PAGE
    assert isinstance(history.events[-1].body, PlaybookProcessed)


def test_a_state_comes_from_the_newest_snapshot_and_the_events_since(recorded: RecordedExecutions) -> None:
    execution = recorded.begin(GREET, GREETED).start()
    execution.save()
    middle = dump_state(execution.driver.state)
    execution.driver.run()
    execution.save()

    async def read(store: Store) -> tuple[Any, Any]:
        record = await find_execution(store, execution.id)
        without = await read_state(store, await read_plan(store, record), record.execution_id)
        body = msgspec.json.encode(middle)
        await store.put_snapshot(execution.id, Snapshot(middle["state"]["version"], STATE_FORMAT, body))
        return without, await read_state(store, await read_plan(store, record), record.execution_id)

    without, with_snapshot = recorded.with_store(read)
    assert dump_state(without) == dump_state(with_snapshot) == dump_state(execution.driver.state)


@pytest.mark.parametrize("body", [b"{", b"{}", b'{"format": 1, "hash": "another"}'])
def test_a_snapshot_that_cannot_be_used_is_left_aside(recorded: RecordedExecutions, body: bytes) -> None:
    name = recorded.run(GREET, GREETED)

    async def read(store: Store) -> Any:
        await store.put_snapshot(name, Snapshot(5, STATE_FORMAT, body))
        record = await find_execution(store, name)
        return await read_state(store, await read_plan(store, record), record.execution_id)

    assert recorded.with_store(read).result == "bye"


def test_an_execution_is_found_by_its_id_or_the_beginning_of_it(recorded: RecordedExecutions) -> None:
    first, second = recorded.run(GREET, GREETED), recorded.run(BREAK, BROKEN)

    async def find(store: Store) -> None:
        for name in (first, second):
            assert (await find_execution(store, name)).execution_id == name
        assert (await find_execution(store, "latest")).execution_id == second
        for name, message in (("", "there is no"), ("0194", "there is no"), (first[:8], "several")):
            with pytest.raises(ExecutionUnknown, match=message):
                await find_execution(store, name)
        await store.delete(second)
        assert (await find_execution(store, first[:8])).execution_id == first
        await store.delete(first)
        with pytest.raises(ExecutionUnknown):
            await find_execution(store, "latest")

    recorded.with_store(find)


def test_the_latest_is_nobodys_child(recorded: RecordedExecutions) -> None:
    mother = recorded.run(GREET, GREETED)
    recorded.run(GREET, GREETED, parent=ParentTask(execution_id=mother, task_run_id="r5/0/say/1/1"))
    record = recorded.with_store(lambda store: find_execution(store, "latest"))
    assert record.execution_id == mother


def test_a_playbook_whose_tools_are_not_installed_is_still_read(recorded: RecordedExecutions) -> None:
    text = BREAK.replace('kind: python, code: "result = 1"', "kind: telegraph")
    name = recorded.run(text, {"say": 1}, kinds=["telegraph"])
    assert recorded.with_store(lambda store: read_history(store, name)).state.result == 1


def stored_fields(text: str, kinds: Iterable[str] = ()) -> dict[str, Any]:
    """The record of a document, to be changed."""
    playbook = examine(text, "p.yaml", allow_kinds=kinds).playbook
    assert playbook is not None
    fields: dict[str, Any] = msgspec.json.decode(encode_source(PlaybookSource(text, "p.yaml"), playbook))
    return fields


def test_a_document_that_is_no_longer_accepted_is_read_as_it_was() -> None:
    fields = stored_fields(document_of(BREAK))
    assert (
        load_record(msgspec.json.encode({**fields, "text": "kind: Nothing"})).metadata.path
        == fields["playbook"]["metadata"][1]["path"]
    )


@pytest.mark.parametrize(
    "change",
    [{"format": 0}, {"format": 2}, {"playbook": {"document": 1}}, {"playbook": None}],
)
@pytest.mark.parametrize("kind", ["python", "telegraph"])
def test_the_document_is_read_where_what_became_of_it_cannot_be(change: dict[str, Any], kind: str) -> None:
    text = document_of(BREAK.replace("kind: python", f"kind: {kind}"))
    fields = stored_fields(text, [kind])
    playbook = load_record(msgspec.json.encode({**fields, **change}))
    assert playbook == examine(text, "p.yaml", allow_kinds=[kind]).playbook


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (b"\xff", "damaged"),
        (b'{"name": 1}', "damaged"),
        (msgspec.json.encode(PlaybookSource("apiVersion: noetl.io/v2\n", "a.yaml")), "does not accept"),
    ],
)
def test_a_document_that_cannot_be_read_is_named(
    recorded: RecordedExecutions, document: bytes, message: str
) -> None:
    execution = recorded.begin(HOLD).start()

    async def read(store: Store) -> None:
        await store.put_playbook(execution.driver.plan.playbook.hash, document)
        await store.commit([append_of(execution.id, execution.driver.appends[0])])
        with pytest.raises(PlaybookUnreadable, match=message):
            await read_history(store, execution.id)

    recorded.with_store(read)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (Row(1, 5, 999, 1, b"{}", True), "event 1 of x.*newer release"),
        (Row(1, 5, 1, 9, b"{}", True), "format version 9"),
        (Row(1, 5, 1, 1, b"{", True), "cannot be read"),
        (Row(1, 5, 4, 1, b'{"status": "completed"}', True), "begins with its request"),
        (Row(1, 5, 20, 1, b'{"run": "r5"}', True), "does not fit what came before"),
    ],
)
def test_events_that_cannot_be_read_are_named(recorded: RecordedExecutions, row: Row, message: str) -> None:
    playbook = recorded.begin(HOLD)

    async def read(store: Store) -> None:
        hashed = playbook.driver.plan.playbook.hash
        await store.put_playbook(hashed, msgspec.json.encode(PlaybookSource(playbook.text, "playbook.yaml")))
        effects = Effects(status="running", playbook=hashed)
        await store.commit([Append(execution_id="x", expected_version=0, rows=[row], effects=effects)])
        with pytest.raises(HistoryUnreadable, match=message) as caught:
            await read_history(store, "x")
        assert caught.value.hint

    recorded.with_store(read)


def test_a_missing_playbook_is_named(recorded: RecordedExecutions) -> None:
    async def read(store: Store) -> None:
        row = Row(1, 5, 1, 1, b'{"path": "p", "hash": "h"}', True)
        effects = Effects(status="running", playbook="h")
        await store.commit([Append(execution_id="x", expected_version=0, rows=[row], effects=effects)])
        with pytest.raises(HistoryUnreadable, match="playbook of x is missing"):
            await read_history(store, "x")

    recorded.with_store(read)
