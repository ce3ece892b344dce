"""What shows that stored bytes are still those that were written.

CRC-32 of the standard library: it takes 0.3 µs for an event of 200 bytes, writing that takes 10 µs and more.
docs/adr/0018 has what else was measured.
"""

from collections.abc import Iterable, Iterator
from struct import Struct
from typing import NamedTuple
from zlib import crc32

from noetl.ports.store import Row


class StoredRow(NamedTuple):
    """A row as it was read. `checksum` is that of the append that it ends.

    It is None of other rows, and of those that a release wrote which knew no checksums.
    """

    row: Row
    enc: int
    checksum: int | None


pack_numbers = Struct("<6q").pack
"""Of one event seq, ts, kind, version, `enc` and the length of its body, as the checksum has them."""


def checksum_of_append(numbers: Iterable[bytes], bodies: Iterable[bytes]) -> int:
    """`numbers` are those of each of its events, packed."""
    # All at once: what takes time is not the checksum, but the calls for each event.
    return crc32(b"".join(bodies), crc32(b"".join(numbers)))


def checksum_of_snapshot(seq: int, state_format: int, body: bytes) -> int:
    return crc32(body, crc32(b"%d %d " % (seq, state_format)))


def checksum_of_document(playbook_hash: str, document: bytes) -> int:
    return crc32(document, crc32(playbook_hash.encode()))


def row_faults(rows: Iterable[StoredRow], after: int = 0, *, checked: bool = False) -> Iterator[str]:
    """What is wrong with rows of one execution, in words. They follow row `after`, which ends an append.

    `checked` says whether that append has a checksum. None comes after it that has not: only those of older
    releases lack it.
    """
    numbers: list[bytes] = []
    bodies: list[bytes] = []
    first, previous = after + 1, after
    for row, enc, checksum in rows:
        if row.seq != previous + 1:
            yield f"event {previous + 1} is missing"
        numbers.append(pack_numbers(row.seq, row.ts, row.kind, row.version, enc, len(row.body)))
        bodies.append(row.body)
        previous = row.seq
        if row.last:
            if checksum is not None and checksum != checksum_of_append(numbers, bodies):
                yield f"{_events(first, previous)} not what was written: the checksum differs"
            elif checked and checksum is None:
                yield f"{_events(first, previous)} without a checksum, which was there"
            checked = checksum is not None
            first = previous + 1
            numbers.clear()
            bodies.clear()
    if bodies:
        yield f"{_events(first, previous)} of an append that has no end"


def _events(first: int, last: int) -> str:
    return f"event {first} is" if first == last else f"events {first} to {last} are"
