"""What must be stored beside the log, before the events that name it."""

import hashlib
from typing import NamedTuple


class Blob(NamedTuple):
    """Bytes to store under a key that ends with their SHA-256."""

    key: str
    data: bytes


def blob_of(execution_id: str, data: bytes) -> Blob:
    return Blob(f"{execution_id}/{hashlib.sha256(data).hexdigest()}", data)


class Ledger:
    """What goes with a state and is no part of it: blobs to store, and sizes that save work.

    `blobs` are for the owner of the state to take away and store before the events are committed.
    `held` is how many bytes of results each loop holds; where a loop is missing they are counted anew.
    """

    __slots__ = ("blobs", "held")

    def __init__(self) -> None:
        self.blobs: list[Blob] = []
        self.held: dict[str, int] = {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ledger)

    __hash__ = None  # type: ignore[assignment]
