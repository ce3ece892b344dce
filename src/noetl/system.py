"""What a process has from its system beside files and sockets: time, and numbers that nobody can foresee.

Engine, server and worker have both from the `System` that they are given: a simulation gives another.
"""

import random
import secrets
import time
from collections.abc import Callable
from typing import NamedTuple

import uuid_utils


class System(NamedTuple):
    now: Callable[[], int]
    """Microseconds since 1970, UTC: what events say. It may be set, also backwards."""
    monotonic: Callable[[], float]
    """Seconds, as the event loop counts them: nobody's setting of a clock matters to it."""
    new_execution_id: Callable[[], str]
    new_session_id: Callable[[], str]
    """128 bits that nobody can guess."""
    jitter: Callable[[], float]
    """From 0.5 to 1.5: a wait times this, so that not all come back at once."""


def _now() -> int:
    return time.time_ns() // 1_000


SYSTEM = System(
    now=_now,
    monotonic=time.monotonic,
    new_execution_id=lambda: str(uuid_utils.uuid7()),
    new_session_id=lambda: secrets.token_hex(16),
    jitter=lambda: random.uniform(0.5, 1.5),  # noqa: S311 - no secret
)
