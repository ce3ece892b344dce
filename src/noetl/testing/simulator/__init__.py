"""A simulator of the engine: the real kernel, store and codec, and all that can go wrong around them."""

from noetl.testing.simulator.scenario import Faults, Scenario, scenario_of
from noetl.testing.simulator.shrinker import shrink
from noetl.testing.simulator.simulation import Simulator, Verdict
from noetl.testing.simulator.simulation_report import describe, tell

__all__ = ["Faults", "Scenario", "Simulator", "Verdict", "describe", "scenario_of", "shrink", "tell"]
