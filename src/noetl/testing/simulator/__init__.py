"""A simulator of the engine: the real kernel, store and codec, and all that can go wrong around them."""

from noetl.testing.simulator.scenario import Faults, Scenario, scenario_of
from noetl.testing.simulator.shrinking import shrink
from noetl.testing.simulator.simulation import Simulator, Verdict
from noetl.testing.simulator.telling import describe, tell

__all__ = ["Faults", "Scenario", "Simulator", "Verdict", "describe", "scenario_of", "shrink", "tell"]
