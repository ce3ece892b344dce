"""One seed from its scenario to a verdict."""

import traceback
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from noetl.kernel.state.execution_state import ExecutionState, waiting_steps
from noetl.testing.simulator.audit import AuditFailure
from noetl.testing.simulator.playbook_overlay import without_overlay
from noetl.testing.simulator.scenario import NO_FAULTS, SimulatedScenario
from noetl.testing.simulator.simulated_world import SimulatedPlaybooks, SimulatedWorld


class SimulationVerdict(Struct, frozen=True):
    """What a simulation found: `problem` is empty if all is well."""

    scenario: SimulatedScenario
    problem: str
    end: dict[str, Any]
    lost_tasks: bool
    """Workers were lost so often that a task was given up: the end need not be as without faults."""
    trace: tuple[tuple[float, str, Any], ...]
    """The last things that happened: when, where, and what."""
    turns: int


class Simulator:
    """Runs scenarios. What belongs to a playbook is kept for the next one that has the same playbook."""

    def __init__(self) -> None:
        # Four seeds in a row share a playbook and the end without faults: each costs as much as a run.
        self.playbooks = SimulatedPlaybooks()
        self._expected: dict[SimulatedScenario, SimulationVerdict] = {}

    def check(self, scenario: SimulatedScenario) -> SimulationVerdict:
        """Simulate, and compare the end with that of the run without faults where there is only one end."""
        verdict = self._simulate(scenario)
        if verdict.problem or verdict.lost_tasks or not scenario.comparable:
            return verdict
        expected = self._without_faults(scenario)
        if expected.problem:
            return replace(verdict, problem=f"without any fault: {expected.problem}", trace=expected.trace)
        problem = "; ".join(
            f"{name} is {verdict.end[name]!r}, and {value!r} without faults"
            for name, value in expected.end.items()
            if verdict.end[name] != value
        )
        return replace(verdict, problem=problem)

    def _without_faults(self, scenario: SimulatedScenario) -> SimulationVerdict:
        local = without_overlay(scenario.document)
        plain = replace(scenario, seed=0, document=local, faults=NO_FAULTS, operations=())
        if plain not in self._expected:
            self._expected[plain] = self._simulate(plain)
        return self._expected[plain]

    def _simulate(self, scenario: SimulatedScenario) -> SimulationVerdict:
        world = SimulatedWorld(scenario, self.playbooks)
        problem = ""
        try:
            world.run()
        except AuditFailure as finding:
            problem = str(finding)
        except Exception as error:  # noqa: BLE001 - whatever the engine raises is what is looked for
            frame = traceback.extract_tb(error.__traceback__)[-1]
            problem = f"{type(error).__name__} in {frame.name}: {error}"
        return SimulationVerdict(
            scenario=scenario,
            problem=problem,
            end=comparable_end(world.root) if world.root is not None else {},
            lost_tasks=world.audit.lost_workers > 0,
            trace=tuple(world.trace),
            turns=world.turns,
        )


def comparable_end(state: ExecutionState) -> dict[str, Any]:
    """What must be the same however things went: without ids, times, and the order of failures."""
    ctx = {key: value for key, value in state.ctx.values.items() if key != "signals"}
    return {
        "status": state.status,
        "result": state.result,
        "ctx": ctx,
        "steps": {name: (summary.status, summary.runs) for name, summary in sorted(state.summaries.items())},
        "failures": sorted((failure.error.kind, failure.error.details["step"]) for failure in state.failures),
        "discarded": sorted((token["step"], token["reason"]) for token in state.discarded),
        "waiting": waiting_steps(state),
    }
