"""What earlier releases recorded is read, folded and decided as it was."""

import json
from itertools import pairwise

import pytest

from noetl.events.bodies import ExecutionForked
from noetl.kernel.net.execution_request import DECIDER
from noetl.kernel.state.execution_state import new_state
from noetl.kernel.state.fold import evolve
from noetl.kernel.state.invariants import sequence_gaps, violations
from noetl.kernel.state.replay import dump_state, load_state, replay
from noetl.kernel.verify.verification import verify
from tests.golden.golden_files import history, history_bytes, record, recorded_bytes, recordings
from tests.golden.golden_scenarios import RECORDED, SCENARIOS, play_scenario
from tests.golden.normal_form import normal_form
from tests.kernel.state_comparison import differences

RECORDINGS = recordings()


def test_every_scenario_is_recorded_with_the_rules_of_today() -> None:
    today = [name for name, decider in RECORDINGS if decider == DECIDER]
    assert today == sorted(SCENARIOS), "record them: python -m tests.golden.golden_files"
    assert sorted(path.stem for path in RECORDED.glob("*.yaml")) == today


def test_histories_of_all_earlier_rules_are_there() -> None:
    assert {decider for _, decider in RECORDINGS} == set(range(1, DECIDER + 1))


@pytest.mark.parametrize("name", sorted(SCENARIOS))
def test_a_scenario_played_today_gives_its_recorded_history(name: str) -> None:
    assert history_bytes(play_scenario(name)) == recorded_bytes(name)


@pytest.mark.parametrize(("name", "decider"), RECORDINGS)
def test_a_recorded_history_leads_to_the_recorded_state(name: str, decider: int) -> None:
    golden = history(name, decider)
    state = replay(golden.plan, golden.execution_id, golden.events)
    assert list(sequence_gaps(golden.events)) == []
    assert violations(state) == []
    assert normal_form(state) == golden.expected


@pytest.mark.parametrize(("name", "decider"), RECORDINGS)
def test_a_recorded_history_is_decided_as_it_was(name: str, decider: int) -> None:
    golden = history(name, decider)
    verification = verify(golden.plan, golden.execution_id, golden.events)
    assert verification.events == len(golden.events)
    assert (verification.differences, verification.notes) == ((), ())


@pytest.mark.parametrize(("name", "decider"), RECORDINGS)
def test_after_every_append_the_history_is_whole(name: str, decider: int) -> None:
    golden = history(name, decider)
    forks = [event for event in golden.events if isinstance(event.body, ExecutionForked)]
    assert golden.ends[-1] == len(golden.events)
    for begin, end in pairwise([0, *golden.ends]):
        assert len({event.ts for event in golden.events[begin:end]}) == 1
        later = (fork.body.source for fork in forks if fork.seq > end)  # type: ignore[union-attr]  # forks all
        owner = next(later, golden.execution_id)
        assert verify(golden.plan, owner, golden.events[:end]).differences == ()


@pytest.mark.parametrize(("name", "decider"), RECORDINGS)
def test_a_snapshot_anywhere_and_the_rest_is_the_whole(name: str, decider: int) -> None:
    """A snapshot after every event, of the state that begins with the one before."""
    golden = history(name, decider)
    folded = new_state(golden.plan, golden.execution_id)
    restored = new_state(golden.plan, golden.execution_id)
    for event in golden.events:
        restored = load_state(golden.plan, json.loads(json.dumps(dump_state(restored))))
        for state in (folded, restored):
            evolve(state, event)
        assert differences(restored, folded) == []
    assert normal_form(restored) == golden.expected


def test_what_is_recorded_is_not_written_again() -> None:
    before = recorded_bytes("chain")
    with pytest.raises(FileExistsError):
        record("chain")
    assert recorded_bytes("chain") == before
