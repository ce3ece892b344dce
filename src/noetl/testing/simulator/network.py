"""Messages between client, servers and workers: late, in any order, twice, or never."""

from random import Random

from noetl.testing.simulator.scenario import Faults
from noetl.testing.simulator.virtual_clock import Action, VirtualClock


class SimulatedNetwork:
    """Delivers by calling. After `faults.until` it is perfect."""

    def __init__(self, clock: VirtualClock, faults: Faults, random: Random) -> None:
        self._clock = clock
        self._faults = faults
        self._random = random
        self.broken_until = clock.now + round(faults.until * 1_000_000)

    @property
    def perfect(self) -> bool:
        return self._clock.now >= self.broken_until

    def send(self, deliver: Action) -> None:
        if self.perfect:
            self._clock.later(0.001, deliver)
            return
        faults, random = self._faults, self._random
        copies = 2 if random.random() < faults.duplicate else 1
        for _ in range(copies):
            if random.random() >= faults.drop:
                self._clock.later(self._delay(), deliver)

    def _delay(self) -> float:
        faults, random = self._faults, self._random
        if random.random() < faults.late:
            return random.uniform(5, 30)
        if random.random() < faults.reorder:
            return random.uniform(0, 2)
        return 0.001
