"""Secrets in files that tools have written: in their bytes, and in what is packed in them."""

import bz2
import codecs
import gzip
import lzma
import os
import zipfile
import zlib
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import IO, Any

from noetl.credentials.masker import Masker

_TEXT_MEDIA_TYPES = frozenset(
    {
        "application/csv",
        "application/javascript",
        "application/json",
        "application/jsonl",
        "application/sql",
        "application/x-ndjson",
        "application/x-www-form-urlencoded",
        "application/x-yaml",
        "application/xml",
        "application/yaml",
    }
)

CHUNK = 1 << 20
"""Bytes that are read at a time."""
MAX_UNPACKED_BYTES = 256 << 20
"""Bytes of a packed stream that are looked at: a few may unpack to more than anybody can wait for."""

_BROKEN_STREAM_ERRORS = (
    OSError,
    EOFError,
    ValueError,
    RuntimeError,
    lzma.LZMAError,
    zlib.error,
    zipfile.BadZipFile,
)
"""What is said of a stream that is not what it looks like, is cut off, or needs a password."""
_OPENER_BY_HEADER: dict[bytes, Callable[[Any], Any]] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ": lzma.open,
}
"""By how the file begins."""
_ZLIB_HEADERS = (b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda")


def is_textual(media_type: str) -> bool:
    """Whether files of this type are text, in which something can be replaced."""
    plain = media_type.partition(";")[0].strip().lower()
    return plain.startswith("text/") or plain in _TEXT_MEDIA_TYPES or plain.endswith(("+json", "+xml"))


def holds_secret(path: Path, masker: Masker) -> bool:
    """Whether a secret is in the file, whatever it is, or in what is packed there."""
    with path.open("rb") as file:
        return any(_stream_holds_secret(stream, masker) for stream in _archive_streams(file))


def _stream_holds_secret(stream: Iterator[bytes], masker: Masker) -> bool:
    tail = ""
    decode = codecs.getincrementaldecoder("utf-8")("surrogateescape").decode
    for data in stream:
        text = tail + decode(data)
        if masker.contains_secret(text):
            return True
        # Enough of the end for a secret that lies across two reads; `[-0:]` would be all of it.
        tail = text[-masker.reach :] if masker.reach else ""
    return masker.contains_secret(tail + decode(b"", final=True))


def mask_file(path: Path, masker: Masker) -> None:
    """Writes the file again with `***` in place of secrets."""
    masked = path.with_name(f"{path.name}-masked")
    try:
        with path.open("rb") as file, masked.open("xb") as out:
            tail = ""
            decode = codecs.getincrementaldecoder("utf-8")("surrogateescape").decode
            while data := file.read(CHUNK):
                text = tail + decode(data)
                # What is written must not end inside a secret: so it ends behind a line, or, where there is
                # none, further from the end than a secret reaches.
                end = text.rfind("\n") + 1 or (len(text) - masker.reach if len(text) > 4 * CHUNK else 0)
                out.write(masker.mask_text(text[:end]).encode("utf-8", "surrogateescape"))
                tail = text[end:]
            out.write(masker.mask_text(tail + decode(b"", final=True)).encode("utf-8", "surrogateescape"))
        os.replace(masked, path)
    finally:
        masked.unlink(missing_ok=True)


def _archive_streams(file: IO[bytes]) -> Iterator[Iterator[bytes]]:
    """The file as it is, and each stream that is packed in it; what is packed twice is unpacked once."""
    start = file.read(6)
    for stream in chain([_read_chunks(file)], _packed_streams(file, start)):
        file.seek(0)
        yield stream


def _packed_streams(file: IO[bytes], start: bytes) -> Iterator[Iterator[bytes]]:
    opener = next((_OPENER_BY_HEADER[sign] for sign in _OPENER_BY_HEADER if start.startswith(sign)), None)
    if opener is not None:
        yield _limit_bytes(_decompress(opener(file)))
    elif start.startswith(_ZLIB_HEADERS):
        yield _limit_bytes(_inflate(file))
    elif start.startswith(b"PK"):
        yield from _zip_members(file)
    elif start.startswith(b"PAR1"):
        yield _limit_bytes(_parquet_buffers(file))
    elif start.startswith(b"ARROW1"):
        yield _limit_bytes(_arrow_buffers(file))


def _read_chunks(file: Any) -> Iterator[bytes]:
    while data := file.read(CHUNK):
        yield data


def _decompress(file: Any) -> Iterator[bytes]:
    with file:
        yield from _read_chunks(file)


def _limit_bytes(stream: Iterator[bytes]) -> Iterator[bytes]:
    remaining = MAX_UNPACKED_BYTES
    try:
        for data in stream:
            yield data
            remaining -= len(data)
            if remaining <= 0:
                return
    except _BROKEN_STREAM_ERRORS:
        return


def _inflate(file: IO[bytes]) -> Iterator[bytes]:
    unpacker = zlib.decompressobj()
    data = b""
    while not unpacker.eof and (data := unpacker.unconsumed_tail or file.read(CHUNK)):
        yield unpacker.decompress(data, CHUNK)


def _zip_members(file: IO[bytes]) -> Iterator[Iterator[bytes]]:
    try:
        with zipfile.ZipFile(file) as archive:
            for member in archive.infolist():
                with archive.open(member) as inside:
                    yield _limit_bytes(_read_chunks(inside))
    except _BROKEN_STREAM_ERRORS:
        return


def _parquet_buffers(file: IO[bytes]) -> Iterator[bytes]:
    try:
        from pyarrow import parquet  # noqa: PLC0415 - an extra, and large
    except ModuleNotFoundError:
        return
    for batch in parquet.ParquetFile(file).iter_batches():
        yield from _buffers(batch.columns)


def _arrow_buffers(file: IO[bytes]) -> Iterator[bytes]:
    try:
        from pyarrow import ipc  # noqa: PLC0415 - an extra, and large
    except ModuleNotFoundError:
        return
    batches = ipc.open_file(file)
    for number in range(batches.num_record_batches):
        yield from _buffers(batches.get_batch(number).columns)


def _buffers(columns: list[Any]) -> Iterator[bytes]:
    for column in columns:
        if hasattr(column, "dictionary"):
            yield from _buffers([column.dictionary])
        for buffer in column.buffers():
            if buffer is not None:
                yield buffer.to_pybytes()
