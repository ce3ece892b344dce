"""The heartbeat of a worker: from a thread of its own, so that busy code in the loop loses no lease."""

import threading
import time
import urllib.request
from collections.abc import Callable, Mapping

import msgspec

from noetl.ports.control import Beaten, Heartbeat, MessageMalformed, decode_from_server, encode_message

BEATS_IN_TTL = 3
LOOP_PATIENCE = 0.5
"""Part of a ttl for which the loop may stand still before the thread stops speaking for it."""


class HeartbeatThread(threading.Thread):
    """Beats for one session, and counts from when each beat was sent how long its leases live.

    `turn` is to be called by the loop: a worker whose loop hangs is as good as dead.
    """

    def __init__(self, ttl: float, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(name="noetl-heartbeat", daemon=True)
        self.ttl = ttl
        self._clock = clock
        self._ended = threading.Event()
        self._beaten = threading.Event()
        self._server: tuple[str, Mapping[str, str]] = ("", {})
        self._turned = clock()
        self.deadline = clock() + ttl
        """When the leases end, by this process's clock."""

    def join_server(self, url: str, headers: Mapping[str, str], registered_at: float, ttl: float) -> None:
        """From here on it beats there. To register is to beat."""
        self._server = url, dict(headers)
        self.ttl = ttl
        self.deadline = registered_at + ttl

    def turn(self) -> None:
        self._turned = self._clock()

    @property
    def lease_holds(self) -> bool:
        return self._clock() < self.deadline

    def end(self) -> None:
        self._ended.set()

    def run(self) -> None:
        while not self._ended.wait(self.ttl / BEATS_IN_TTL):
            if self._clock() - self._turned <= self.ttl * LOOP_PATIENCE:
                self._beat()

    def _beat(self) -> None:
        url, headers = self._server
        sent = self._clock()
        request = urllib.request.Request(  # noqa: S310 - the operator's own URL, checked where it came in
            f"{url}/api/worker/heartbeat",
            data=encode_message(Heartbeat()),
            headers={**headers, "content-type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=self.ttl / BEATS_IN_TTL) as response:  # noqa: S310 - likewise
                (raw,) = msgspec.json.decode(response.read(), type=tuple[msgspec.Raw])
            answer = decode_from_server(bytes(raw))
        except (OSError, ValueError, MessageMalformed):
            return  # the next beat may be heard; if none is, the deadline comes
        if isinstance(answer, Beaten) and answer.known:
            self.deadline = max(self.deadline, sent + self.ttl)
