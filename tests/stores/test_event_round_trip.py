"""Events survive the store as they are."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from noetl.events.codec import FORMAT, decode, encode
from noetl.events.event import Event
from noetl.events.event_kind import kind_of_body
from noetl.ports.store import Append, Committed, Row
from noetl.stores.sqlite.store import SqliteStore
from tests.events.any_event import AT_ANY_SPEED, any_event


@AT_ANY_SPEED
@given(st.lists(any_event(), min_size=1, max_size=5))
def test_a_history_comes_back_as_it_was_written(events: list[Event]) -> None:
    history = [Event(seq, event.ts, event.body) for seq, event in enumerate(events, 1)]
    rows = [
        Row(
            event.seq,
            event.ts,
            kind_of_body(event.body).number,
            FORMAT,
            encode(event.body),
            event is history[-1],
        )
        for event in history
    ]

    async def write_and_read() -> list[Row]:
        store = SqliteStore.in_memory()
        append = Append(execution_id="a", expected_version=0, rows=rows)
        assert await store.commit([append]) == [Committed(len(rows))]
        stored_rows = await store.read("a")
        await store.close()
        return stored_rows

    stored_rows = asyncio.run(write_and_read())
    assert [Event(row.seq, row.ts, decode(row.kind, row.body, row.version)) for row in stored_rows] == history
