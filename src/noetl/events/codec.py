"""Bodies as bytes: JSON, with the number of the kind and the format version stored beside it.

Values survive exactly if they are JSON values. What is not one (NaN, bytes, a date) is for the border
where it came in to refuse: here the encoder would turn it into something else.
"""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final, TypeAlias

import msgspec

from noetl.events.bodies import EventBody
from noetl.events.errors import EventUnreadable, EventUnwritable
from noetl.events.event_kind import kind_numbered, kind_of_body

FORMAT: Final = 1
"""The version that is written. It grows when older bodies no longer read as they should, or when older
releases would misread new ones; an optional field that may be missing needs no new version."""

Upcaster: TypeAlias = Callable[[dict[str, Any]], dict[str, Any]]
"""From a body of one version, as plain values, to the same body of the next version."""

Upcasters: TypeAlias = Mapping[tuple[int, int], Upcaster]
"""By kind number and the version that is left behind."""

UPCASTERS: Upcasters = {}

_ENCODER = msgspec.json.Encoder()


class Codec:
    """Writes one version and reads it and all before it."""

    def __init__(self, version: int, upcasters: Upcasters) -> None:
        for number, old in upcasters:
            kind_numbered(number)
            if not 1 <= old < version:
                raise ValueError(f"an upcaster from version {old} in a codec of version {version}")
        self._version = version
        self._upcasters = upcasters

    def encode(self, body: EventBody) -> bytes:
        """`EventUnwritable` if a value has no JSON form."""
        try:
            return _ENCODER.encode(body)
        except (TypeError, ValueError, OverflowError, RecursionError) as fault:
            raise EventUnwritable(f"{kind_of_body(body).name} cannot be written: {fault}") from fault

    def decode(self, number: int, data: bytes, version: int) -> EventBody:
        """`EventUnreadable` if the number is unknown, the version newer than ours, or the bytes damaged."""
        decoder = _decoder(number)
        try:
            if version == self._version:
                return decoder.decode(data)
            return self._decode_old(number, data, version)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as fault:
            raise EventUnreadable(f"{kind_numbered(number).name} cannot be read: {fault}") from fault

    def _decode_old(self, number: int, data: bytes, version: int) -> EventBody:
        if not 1 <= version < self._version:
            raise EventUnreadable(
                f"{kind_numbered(number).name} has format version {version}, "
                f"and this release of noetl reads 1 to {self._version}"
            )
        fields = msgspec.json.decode(data, type=dict[str, Any])
        for old in range(version, self._version):
            if upcaster := self._upcasters.get((number, old)):
                fields = upcaster(fields)
        return msgspec.convert(fields, kind_numbered(number).body)


@cache  # building a decoder takes ten times as long as decoding a small body
def _decoder(number: int) -> msgspec.json.Decoder[EventBody]:
    return msgspec.json.Decoder(kind_numbered(number).body)


_CODEC = Codec(FORMAT, UPCASTERS)
encode = _CODEC.encode
decode = _CODEC.decode
