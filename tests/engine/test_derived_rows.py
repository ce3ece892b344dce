"""What a server writes beside its events: by each append as if all were folded."""

from itertools import pairwise

import pytest

from noetl.engine.effects import row_changes, rows_as_effects
from noetl.kernel.derived_rows import UnitRows, all_rows, timer_of_key
from noetl.kernel.net.decider import decide
from noetl.kernel.state.execution_state import new_state
from noetl.kernel.state.fold import evolve
from noetl.ports.store import NO_EFFECTS, merge_effects
from tests.golden.golden_files import history, recordings


@pytest.mark.parametrize(("name", "decider"), recordings())
def test_rows_that_follow_each_append_are_those_of_the_state(name: str, decider: int) -> None:
    golden = history(name, decider)
    state = new_state(golden.plan, golden.execution_id)
    rows: dict[str, UnitRows] = {}
    stored = NO_EFFECTS
    for start, end in pairwise([0, *golden.ends]):
        events = golden.events[start:end]
        for event in events:
            evolve(state, event)
        stored = merge_effects(stored, row_changes(state, events, rows))
        assert rows == all_rows(state)
        folded = rows_as_effects(state)
        for kind in ("ready", "leases", "timers"):
            present = {key: row for key, row in getattr(stored, kind).items() if row is not None}
            assert present == getattr(folded, kind)


@pytest.mark.parametrize(("name", "decider"), recordings())
def test_whatever_has_a_timer_is_changed_by_it(name: str, decider: int) -> None:
    golden = history(name, decider)
    state = new_state(golden.plan, golden.execution_id)
    for event in golden.events:
        evolve(state, event)
        for unit in all_rows(state).values():
            for key, due in unit.timers.items():
                assert decide(state, timer_of_key(key), due), key
