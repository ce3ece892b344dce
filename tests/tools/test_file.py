import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest

from noetl.model.outcome import Outcome
from noetl.model.reference import escape, is_object_reference
from noetl.ports.tool import Call
from noetl.tools.file.tool import FileTool
from noetl.tools.objects.operation import run_operation
from tests.tools.object_calls import ObjectCalls


@pytest.fixture
def calls(tmp_path: Path) -> ObjectCalls:
    return ObjectCalls(FileTool, tmp_path, "file")


def test_what_is_put_can_be_got(calls: ObjectCalls, tmp_path: Path) -> None:
    put = calls.ok(action="put", url="out/report.json", content={"n": 1})
    assert put == {"url": "out/report.json", "name": "report.json", "size": 7}
    assert (tmp_path / "out" / "report.json").read_bytes() == b'{"n":1}'
    got = calls.ok(action="get", url="out/report.json")
    assert is_object_reference(escape(got))
    assert (got["size"], got["name"], got["preview"]) == (7, "report.json", '{"n":1}')
    assert calls.data(got) == b'{"n":1}'
    assert calls.ok(action="get", url=f"file://{tmp_path}/out/report.json", format="json") == {"n": 1}
    assert os.listdir(tmp_path / "out") == ["report.json"]


@pytest.mark.parametrize(
    ("url", "content", "data"),
    [
        ("a.txt", "text", b"text"),
        ("a.csv", [{"a": 1}], b"a\r\n1\r\n"),
        ("a.json", "text", b'"text"'),
        ("a.dat", "text", b"text"),
        ("a.dat", [1], b"[1]"),
        ("a.log", [1], b"[1]"),
    ],
)
def test_the_address_tells_the_format(
    calls: ObjectCalls, tmp_path: Path, url: str, content: Any, data: bytes
) -> None:
    calls.ok(action="put", url=url, content=content)
    assert (tmp_path / url).read_bytes() == data


def test_a_reference_is_written_to_a_file(calls: ObjectCalls, tmp_path: Path) -> None:
    stored = calls.object(b"\x00\x01" * 100_000)
    calls.ok(action="put", url="a.bin", source=stored)
    assert (tmp_path / "a.bin").read_bytes() == b"\x00\x01" * 100_000
    table = calls.table([{"a": 1}, {"a": 2}])
    calls.ok(action="put", url="a.csv", content=table)
    assert (tmp_path / "a.csv").read_bytes() == b'"a"\n1\n2\n'
    calls.ok(action="put", url="a.json", content=table)
    assert json.loads((tmp_path / "a.json").read_bytes()) == [{"a": 1}, {"a": 2}]


def test_a_file_is_written_from_another(calls: ObjectCalls, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a")
    calls.ok(action="put", url="b/b.txt", source="a.txt")
    assert calls.ok(action="copy", url="b/b.txt", to="c/c.txt")["url"] == "c/c.txt"
    assert (tmp_path / "c" / "c.txt").read_text() == "a"
    assert calls.ok(action="delete", url="c/c.txt") == {"url": "c/c.txt", "deleted": True}
    assert calls.ok(action="delete", url="c/c.txt") == {"url": "c/c.txt", "deleted": False}


def test_files_are_listed_by_how_they_begin(calls: ObjectCalls, tmp_path: Path) -> None:
    for name in ("data/a1.txt", "data/a2/b.txt", "data/b.txt", "other.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    urls = [file["url"] for file in calls.ok(action="list", url="data/")]
    assert urls == ["data/a1.txt", "data/a2/b.txt", "data/b.txt"]
    files = calls.ok(action="list", url="data/a")
    assert [file["url"] for file in files] == ["data/a1.txt", "data/a2/b.txt"]
    assert (files[0]["name"], files[0]["size"], "modified_at" in files[0]) == ("a1.txt", 11, True)
    assert calls.ok(action="list", url="nowhere/x") == []


@pytest.mark.parametrize(
    ("inputs", "kind"),
    [
        ({"action": "get", "url": "none.txt"}, "not_found"),
        ({"action": "get", "url": "folder"}, "input"),
        ({"action": "get", "url": "pipe"}, "input"),
        ({"action": "put", "url": "pipe", "content": "x"}, "input"),
        ({"action": "copy", "url": "pipe", "to": "b"}, "input"),
        ({"action": "copy", "url": "/dev/zero", "to": "b"}, "input"),
        ({"action": "copy", "url": "file.txt", "to": "pipe"}, "input"),
        ({"action": "copy", "url": "folder", "to": "b"}, "input"),
        ({"action": "delete", "url": "folder"}, "input"),
        ({"action": "put", "url": "folder", "content": "x"}, "input"),
        ({"action": "put", "url": "a.txt", "source": "none.txt"}, "not_found"),
        ({"action": "put", "url": "a.txt", "source": {"key": "x"}}, "input"),
        ({"action": "put", "url": "file.txt/a", "content": "x"}, "input"),
        ({"action": "copy", "url": "none", "to": "b"}, "not_found"),
        ({"action": "get", "url": "https://example.com/a"}, "input"),
        ({"action": "get", "url": "a\0b"}, "input"),
        ({"action": "put", "url": "a.txt"}, "input"),
    ],
)
def test_what_cannot_be_done_is_an_error(
    calls: ObjectCalls, tmp_path: Path, inputs: dict[str, Any], kind: str
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file.txt").write_text("x")
    os.mkfifo(tmp_path / "pipe")
    actual, message = calls.error(**inputs)
    assert (actual, bool(message)) == (kind, True)
    assert sorted(path.name for path in tmp_path.iterdir() if path.name[0] != ".") == [
        "file.txt",
        "folder",
        "pipe",
    ]
    assert (tmp_path / "pipe").is_fifo()


def test_addresses_of_files_may_be_quoted(calls: ObjectCalls, tmp_path: Path) -> None:
    (tmp_path / "my file.txt").write_text("a")
    address = f"file://{tmp_path}/my%20"
    assert calls.ok(action="put", url=f"{address}copy.txt", source=f"{address}file.txt")["size"] == 1
    assert (tmp_path / "my copy.txt").read_text() == "a"


def test_a_link_that_leads_nowhere_can_be_deleted(calls: ObjectCalls, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("nowhere")
    assert calls.ok(action="delete", url="link") == {"url": "link", "deleted": True}
    assert not (tmp_path / "link").is_symlink()


class OnFullDisk(FileTool):
    async def run(self, call: Call) -> Outcome:
        async def work(_: Call) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "out.txt")

        return await run_operation(call, work)


def test_a_full_disk_may_be_tried_again(tmp_path: Path) -> None:
    error = ObjectCalls(OnFullDisk, tmp_path, "file").call().error
    assert error is not None
    assert (error.kind, error.retryable) == ("limit", True)
    assert "No space left on device" in error.message
