"""Credentials are proven by a worker before the first step, whatever is lost on the way."""

import pytest
from msgspec.structs import replace

from noetl.testing.simulator.playbook_pieces import SimulatedPlaybook, TaskPiece
from noetl.testing.simulator.scenario import SEEDS_PER_PLAYBOOK, scenario_of
from noetl.testing.simulator.simulated_world import SimulatedWorld
from noetl.testing.simulator.simulation import Simulator

SEEDS = range(1, 24 * SEEDS_PER_PLAYBOOK, SEEDS_PER_PLAYBOOK + 1)
LOOKS = TaskPiece("look", "kind: secrets, name: api")


def looking(document: SimulatedPlaybook, entry: str) -> SimulatedPlaybook:
    """The same, but each step with tasks looks a credential up before all else."""
    steps = [replace(step, tasks=(LOOKS, *step.tasks)) if step.tasks else step for step in document.steps]
    return replace(document, steps=tuple(steps), keychain=entry)


def test_executions_with_credentials_begin_and_end_whatever_is_lost() -> None:
    simulator = Simulator()
    for seed in SEEDS:
        scenario = scenario_of(seed)
        document = looking(scenario.document, "{name: api, kind: static, value: a word of eight}")
        # Markers of secrets name the playbook, and the one without faults may be another.
        verdict = simulator.check(replace(scenario, document=document, comparable=False))
        assert not verdict.problem, (seed, verdict.problem)


def test_executions_whose_credentials_nobody_has_fail_without_a_task(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOBODY_HAS_THIS", raising=False)
    simulator = Simulator()
    for seed in SEEDS:
        scenario = scenario_of(seed)
        document = looking(scenario.document, "{name: api, kind: env, env: NOBODY_HAS_THIS}")
        world = SimulatedWorld(replace(scenario, document=document, operations=()), simulator.playbooks)
        world.run()
        assert world.root is not None
        assert not world.tools.effects, seed
        summaries = world.root.summaries
        if any(
            step.tasks and step.name in summaries and summaries[step.name].runs for step in document.steps
        ):
            assert world.root.status == "failed", seed
            assert world.root.error is not None
            assert world.root.error.kind == "credential", seed
