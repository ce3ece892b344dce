"""How the body of a result is stored: as it is, packed, or no more than a note that it has expired.

What is not there as it is begins with a mark and one letter that says what follows.
"""

import gzip
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple, TypeAlias

import msgspec

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

Compression: TypeAlias = Literal["none", "gzip", "zstd"]

MARK = b"\x93NOETL\x01"
HEADER_BYTES = len(MARK) + 1
_EXPIRED = b"x"
_CHUNK_BYTES = 1 << 20
LEVEL = 1
"""Of both: higher ones take several times as long and save a tenth."""


class DamagedBody(Exception):
    """What lies there cannot be unpacked."""


class ExpiryNote(msgspec.Struct, frozen=True):
    """What is left of a body that has expired."""

    since: str
    size: int


class _Uncompressed:
    """A file as a context that leaves it open."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def __enter__(self) -> IO[bytes]:
        return self._file

    def __exit__(self, *_: object) -> None: ...


class _Codec(NamedTuple):
    """One way to pack: the letter that marks it, for bytes in memory, and for files to write and to read."""

    letter: bytes
    compress: Callable[[bytes], bytes]
    decompress: Callable[[bytes], bytes]
    open_writer: Callable[[IO[bytes]], Any]
    open_reader: Callable[[IO[bytes]], Any]


_NONE = _Codec(b"n", bytes, bytes, _Uncompressed, _Uncompressed)
_CODECS: dict[str, _Codec] = {
    "none": _NONE,
    "gzip": _Codec(
        b"g",
        lambda data: gzip.compress(data, LEVEL, mtime=0),  # without a time: the same bytes for the same body
        gzip.decompress,
        lambda file: gzip.GzipFile(fileobj=file, mode="wb", compresslevel=LEVEL, mtime=0),
        lambda file: gzip.GzipFile(fileobj=file, mode="rb"),
    ),
    "zstd": _Codec(
        b"z",
        lambda data: zstd.compress(data, LEVEL),
        lambda data: bytes(zstd.decompress(data)),
        lambda file: zstd.ZstdFile(file, "wb", level=LEVEL),
        lambda file: zstd.ZstdFile(file, "rb"),
    ),
}
_CODEC_BY_LETTER = {codec.letter: codec for codec in _CODECS.values()}


def pack_body(data: bytes, compression: str) -> bytes:
    """The bytes as they are kept. What does not get smaller stays as it is."""
    codec = _CODECS.get(compression, _NONE)
    compressed = codec.compress(data)
    if len(compressed) + HEADER_BYTES < len(data):
        return MARK + codec.letter + compressed
    # A body of the user's that begins with our mark would be taken for a packed one.
    return MARK + _NONE.letter + data if data.startswith(MARK) else data


def is_plain_body(head: bytes) -> bool:
    """Whether a body that begins so is there as it is."""
    return not head.startswith(MARK)


def expiry_note_in(data: bytes) -> ExpiryNote | None:
    """The note that these bytes are, if it is one."""
    if data[:HEADER_BYTES] != MARK + _EXPIRED:
        return None
    try:
        return msgspec.json.decode(data[HEADER_BYTES:], type=ExpiryNote)
    except msgspec.MsgspecError:
        raise DamagedBody from None


def encode_expiry_note(note: ExpiryNote) -> bytes:
    return MARK + _EXPIRED + msgspec.json.encode(note)


def unpack_body(data: bytes) -> bytes:
    """Raises DamagedBody."""
    if is_plain_body(data):
        return data
    codec = _CODEC_BY_LETTER.get(data[HEADER_BYTES - 1 : HEADER_BYTES])
    if codec is None:
        raise DamagedBody
    try:
        return codec.decompress(data[HEADER_BYTES:])
    except (OSError, EOFError, zstd.ZstdError):
        raise DamagedBody from None


def pack_body_file(source: Path, to: Path, compression: str) -> None:
    """As `pack_body`, for files of any size."""
    with source.open("rb") as read, to.open("xb") as write:
        codec = _CODECS[compression]
        write.write(MARK + codec.letter)
        with codec.open_writer(write) as out:
            shutil.copyfileobj(read, out, _CHUNK_BYTES)


def unpack_body_file(source: Path, to: Path) -> None:
    """As `unpack_body`. Raises DamagedBody."""
    with source.open("rb") as read, to.open("wb") as write:
        head = read.read(HEADER_BYTES)
        if is_plain_body(head):
            read.seek(0)
        codec = _NONE if is_plain_body(head) else _CODEC_BY_LETTER.get(head[HEADER_BYTES - 1 :])
        if codec is None:
            raise DamagedBody
        try:
            with codec.open_reader(read) as stream:
                shutil.copyfileobj(stream, write, _CHUNK_BYTES)
        except (OSError, EOFError, zstd.ZstdError):
            raise DamagedBody from None
