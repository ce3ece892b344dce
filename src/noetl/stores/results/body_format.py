"""How a body lies in its place: as it is, packed, or no more than a note that it has expired.

What is not there as it is begins with a mark and one letter that says what follows.
"""

import gzip
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, Literal, TypeAlias

import msgspec

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

Compression: TypeAlias = Literal["none", "gzip", "zstd"]

MARK = b"\x93NOETL\x01"
HEAD = len(MARK) + 1
_NONE, _GZIP, _ZSTD, _EXPIRED = b"n", b"g", b"z", b"x"
_LETTERS = {"none": _NONE, "gzip": _GZIP, "zstd": _ZSTD}
_PIECE = 1 << 20
LEVEL = 1
"""Of both: higher ones take several times as long and save a tenth."""


class DamagedBody(Exception):
    """What lies there cannot be unpacked."""


class ExpiryNote(msgspec.Struct, frozen=True):
    """What is left of a body that has expired."""

    since: str
    size: int


def pack_body(data: bytes, compression: str) -> bytes:
    """The bytes as they are kept. What does not get smaller stays as it is."""
    match compression:
        case "gzip":
            small = gzip.compress(data, LEVEL, mtime=0)
        case "zstd":
            small = zstd.compress(data, LEVEL)
        case _:
            small = data
    if len(small) + HEAD < len(data):
        return MARK + _LETTERS[compression] + small
    return MARK + _NONE + data if data.startswith(MARK) else data


def is_plain_body(head: bytes) -> bool:
    """Whether a body that begins so is there as it is."""
    return not head.startswith(MARK)


def expiry_note_in(data: bytes) -> ExpiryNote | None:
    """The note that these bytes are, if it is one."""
    if data[:HEAD] != MARK + _EXPIRED:
        return None
    try:
        return msgspec.json.decode(data[HEAD:], type=ExpiryNote)
    except msgspec.MsgspecError:
        raise DamagedBody from None


def encode_expiry_note(note: ExpiryNote) -> bytes:
    return MARK + _EXPIRED + msgspec.json.encode(note)


def unpack_body(data: bytes) -> bytes:
    """Raises Damaged."""
    if is_plain_body(data):
        return data
    try:
        match data[HEAD - 1 : HEAD]:
            case b"n":
                return data[HEAD:]
            case b"g":
                return gzip.decompress(data[HEAD:])
            case b"z":
                return bytes(zstd.decompress(data[HEAD:]))
    except (OSError, EOFError, zstd.ZstdError):
        pass
    raise DamagedBody


def pack_body_file(source: Path, to: Path, compression: str) -> None:
    """As `packed`, for files of any size."""
    with source.open("rb") as read, to.open("xb") as write:
        write.write(MARK + _LETTERS[compression])
        with _packing(write, compression) as out:
            shutil.copyfileobj(read, out, _PIECE)


def unpack_body_file(source: Path, to: Path) -> None:
    """As `unpacked`. Raises Damaged."""
    with source.open("rb") as read, to.open("wb") as write:
        head = read.read(HEAD)
        if is_plain_body(head):
            read.seek(0)
        opened = _UNPACKING.get(head[-1:] if not is_plain_body(head) else _NONE)
        if opened is None:
            raise DamagedBody
        try:
            with opened(read) as stream:
                shutil.copyfileobj(stream, write, _PIECE)
        except (OSError, EOFError, zstd.ZstdError):
            raise DamagedBody from None


def _packing(file: IO[bytes], compression: str) -> Any:
    match compression:
        case "gzip":
            return gzip.GzipFile(fileobj=file, mode="wb", compresslevel=LEVEL, mtime=0)
        case "zstd":
            return zstd.ZstdFile(file, "wb", level=LEVEL)
        case _:
            return _Same(file)


class _Same:
    """A file as a context that leaves it open."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def __enter__(self) -> IO[bytes]:
        return self._file

    def __exit__(self, *_: object) -> None: ...


_UNPACKING: dict[bytes, Callable[[IO[bytes]], Any]] = {
    _NONE: _Same,
    _GZIP: lambda file: gzip.GzipFile(fileobj=file, mode="rb"),
    _ZSTD: lambda file: zstd.ZstdFile(file, "rb"),
}
