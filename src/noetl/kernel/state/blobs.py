"""What must be stored beside the log, before the events that name it."""

import hashlib
from typing import NamedTuple

from noetl.kernel.result_rules import ResultRules


class Blob(NamedTuple):
    """Bytes to store under a key that ends with their SHA-256, packed as `compression` says."""

    key: str
    data: bytes
    compression: str = "none"


def blob_of(execution_id: str, data: bytes, rules: ResultRules) -> Blob:
    key = f"{execution_id}/{hashlib.sha256(data).hexdigest()}"
    return Blob(f"{rules.store}:{key}" if rules.store else key, data, rules.compression)


class PendingBlobs:
    """What goes with a state and is no part of it: blobs to store, and sizes that save work.

    `blobs` are for the owner of the state to take away and store before the events are committed.
    `loop_bytes` is how many bytes of results each loop holds; where a loop is missing they are counted anew.
    """

    __slots__ = ("blobs", "loop_bytes")

    def __init__(self) -> None:
        self.blobs: list[Blob] = []
        self.loop_bytes: dict[str, int] = {}

    # States are equal whatever waits to be stored: a replay has nothing to store.
    def __eq__(self, other: object) -> bool:
        return isinstance(other, PendingBlobs)

    __hash__ = None  # type: ignore[assignment]  # it changes
