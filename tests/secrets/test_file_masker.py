"""Secrets in files that tools keep: in text, in other bytes, and in what is packed."""

import bz2
import gzip
import io
import json
import lzma
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyarrow import ipc, parquet

from noetl.credentials import file_masker
from noetl.credentials.file_masker import CHUNK, holds_secret, is_textual, mask_file
from noetl.credentials.masker import Masker
from noetl.model.secret import SecretOrigin
from tests.secrets.secret_search import SECRET


def masker_of(secret: str) -> Masker:
    masker = Masker()
    masker.add(secret, SecretOrigin("secret", ("value",)))
    return masker


def test_a_file_of_text_is_masked_across_the_places_where_it_is_cut(tmp_path: Path) -> None:
    masker = masker_of(SECRET)
    line = "x" * 100 + SECRET + "\n"
    path = tmp_path / "text"
    path.write_text(line * (2 * CHUNK // len(line)) + "end", "utf-8")
    assert holds_secret(path, masker)
    mask_file(path, masker)
    assert not holds_secret(path, masker)
    lines = path.read_text("utf-8").splitlines()
    assert set(lines[:-1]) == {"x" * 100 + "***"}
    assert lines[-1] == "end"
    assert list(tmp_path.iterdir()) == [path]


def test_a_character_that_lies_across_two_reads_is_whole(tmp_path: Path) -> None:
    masker = masker_of("geheimes Wört")
    path = tmp_path / "text"
    path.write_bytes(b"x" * (CHUNK - len("geheimes W") - 1) + "geheimes Wört\n".encode())
    assert holds_secret(path, masker)
    mask_file(path, masker)
    assert path.read_bytes().endswith(b"x***\n")


def test_a_secret_beyond_the_basic_plane_is_found_across_two_reads_however_it_is_escaped(
    tmp_path: Path,
) -> None:
    secret = "\N{GRINNING FACE}" * 10
    masker = masker_of(secret)
    escaped = json.dumps(secret).encode()
    path = tmp_path / "text"
    for before_cut in (59, 62, 67, 72, 75):
        path.write_bytes(b"x" * (CHUNK - before_cut) + escaped + b"\n")
        assert holds_secret(path, masker), before_cut


def as_zip(data: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("other", b"nothing" * 100)
        archive.writestr("it", data)
    return file.getvalue()


def table(data: bytes) -> Any:
    return pyarrow.table({"a": ["nothing", data.decode(), "zzz"], "b": [1, 2, 3]})


def as_parquet(data: bytes) -> bytes:
    file = io.BytesIO()
    parquet.write_table(table(data), file, compression="zstd", write_statistics=False, use_dictionary=["a"])
    return file.getvalue()


def as_arrow(data: bytes) -> bytes:
    file = io.BytesIO()
    coded = table(data).set_column(0, "a", table(data)["a"].dictionary_encode())
    with ipc.new_file(file, coded.schema, options=ipc.IpcWriteOptions(compression="zstd")) as out:
        out.write_table(coded)
    return file.getvalue()


PACKED = [gzip.compress, bz2.compress, lzma.compress, zlib.compress, as_zip, as_parquet, as_arrow]


@pytest.mark.parametrize("pack", PACKED)
def test_what_is_packed_is_looked_through(pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    masker = masker_of("a secret, a secret")
    path = tmp_path / "packed"
    path.write_bytes(pack(b"a secret, a secret" * 20))
    assert b"a secret, a secret" not in path.read_bytes()
    assert holds_secret(path, masker)
    for size in (0, 3, len(path.read_bytes()) - 5):
        with path.open("r+b") as file:
            file.truncate(size)
        holds_secret(path, masker)  # whatever it says, it says something
    path.write_bytes(pack(b"nothing of the kind" * 20))
    assert not holds_secret(path, masker)


def test_what_unpacks_to_very_much_is_looked_at_in_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_masker, "MAX_UNPACKED_BYTES", 1_000)
    path = tmp_path / "packed"
    for much, expected in ((500, True), (3 * CHUNK, False)):
        path.write_bytes(gzip.compress(b" " * much + b"a secret, a secret"))
        assert holds_secret(path, masker_of("a secret, a secret")) is expected


def test_a_file_without_lines_is_masked_too(tmp_path: Path) -> None:
    masker = masker_of("secret-in-one-line")
    path = tmp_path / "line"
    path.write_text(("y" * (CHUNK - 9) + "secret-in-one-line") * 6, "utf-8")
    assert holds_secret(path, masker)
    mask_file(path, masker)
    assert path.read_text("utf-8") == ("y" * (CHUNK - 9) + "***") * 6


def test_bytes_that_are_no_text_are_looked_through(tmp_path: Path) -> None:
    path = tmp_path / "binary"
    path.write_bytes(bytes(range(256)) * (CHUNK // 256) + b"\xff" + SECRET.encode() + b"\xfe")
    assert holds_secret(path, masker_of(SECRET))
    assert not holds_secret(path, masker_of("another secret"))


@pytest.mark.parametrize(
    ("media_type", "text"),
    [
        ("text/csv; charset=utf-8", True),
        ("application/json", True),
        ("application/problem+json", True),
        ("application/vnd.apache.arrow.stream", False),
        ("application/octet-stream", False),
    ],
)
def test_which_files_are_text(media_type: str, text: bool) -> None:
    assert is_textual(media_type) == text
