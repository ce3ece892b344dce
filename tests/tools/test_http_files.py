"""What an `http` task stores of an answer, and what it sends of what is stored."""

import asyncio
import gzip
import os
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

import noetl
from noetl.model.json import Json
from noetl.model.reference import StoredReference
from noetl.stores.results.file_backend import FileResults
from noetl.stores.results.result_store_objects import ResultStoreObjects
from tests.playbooks import document_of
from tests.tools.http_calls import answer, call, data_of, error_of, outcome_of, run, serving
from tests.tools.test_http_request import parts

FILE: dict[str, Json] = {"save_as": "file"}


@pytest.fixture
def objects(tmp_path: Path) -> ResultStoreObjects:
    return ResultStoreObjects(FileResults(tmp_path / "results"), "x")


def bytes_of(objects: ResultStoreObjects, reference: Any) -> bytes:
    async def scenario() -> bytes:
        async with objects.local(reference) as path:
            return path.read_bytes()

    assert isinstance(reference, StoredReference)
    return asyncio.run(scenario())


def store(objects: ResultStoreObjects, body: bytes, media_type: str, **options: str) -> StoredReference:
    async def scenario() -> StoredReference:
        async with objects.draft() as draft:
            draft.path.write_bytes(body)
            return await draft.keep(media_type, **options)

    return asyncio.run(scenario())


def drafts(tmp_path: Path) -> list[str]:
    return [path.name for path in (tmp_path / "results").rglob("*") if path.name.startswith(".")]


@pytest.mark.parametrize("size", [1, 70_000, 3_000_001])
def test_a_body_that_is_no_text_becomes_a_reference(objects: ResultStoreObjects, size: int) -> None:
    body = os.urandom(size)
    reference = data_of(
        answer(body=body, content_type="image/png"), call("/a/picture.png?x=1", objects=objects)
    )
    assert bytes_of(objects, reference) == body
    assert {key: reference[key] for key in ("size", "media_type", "filename", "preview")} == {
        "size": size, "media_type": "image/png", "filename": "picture.png", "preview": "",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("content_type", "media_type"),
    [
        ("application/json", "application/json; charset=utf-8"),
        ("application/json; charset=utf-8", "application/json; charset=utf-8"),
        ("text/csv", "text/csv"),
    ],
)
def test_a_body_is_saved_as_it_is_where_that_is_asked_for(
    objects: ResultStoreObjects, content_type: str, media_type: str
) -> None:
    body = b"[1, 2]" * 100_000
    handler = answer(body=body, headers={"Content-Type": content_type})
    reference = data_of(handler, call(spec=FILE, objects=objects))
    assert bytes_of(objects, reference) == body
    assert (reference["media_type"], reference["preview"]) == (media_type, "[1, 2]" * 170 + "[1, ")


@pytest.mark.parametrize(
    ("disposition", "name"),
    [
        ('attachment; filename="report 1.csv"', "report 1.csv"),
        ('attachment; filename="../../etc/passwd"', "passwd"),
        (r'attachment; filename="..\\..\\x.txt"', "x.txt"),
        ("attachment", "last"),
        ("inline; filename*=UTF-8''%C3%BC.txt", "ü.txt"),
    ],
)
def test_a_saved_body_has_the_name_that_the_server_gives_it(
    objects: ResultStoreObjects, disposition: str, name: str
) -> None:
    handler = answer(body=b"x", headers={"Content-Disposition": disposition})
    assert data_of(handler, call("/some/last", spec=FILE, objects=objects))["filename"] == name


def test_an_empty_body_is_saved_and_otherwise_nothing(objects: ResultStoreObjects) -> None:
    empty = answer(body=b"", content_type="image/png")
    assert data_of(empty, call(spec=FILE, objects=objects))["size"] == 0
    assert data_of(empty, call(objects=objects)) is None
    assert data_of(empty, call(spec=FILE, method="HEAD", objects=objects)) is None


def test_a_body_that_is_no_success_is_not_saved(objects: ResultStoreObjects) -> None:
    handler = answer(text='{"why": 1}', content_type="application/json", status=503)
    outcome = outcome_of(handler, call(spec=FILE, objects=objects))
    assert outcome.error is not None
    assert (outcome.error.kind, outcome.result["data"]) == ("http_status", {"why": 1})
    allowed = outcome_of(handler, call(spec={**FILE, "success": [503]}, objects=objects))
    assert allowed.result["data"]["size"] == 10


def test_a_packed_body_is_saved_unpacked(objects: ResultStoreObjects) -> None:
    body = b"line\n" * 1_000_000
    headers = {"Content-Encoding": "gzip", "Content-Type": "text/plain"}
    reference = data_of(answer(body=gzip.compress(body), headers=headers), call(spec=FILE, objects=objects))
    assert bytes_of(objects, reference) == body


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("announced", [True, False])
def test_a_body_that_is_too_long_to_store_leaves_nothing(
    objects: ResultStoreObjects, tmp_path: Path, packed: bool, announced: bool
) -> None:
    block = gzip.compress(bytes(4_000_000)) if packed else bytes(65_536)

    async def endless(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        if packed:
            response.headers["Content-Encoding"] = "gzip"
        if announced:
            response.content_length = 1 << 40
        await response.prepare(request)
        while True:
            await response.write(block)

    limit_error = error_of(endless, call(spec=FILE, objects=objects), max_file=2_000_000)
    assert (limit_error.kind, limit_error.retryable) == ("limit", False)
    assert limit_error.message == "the body is longer than 2,000,000 bytes: `spec.max_size` can allow more"
    assert drafts(tmp_path) == []


@pytest.mark.parametrize("headers", [{"Content-Type": "image/png"}, {"Content-Type": ""}])
def test_a_stored_body_has_the_limit_that_its_task_sets(
    objects: ResultStoreObjects, tmp_path: Path, headers: dict[str, str]
) -> None:
    body = answer(body=b"\xff" * 3_000_000, headers=headers)
    error = error_of(body, call(spec={"max_size": "2MB"}, objects=objects))
    assert (error.kind, error.retryable) == ("limit", False)
    assert error.message == "the body is longer than 2,000,000 bytes: `spec.max_size` can allow more"
    assert drafts(tmp_path) == []
    longer = call(spec={"max_size": 3_000_000}, objects=objects)
    assert outcome_of(body, longer, max_file=1_000).result["data"]["size"] == 3_000_000


def test_a_stored_body_has_a_limit_that_nobody_set(objects: ResultStoreObjects) -> None:
    response = b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\nContent-Length: 1073741825\r\n\r\nabc"
    error = error_of(response, call(objects=objects))
    assert (error.kind, error.message[:46]) == ("limit", "the body is longer than 1,073,741,824 bytes: `")


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_a_packed_body_is_stored_beyond_the_size_of_a_value_only_if_it_is_expected(
    objects: ResultStoreObjects, tmp_path: Path, encoding: str
) -> None:
    body = bytes(2_000_000)
    packed = gzip.compress(body) if encoding == "gzip" else zlib.compress(body)
    bomb = answer(body=packed, headers={"Content-Encoding": encoding, "Content-Type": "image/png"})
    error = error_of(bomb, call(objects=objects), max_body=1_000_000)
    assert (error.kind, error.retryable) == ("limit", False)
    assert "longer than 1,000,000 bytes" in error.message
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
    specs: list[dict[str, Json]] = [FILE, {"max_size": "1GB"}, {"result": {"store": "auto"}}]
    for spec in specs:
        outcome = outcome_of(bomb, call(spec=spec, objects=objects), max_body=1_000_000)
        assert outcome.result["data"]["size"] == 2_000_000
    plain = answer(body=body, headers={"Content-Type": "image/png"})
    assert outcome_of(plain, call(objects=objects), max_body=1_000_000).status == "ok"


def test_a_playbook_that_expects_no_long_body_refuses_a_packed_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    packed = gzip.compress(bytes(64 * 1024 * 1024 + 1), 1)
    handler = answer(body=packed, headers={"Content-Encoding": "gzip", "Content-Type": "image/png"})

    async def scenario(spec: str) -> noetl.Execution:
        async with serving(handler) as server:
            task = f"- step: start\n  tool: {{ kind: http, url: {server.url}, spec: {spec} }}\n"
            return await noetl.arun(document_of(task))

    assert asyncio.run(scenario("{}")).status == "failed"
    assert [path for path in tmp_path.rglob("results/*/*") if path.is_file()] == []
    assert asyncio.run(scenario("{ max_size: 70MB }")).status == "completed"


def test_a_body_that_breaks_off_leaves_nothing(objects: ResultStoreObjects, tmp_path: Path) -> None:
    response = b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\nContent-Length: 100\r\n\r\nabc"
    error = error_of(response, call(objects=objects))
    assert (error.kind, error.retryable) == ("connection", True)
    assert "the connection ended before the whole body was there" in error.message
    assert drafts(tmp_path) == []


def test_a_body_that_does_not_come_in_time_leaves_nothing(
    objects: ResultStoreObjects, tmp_path: Path
) -> None:
    async def begun(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(bytes(2_000_000))
        await asyncio.Event().wait()
        return response

    error = error_of(begun, call(objects=objects, timeout=0.5))
    assert (error.kind, error.retryable) == ("timeout", True)
    assert drafts(tmp_path) == []


def test_a_full_disk_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    nowhere = ResultStoreObjects(FileResults(tmp_path / "file"), "x")
    error = error_of(answer(body=b"\xff", content_type="image/png"), call(objects=nowhere))
    assert (error.kind, error.retryable) == ("store", True)
    assert "check the rights of the folder" in error.message


def test_a_reference_is_sent_as_a_body(objects: ResultStoreObjects) -> None:
    body = os.urandom(2_000_000)
    picture = store(objects, body, "image/png")
    (sent, typed), (first, second) = run(
        answer(),
        call(method="PUT", body=picture, objects=objects),
        call(method="PUT", body=picture, headers={"content-type": "x/y"}, objects=objects),
    )
    assert (sent.status, typed.status) == ("ok", "ok")
    assert first.body == second.body == body
    assert first.headers["Content-Length"] == "2000000"
    assert (first.headers["Content-Type"], second.headers["Content-Type"]) == ("image/png", "x/y")


def test_a_reference_is_sent_again_where_a_redirect_asks_for_it(objects: ResultStoreObjects) -> None:
    async def handler(request: web.Request) -> web.Response:
        if request.path == "/":
            raise web.HTTPTemporaryRedirect("/end")
        return web.Response()

    upload = call(method="PUT", body=store(objects, b"again" * 1000, "text/plain"), objects=objects)
    _, seen = run(handler, upload)
    assert [request.body for request in seen] == [b"again" * 1000] * 2


def test_references_are_parts_of_a_form(objects: ResultStoreObjects) -> None:
    table = store(objects, b"a,b\n", "text/csv", filename="table.csv")
    files = {
        "bare": table,
        "named": {"content": table, "filename": "other.csv", "content_type": "text/plain"},
        "unnamed": store(objects, b"z", "image/png"),
    }
    outcome = outcome_of(parts, call(method="POST", files=files, form={"n": 1}, objects=objects))
    assert outcome.result["data"] == [
        ["n", None, None, "1"],
        ["bare", "table.csv", "text/csv", "a,b\n"],
        ["named", "other.csv", "text/plain", "a,b\n"],
        ["unnamed", "unnamed", "image/png", "z"],
    ]


def test_a_mapping_that_only_looks_like_a_reference_is_data(objects: ResultStoreObjects) -> None:
    looks = dict(store(objects, b"secret", "text/plain"))
    _, (plain, form) = run(
        answer(),
        call(method="PUT", body=looks, objects=objects),
        call(method="POST", files={"f": {"content": looks}}, objects=objects),
    )
    assert b"$noetl" in plain.body
    assert b"secret" not in plain.body
    assert form.headers["Content-Type"].startswith("multipart/form-data")


@pytest.mark.parametrize("inputs", ["body", "files"])
def test_a_reference_to_what_is_gone_is_told(objects: ResultStoreObjects, inputs: str) -> None:
    gone = StoredReference({"$noetl": "ref", "key": "x/" + "0" * 64, "media_type": "text/plain"})
    content: Any = gone if inputs == "body" else {"f": gone}
    error = error_of(answer(), call(method="POST", objects=objects, **{inputs: content}))
    assert error.kind == "not_found"
    assert "nothing is stored under" in error.message


MEASURE = """
import asyncio, gzip, resource, sys
from pathlib import Path
from aiohttp import web
from noetl.stores.results.file_backend import FileResults
from noetl.stores.results.result_store_objects import ResultStoreObjects
from noetl.tools.http.tool import HttpTool
from tests.tools.http_calls import call

async def main():
    tool, objects = HttpTool(), ResultStoreObjects(FileResults(Path(sys.argv[2])), "x")
    async def ask(path, **about):
        return await tool.run(call(sys.argv[1] + path, objects=objects, timeout=100, **about))
    await ask("/get?n=1000000")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = await ask("/get?n=80000000")
    sent = await ask("/put", method="PUT", body=found.result["data"])
    form = await ask("/put", method="POST", files={"f": found.result["data"]})
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    bomb = await ask("/bomb")
    await tool.close()
    print(grown, found.result["data"]["size"], sent.result["data"], form.result["data"] > 80_000_000, bomb.error.kind)

asyncio.run(main())
"""


async def counting(request: web.Request) -> web.StreamResponse:
    """Gives as many bytes as asked for, counts those it gets, or says that little is much."""
    if request.path == "/put":
        size = 0
        async for part in request.content.iter_any():
            size += len(part)
        return web.json_response(size)
    response = web.StreamResponse()
    if request.path == "/bomb":
        response.headers.update({"Content-Encoding": "gzip", "Content-Type": "text/plain"})
        await response.prepare(request)
        await response.write(gzip.compress(bytes(150_000_000), 1))
        return response
    await response.prepare(request)
    for _ in range(int(request.query["n"]) // 1_000_000):
        await response.write(bytes(1_000_000))
    return response


def test_memory_does_not_grow_with_what_is_stored_or_sent(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]

    async def scenario() -> bytes:
        app = web.Application(client_max_size=1 << 30)
        app.router.add_route("*", "/{tail:.*}", counting)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        child = await asyncio.create_subprocess_exec(
            sys.executable, "-c", MEASURE, f"http://127.0.0.1:{runner.addresses[0][1]}", str(tmp_path),
            env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (root / "src", root)))},
            stdout=subprocess.PIPE,
        )  # fmt: skip
        out, _ = await child.communicate()
        await runner.cleanup()
        return out

    grown, got, sent, form, bomb = asyncio.run(scenario()).decode().split()
    assert (got, sent, form, bomb) == ("80000000", "80000000", "True", "limit")
    assert int(grown) < 20_000  # KiB
