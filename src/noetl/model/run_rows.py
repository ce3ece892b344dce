"""What a store keeps of an open run beside its events, so that it can be given away without folding."""

from typing import Final

from msgspec import Struct

DEFAULT_POOL: Final = "default"
"""Where runs go whose playbook names no pool."""
SERVER_POOL: Final = "$server"
"""That of the server's own worker, which no other may serve."""


class ReadyRun(Struct, frozen=True, gc=False):
    """A run or shard that a worker may claim: one of this pool that has tools of all these kinds."""

    pool: str = DEFAULT_POOL
    kinds: tuple[str, ...] = ()
    """In alphabetical order."""
    priority: int = 0


class LeasedRun(Struct, frozen=True, gc=False):
    """A run or shard that a worker process owns; `session` is empty where a server has not given it away."""

    session: str
    fence: int
