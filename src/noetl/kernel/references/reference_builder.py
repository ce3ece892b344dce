"""From a large value to its reference: the bytes to store, and the parts to keep at hand."""

from collections.abc import Mapping, Sequence
from typing import Any

from noetl.kernel.result_rules import INLINE_MAX_BYTES, ResultRules
from noetl.kernel.server_reads import NOTHING, Need
from noetl.kernel.state.blobs import Blob, blob_of
from noetl.model.reference import (
    MARKER,
    SECRET_MARKER_BYTES,
    encode_value,
    is_reference,
    list_chunk,
    manifest,
    part_reference,
    value_reference,
)

SMALLEST = 16
"""Values of fewer bytes stay, whatever the limit: a reference would only be larger."""
AT_HAND = 1_024
"""Parts of fewer bytes are extracted whole, though only something inside them is read."""
PART_COST = 256
"""Bytes that a part costs that is itself a reference."""


class ReferenceBuilder:
    """Makes references to the values of one body. `blobs` is what they stand for."""

    def __init__(self, execution_id: str, everything: Need) -> None:
        self.execution_id = execution_id
        self.everything = everything
        self.blobs: dict[str, Blob] = {}
        self._known: dict[tuple[int, int, int], tuple[Any, Any]] = {}

    def value(self, value: Any, rules: ResultRules, need: Need = NOTHING) -> Any:
        """The value itself if it is small, else what stands for it."""
        if not isinstance(value, str | dict | list):
            return value
        if type(value) is dict and MARKER in value:
            return self._shortened(value, rules) if "tail" in value else value
        place = (id(value), id(need), id(rules.select))
        if (known := self._known.get(place)) is not None:
            return known[1]
        data = encode_value(value)
        found = value
        if len(data) > max(rules.limit, SMALLEST):
            found = self._reference(value, data, rules, need)
        self._known[place] = (value, found)  # the value is kept so that its id stays its own
        return found

    def entries(self, values: dict[str, Any], rules: ResultRules, need: Need = NOTHING) -> dict[str, Any]:
        """A mapping whose values are kept each for itself."""
        found = {key: self.value(value, rules, need.at((key,))) for key, value in values.items()}
        return found if any(found[key] is not values[key] for key in values) else values

    def store(self, data: bytes, rules: ResultRules) -> str:
        """The key of these bytes."""
        blob = blob_of(self.execution_id, data, rules)
        self.blobs[blob.key] = blob
        return blob.key

    def chunk(self, values: Sequence[Any], start: int, rules: ResultRules) -> dict[str, Any]:
        """The elements of a list from `start` on, stored as one."""
        data = encode_value(list(values))
        return list_chunk(self.store(data, rules), start, start + len(values), len(data))

    def chunked(self, values: list[Any], rules: ResultRules) -> Any:
        """A list in chunks that are no larger than the limit, but for one large element alone."""
        pieces = [encode_value(value) for value in values]
        limit = max(rules.limit, SMALLEST)
        if sum(map(len, pieces)) + len(pieces) + 1 <= limit:
            return values
        chunks: list[dict[str, Any]] = []
        start = size = 0
        for position, piece in enumerate(pieces):
            if position > start and size + len(piece) > limit:
                chunks.append(self._joined(pieces, start, position, rules))
                start, size = position, 0
            size += len(piece) + 1
        chunks.append(self._joined(pieces, start, len(pieces), rules))
        found = manifest(chunks, value_preview(b"[" + b",".join(pieces[:100]), rules.preview))
        return {**found, **rules.reference_fields}

    def _shortened(self, found: dict[str, Any], rules: ResultRules) -> dict[str, Any]:
        """A manifest whose tail, if it has grown long, is one more chunk."""
        tail = found["tail"]
        if len(encode_value(tail)) <= max(rules.limit, SMALLEST):
            return found
        chunks = found["chunks"]
        last = self.chunk(tail, chunks[-1]["to"] if chunks else 0, rules)
        return {**manifest([*chunks, last], found["preview"]), **rules.reference_fields}

    def _joined(self, pieces: list[bytes], start: int, end: int, rules: ResultRules) -> dict[str, Any]:
        data = b"[" + b",".join(pieces[start:end]) + b"]"
        return list_chunk(self.store(data, rules), start, end, len(data))

    def _reference(self, value: Any, data: bytes, rules: ResultRules, need: Need) -> dict[str, Any]:
        key = self.store(data, rules)
        room = _Room(INLINE_MAX_BYTES)
        selected = self._selected(rules.selected(value), rules, room)
        extracted, absent = self._parts(value, key, (), need, room)
        found = value_reference(
            key,
            value,
            size=len(data),
            preview=value_preview(data, rules.preview),
            extracted={**extracted, **selected},
            absent=absent,
            holds_secrets=SECRET_MARKER_BYTES in data,
        )
        if names := [name for name in selected if name not in extracted]:
            found["selected"] = names
        return {**found, **rules.reference_fields}

    def selected(self, values: Mapping[str, Any], rules: ResultRules) -> dict[str, Any]:
        """What `spec.result.select` found; what there is no room for is stored by itself."""
        return self._selected(values, rules, _Room(INLINE_MAX_BYTES))

    def _selected(self, values: Mapping[str, Any], rules: ResultRules, room: "_Room") -> dict[str, Any]:
        found: dict[str, Any] = {}
        apart = rules._replace(select=(), preview=0)
        for name, value in values.items():
            data = encode_value(value)
            fits = is_reference(value) or room.take(len(data))
            found[name] = value if fits else self._reference(value, data, apart, NOTHING)
        return found

    def _parts(
        self, value: Any, key: str, path: tuple[str, ...], need: Need, room: "_Room"
    ) -> tuple[dict[str, Any], list[str]]:
        """What is read of a mapping, and which of the keys that are read it does not have."""
        extracted: dict[str, Any] = {}
        absent: list[str] = []
        if not isinstance(value, dict):
            return extracted, absent
        for name, below in self._below(need):
            if name not in value:
                absent.append(name)
                continue
            found = self._part(value[name], key, (*path, name), below, room)
            if found is not _NO_ROOM:
                extracted[name] = found
        return extracted, absent

    def _below(self, need: Need) -> list[tuple[str, Need]]:
        below = dict(need.below)
        if need.entire:
            # What is handed on is read under other names, too.
            for name, other in self.everything.below.items():
                below[name] = below[name].joined(other) if name in below else other
        return list(below.items())

    def _part(self, value: Any, key: str, path: tuple[str, ...], need: Need, room: "_Room") -> Any:
        if is_reference(value):
            return value
        size = len(encode_value(value))
        small = not isinstance(value, str | dict | list) or size <= SMALLEST
        if (need.entire or size <= AT_HAND or small) and room.take(size + len(path[-1])):
            return value
        if small or not room.take(PART_COST):
            return _NO_ROOM
        extracted, absent = self._parts(value, key, path, need, room)
        return part_reference(key, path, value, extracted=extracted, absent=absent)


_NO_ROOM = object()


class _Room:
    """The bytes that extracted parts may still take."""

    __slots__ = ("left",)

    def __init__(self, left: int) -> None:
        self.left = left

    def take(self, size: int) -> bool:
        if size > self.left:
            return False
        self.left -= size
        return True


def value_preview(data: bytes, most: int) -> str:
    """A readable beginning of a stored value."""
    text = data[:most].decode(errors="ignore")
    return f"{text}…" if len(data) > most and most else text
