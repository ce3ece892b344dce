"""The heartbeat of a worker: from a thread of its own, so that busy code in the loop loses no lease."""

import threading
from collections.abc import Callable

from noetl.ports.control import Beaten, FromServer

BEATS_IN_TTL = 3
TRIES_IN_TTL = 12
"""How often a beat is sent while none is answered."""
LOOP_PATIENCE = 0.5
"""Part of a ttl for which the loop may stand still before nobody speaks for it."""


class LeaseClock:
    """Until when the leases of a session live, counted from when each beat was sent.

    `turn` is to be called by the loop: a worker whose loop hangs is as good as dead.
    """

    def __init__(self, monotonic: Callable[[], float], ttl: float, registered_at: float) -> None:
        self.monotonic = monotonic
        self._turned = monotonic()
        self.renew(ttl, registered_at)

    def renew(self, ttl: float, registered_at: float) -> None:
        """To register is to beat."""
        self.ttl = ttl
        self.deadline = registered_at + ttl
        """When the leases end, by this process's clock."""

    def turn(self) -> None:
        self._turned = self.monotonic()

    @property
    def patience(self) -> float:
        """Seconds that a beat waits for its answer."""
        return self.ttl / BEATS_IN_TTL

    @property
    def wait(self) -> float:
        """Seconds until the next beat: a part of the ttl after the last that was heard, soon if none was.

        A server may be slow to say that it has registered a worker, whose leases live from when it asked.
        """
        due = self.deadline - self.ttl + self.ttl / BEATS_IN_TTL
        return max(due - self.monotonic(), self.ttl / TRIES_IN_TTL)

    @property
    def silence(self) -> float:
        """Seconds since the last beat was sent that was heard."""
        return self.monotonic() - self.deadline + self.ttl

    @property
    def loop_turns(self) -> bool:
        return self.monotonic() - self._turned <= self.ttl * LOOP_PATIENCE

    @property
    def lease_holds(self) -> bool:
        return self.monotonic() < self.deadline

    def beaten(self, sent: float, answer: FromServer) -> None:
        """What the server answers to a beat that was sent then."""
        if isinstance(answer, Beaten) and answer.known:
            self.deadline = max(self.deadline, sent + self.ttl)


class HeartbeatThread(threading.Thread):
    """Beats for one session until `end`. `beat` raises OSError or ValueError where none is heard."""

    def __init__(self, leases: LeaseClock, beat: Callable[[float], FromServer]) -> None:
        super().__init__(name="noetl-heartbeat", daemon=True)
        self._leases = leases
        self._beat = beat
        self._ended = threading.Event()

    def end(self) -> None:
        self._ended.set()

    def run(self) -> None:
        leases = self._leases
        while not self._ended.wait(leases.wait):
            if leases.loop_turns:
                sent = leases.monotonic()
                try:
                    leases.beaten(sent, self._beat(leases.patience))
                except (OSError, ValueError):
                    continue  # the next beat may be heard; if none is, the deadline comes
