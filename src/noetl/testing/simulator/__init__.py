"""A simulator of the engine: the real kernel, store and codec, and all that can go wrong around them."""

from noetl.testing.simulator.scenario import Faults, SimulatedScenario, scenario_of
from noetl.testing.simulator.shrinker import shrink
from noetl.testing.simulator.simulation import SimulationVerdict, Simulator
from noetl.testing.simulator.simulation_report import describe_scenario, failure_report

__all__ = [
    "Faults",
    "SimulatedScenario",
    "SimulationVerdict",
    "Simulator",
    "describe_scenario",
    "failure_report",
    "scenario_of",
    "shrink",
]
