"""What must be decided next, and how a snapshot keeps it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noetl.kernel.state.agenda import (
    AdmitToken,
    Agenda,
    AgendaItem,
    DeliverSignal,
    FireJoin,
    RouteRun,
    item_named,
)
from noetl.kernel.state.execution_state import ExecutionState
from noetl.kernel.state.replay import dump_state, load_state
from tests.kernel.driver import Driver

items: st.SearchStrategy[AgendaItem] = st.one_of(
    st.builds(AdmitToken, st.from_regex(r"t[0-9]{1,4}", fullmatch=True)),
    st.builds(RouteRun, st.from_regex(r"r[0-9]{1,4}", fullmatch=True)),
    st.builds(FireJoin, st.integers(0, 2000)),
    st.builds(DeliverSignal, st.text(max_size=5)),
)


STORED = {"inputs": "given", "pending_effects": "ledger"}
"""What fields are called in snapshots, where that is not their name."""


def test_a_snapshot_keeps_the_agenda_by_name_and_in_order() -> None:
    driver = Driver("- step: start\n  tool: {kind: noop}\n").start()
    agenda = Agenda.of(
        [DeliverSignal("go"), RouteRun("r12"), FireJoin(3), AdmitToken("t9"), DeliverSignal("")]
    )
    driver.state.agenda = agenda
    stored = json.dumps(dump_state(driver.state)["state"]["agenda"])
    assert stored == '{"sgo": null, "r12": null, "j3": null, "t9": null, "s": null}'
    loaded = load_state(driver.plan, json.loads(json.dumps(dump_state(driver.state))))
    assert loaded.agenda == agenda
    assert type(loaded.agenda) is Agenda


def test_a_snapshot_has_the_agenda_where_it_always_had_it() -> None:
    driver = Driver("- step: start\n  tool: {kind: noop}\n").start()
    assert list(dump_state(driver.state)["state"]) == [
        STORED.get(name, name) for name in ExecutionState.__struct_fields__
    ]


@given(st.lists(items))
def test_a_name_stands_for_one_item(listed: list[AgendaItem]) -> None:
    agenda = Agenda.of(listed)
    assert Agenda.of(map(item_named, agenda.names)) == agenda
    assert len(set(agenda.names)) == len(agenda)


def test_a_name_of_no_item_is_refused() -> None:
    with pytest.raises(ValueError, match="agenda names"):
        item_named("x1")
