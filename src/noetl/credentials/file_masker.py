"""Secrets in files that tools have written."""

import codecs
import os
from collections.abc import Iterator
from pathlib import Path

from noetl.credentials.archive_text import CHUNK, archive_streams
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


def is_textual(media_type: str) -> bool:
    """Whether files of this type are text, in which something can be replaced."""
    plain = media_type.partition(";")[0].strip().lower()
    return plain.startswith("text/") or plain in _TEXT_MEDIA_TYPES or plain.endswith(("+json", "+xml"))


def holds_secret(path: Path, masker: Masker) -> bool:
    """Whether a secret is in the file, whatever it is, or in what is packed there."""
    with path.open("rb") as file:
        return any(_stream_holds_secret(stream, masker) for stream in archive_streams(file))


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
