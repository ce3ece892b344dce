"""What is done to whom and when, from a seed."""

import random
from dataclasses import dataclass
from typing import Literal, TypeAlias

Action: TypeAlias = Literal["kill", "pause", "stop", "stop and kill"]
"""SIGKILL; SIGSTOP and SIGCONT within the lease; the same past it; SIGSTOP, and SIGKILL past the lease."""

SERVER = "server"
_ACTIONS: tuple[tuple[Action, int], ...] = (("kill", 10), ("pause", 3), ("stop", 4), ("stop and kill", 3))
_SERVER_ACTIONS: tuple[tuple[Action, int], ...] = (
    ("kill", 14),
    ("pause", 4),
    ("stop", 1),
    ("stop and kill", 1),
)
_SERVER_SHARE = 0.25


@dataclass(frozen=True)
class Fault:
    """`gap` seconds after the one before; `seconds` is how long the process stands still."""

    gap: float
    target: str
    action: Action
    seconds: float


def plan_faults(seed: int, count: int, workers: int, ttl: float, gap: float) -> list[Fault]:
    """The same for the same seed. Gaps are `gap` seconds on average, some of them near nothing."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    return [_fault(chance, workers, ttl, gap) for _ in range(count)]


def _fault(chance: random.Random, workers: int, ttl: float, gap: float) -> Fault:
    is_server = chance.random() < _SERVER_SHARE
    actions, weights = zip(*(_SERVER_ACTIONS if is_server else _ACTIONS), strict=True)
    action: Action = chance.choices(actions, weights)[0]
    spans = {"kill": (0.0, 0.0), "pause": (0.05, ttl / 4), "stop": (ttl * 1.1, ttl * 1.4)}
    return Fault(
        chance.expovariate(1 / gap),
        SERVER if is_server else f"worker-{chance.randrange(workers)}",
        action,
        chance.uniform(*spans.get(action, spans["stop"])),
    )
