"""Time as events know it."""

import time


def now() -> int:
    """Microseconds since 1970, UTC."""
    return time.time_ns() // 1_000
