"""From a large value to its reference: the bytes to store, and the parts to keep at hand."""

from collections.abc import Mapping, Sequence
from operator import is_not
from typing import Any, NamedTuple

from noetl.kernel.result_rules import INLINE_MAX_BYTES, ResultRules
from noetl.kernel.server_reads import NOTHING, Need
from noetl.kernel.state.execution_state import Blob, blob_of
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


MOST_CHUNKS = 700
"""Of one list, roughly: what stands for it names each of them."""


class Member(NamedTuple):
    """A value of a mapping or list, under its key or at its position."""

    key: str | int
    value: Any
    need: Need


class ReferenceBuilder:
    """Makes references to the values of one body. `blobs` is what they stand for."""

    room = INLINE_MAX_BYTES
    """Bytes that the parts at hand of one reference may take."""

    def __init__(self, execution_id: str, everything: Need) -> None:
        self.execution_id = execution_id
        self.everything = everything
        self.blobs: dict[str, Blob] = {}
        # By identity: a result often stands in a body twice or thrice, as outcome, patch and `_prev`. It is
        # encoded and stored once, and not compared with others, which could be as large.
        self._built: dict[tuple[int, int, int], tuple[Any, Any]] = {}

    def externalize_value(self, value: Any, rules: ResultRules, need: Need = NOTHING) -> Any:
        """The value itself if it is small, else what stands for it."""
        if not isinstance(value, str | dict | list):
            return value
        if type(value) is dict and MARKER in value:
            return self.shorten_tail(value, rules) if "tail" in value else value
        identity = (id(value), id(need), id(rules.select))
        if (built := self._built.get(identity)) is not None:
            return built[1]
        data = encode_value(value)
        inline = value
        if len(data) > max(rules.limit, SMALLEST):
            inline = self.build_reference(value, data, rules, need)
        self._built[identity] = (value, inline)  # the value is kept so that its id stays its own
        return inline

    def externalize_entries(
        self, values: dict[str, Any], rules: ResultRules, need: Need = NOTHING
    ) -> dict[str, Any]:
        """A mapping whose values are kept each for itself."""
        members = [Member(key, value, need.at((key,))) for key, value in values.items()]
        inline = self.externalize_members(members, rules)
        return dict(zip(values, inline, strict=True)) if inline is not None else values

    def externalize_arguments(self, values: dict[str, Any], rules: ResultRules) -> dict[str, Any]:
        """The same for a mapping that nobody looks into without fetching what is stored of it."""
        return self.externalize_entries(values, rules)

    def externalize_members(self, members: Sequence["Member"], rules: ResultRules) -> list[Any] | None:
        """The values of a mapping or list, kept each for itself; None if all of them stay as they are."""
        inline = [self.externalize_value(value, rules, need) for _, value, need in members]
        return inline if any(map(is_not, inline, (member.value for member in members))) else None

    def store_bytes(self, data: bytes, rules: ResultRules) -> str:
        """The key of these bytes."""
        blob = blob_of(self.execution_id, data, rules)
        self.blobs[blob.key] = blob
        return blob.key

    def store_chunk(self, values: Sequence[Any], start: int, rules: ResultRules) -> dict[str, Any]:
        """The elements of a list from `start` on, stored as one."""
        data = encode_value(list(values))
        return list_chunk(self.store_bytes(data, rules), start, start + len(values), len(data))

    def externalize_list(self, values: list[Any], rules: ResultRules) -> Any:
        """A list in chunks that are no larger than the limit, but for one large element alone.

        Where they would be more than `MOST_CHUNKS`, they are larger.
        """
        pieces = [encode_value(value) for value in values]
        limit = max(rules.limit, SMALLEST)
        size = sum(map(len, pieces)) + len(pieces) + 1
        if size <= limit:
            return values
        limit = max(limit, size // MOST_CHUNKS)
        chunks: list[dict[str, Any]] = []
        start = size = 0
        for position, piece in enumerate(pieces):
            if position > start and size + len(piece) > limit:
                chunks.append(self._store_joined(pieces, start, position, rules))
                start, size = position, 0
            size += len(piece) + 1
        chunks.append(self._store_joined(pieces, start, len(pieces), rules))
        reference = manifest(chunks, value_preview(b"[" + b",".join(pieces[:100]), rules.preview))
        return {**reference, **rules.reference_fields}

    def shorten_tail(self, reference: dict[str, Any], rules: ResultRules) -> dict[str, Any]:
        """A manifest whose tail, if it has grown long, is one more chunk."""
        tail = reference["tail"]
        if len(encode_value(tail)) <= max(rules.limit, SMALLEST):
            return reference
        chunks = reference["chunks"]
        last = self.store_chunk(tail, chunks[-1]["to"] if chunks else 0, rules)
        return {**manifest([*chunks, last], reference["preview"]), **rules.reference_fields}

    def _store_joined(self, pieces: list[bytes], start: int, end: int, rules: ResultRules) -> dict[str, Any]:
        data = b"[" + b",".join(pieces[start:end]) + b"]"
        return list_chunk(self.store_bytes(data, rules), start, end, len(data))

    def build_reference(self, value: Any, data: bytes, rules: ResultRules, need: Need) -> dict[str, Any]:
        """What stands for the value, whose bytes are `data`."""
        key = self.store_bytes(data, rules)
        room = Room(self.room)
        selected = self._fit_selected(rules.selected(value), rules, room)
        extracted, absent = self.extract_parts(value, key, (), need, room)
        reference = value_reference(
            key,
            value,
            size=len(data),
            preview=value_preview(data, rules.preview),
            extracted={**extracted, **selected},
            absent=absent,
            holds_secrets=SECRET_MARKER_BYTES in data,
        )
        if names := [name for name in selected if name not in extracted]:
            reference["selected"] = names
        return {**reference, **rules.reference_fields}

    def externalize_selected(self, values: Mapping[str, Any], rules: ResultRules) -> dict[str, Any]:
        """What `spec.result.select` found; what there is no room for is stored by itself."""
        return self._fit_selected(values, rules, Room(self.room))

    def _fit_selected(self, values: Mapping[str, Any], rules: ResultRules, room: "Room") -> dict[str, Any]:
        selected: dict[str, Any] = {}
        apart = rules._replace(select=(), preview=0)  # of a part nothing more is selected or shown
        for name, value in values.items():
            data = encode_value(value)
            fits = is_reference(value) or room.take(len(data))
            selected[name] = value if fits else self.build_reference(value, data, apart, NOTHING)
        return selected

    def extract_parts(
        self, value: Any, key: str, path: tuple[str, ...], need: Need, room: "Room"
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
            part = self._part(value[name], key, (*path, name), below, room)
            if part is not _NO_ROOM:
                extracted[name] = part
        return extracted, absent

    def _below(self, need: Need) -> list[tuple[str, Need]]:
        below = dict(need.below)
        if need.entire:
            # What is handed on is read under other names, too.
            for name, wanted in self.everything.below.items():
                below[name] = below[name].union(wanted) if name in below else wanted
        return list(below.items())

    def _part(self, value: Any, key: str, path: tuple[str, ...], need: Need, room: "Room") -> Any:
        if is_reference(value):
            return value
        size = len(encode_value(value))
        small = not isinstance(value, str | dict | list) or size <= SMALLEST
        if (need.entire or size <= AT_HAND or small) and room.take(size + len(path[-1])):
            return value
        if small or not room.take(PART_COST):
            return _NO_ROOM
        extracted, absent = self.extract_parts(value, key, path, need, room)
        return part_reference(key, path, value, extracted=extracted, absent=absent)


_NO_ROOM = object()


class Room:
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
