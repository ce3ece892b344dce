"""Nothing lost: every playbook is crashed at every write, resumed, and compared."""

from hashlib import sha256
from pathlib import Path

import pytest

from noetl.engine import scheduler, service
from noetl.events.bodies import RunSuspended
from noetl.kernel.pipeline import interpreter
from noetl.model.reference import encode_value, is_reference
from noetl.testing.crash import Crashes
from tests.crash.crash_scenarios import SCENARIOS


def hash_of(value: object) -> str:
    """By which a value that left the log is named."""
    return sha256(encode_value(value)).hexdigest()


RESULTS = {
    "chain": {"n": 8, "ctx": 3},
    "pages": {"ready": True},
    "retry": "rescue 3",
    "sequential": "end [31, 11, 21]",
    "parallel": [0, 1, 2, 3, 4, 5, 6],
    "best_effort": "rescue iteration_failed",
    "joins": "two",
    "admission": "late",
    "children": 8,
    "child_loop": [11, 12, None, 14],
    "detached": "end",
    "wait": ["after 0.03", "after 0.01"],
    "signal_by_letter": "after somebody",
    "signal_early": "after somebody",
    "signal_gate": "gated somebody",
    "deadlines": "end timeout",
    "cancelled": None,
    "keyed": {"n": 8, "ctx": 3},
    "slow_retry": ["slow 1", "slow 2"],
    "final": None,
    "mended": ["loop 0", "loop 1"],
    "mended_child": "after book",
    "forked": {"n": 8, "ctx": 3},
    "forked_child": "after 3 first",
    "paused": "end",
    "python": "python 1 python 2",
    "contained": "end 4",
    "stored": hash_of(["long " * 20] * 2),
    "stored_child": hash_of("1 " * 40 + "2 " * 40 + "3 " * 40),
    "stored_fork": hash_of(["long " * 20] * 2),
}


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_crash_at_any_write_loses_nothing(name: str, memory_folder: Path) -> None:
    crashes = Crashes(SCENARIOS[name], memory_folder)
    result = crashes.uninterrupted.ends()["root 1"]["result"]
    assert (result["hash"] if is_reference(result) else result) == RESULTS[name]
    assert crashes.at_every_write() > 8


@pytest.mark.parametrize(
    "name", ["pages", "joins", "admission", "child_loop", "mended_child", "detached", "wait"]
)
def test_a_crash_between_any_two_decisions_loses_nothing(
    name: str, memory_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if the loop were so busy that every turn ends after one instruction, with a commit of its own."""
    monkeypatch.setattr(scheduler, "TURN", -1.0)
    monkeypatch.setattr(scheduler, "FLUSH_AT", 1)
    assert Crashes(SCENARIOS[name], memory_folder).at_every_write() > 8


@pytest.mark.parametrize("name", ["parallel", "best_effort", "mended"])
def test_iterations_may_begin_in_different_turns(
    name: str, memory_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a machine that is too busy to begin more than one of them at a time."""
    crashes = Crashes(SCENARIOS[name], memory_folder)
    monkeypatch.setattr(scheduler, "TURN", -1.0)
    assert crashes.at_every_write() > 8


@pytest.mark.parametrize("name", ["parallel", "mended", "child_loop"])
def test_a_resumed_execution_may_begin_from_a_snapshot(
    name: str, memory_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "SNAPSHOT_EVERY", 4)
    assert Crashes(SCENARIOS[name], memory_folder).at_every_write() > 8


@pytest.mark.parametrize("name", ["retry", "slow_retry"])
def test_a_retry_that_waits_long_holds_nothing(
    name: str, memory_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interpreter, "LONG_WAIT", 1_000)
    crashes = Crashes(SCENARIOS[name], memory_folder)
    (execution,) = crashes.uninterrupted.executions.values()
    assert any(isinstance(event.body, RunSuspended) for event in execution.events)
    assert crashes.at_every_write() > 8


@pytest.mark.parametrize("name", ["sequential", "child_loop"])
def test_who_resumes_may_crash_too(name: str, memory_folder: Path) -> None:
    assert Crashes(SCENARIOS[name], memory_folder).at_every_two_writes() > 40
