import base64
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from noetl.model.reference import (
    ARROW_MEDIA_TYPE,
    JSON_MEDIA_TYPE,
    MARKER,
    StoredReference,
    encode_value,
    escape,
    is_object_reference,
    is_reference,
    is_table_reference,
    list_chunk,
    manifest,
    part_reference,
    value_reference,
)
from noetl.model.table_reader import table_rows
from noetl.tools.artifact.tool import ArtifactTool
from tests.tools.object_calls import ObjectCalls

OTHER = "01939d2e-0000-7000-8000-000000000002"
ROWS: list[dict[str, Any]] = [{"id": 1, "name": "a,b"}, {"id": 2, "name": None}]


@pytest.fixture
def calls(tmp_path: Path) -> ObjectCalls:
    return ObjectCalls(ArtifactTool, tmp_path, "artifact")


def test_what_is_put_by_name_can_be_got_by_every_execution(calls: ObjectCalls) -> None:
    put = calls.ok(action="put", key="reports/may.json", content={"n": 1})
    assert is_object_reference(escape(put))
    assert (put["name"], put["media_type"]) == ("reports/may.json", "application/json; charset=utf-8")
    assert put["preview"] == '{"n":1}'
    got = calls.ok(action="get", key="reports/may.json", execution_id=OTHER)
    assert calls.data(got, OTHER) == b'{"n":1}'
    assert got["key"].startswith(f"{OTHER}/")
    assert calls.ok(action="get", key="reports/may.json", format="json", execution_id=OTHER) == {"n": 1}


@pytest.mark.parametrize(
    ("content", "form", "data"),
    [
        ("text", None, b"text"),
        ([1, {"a": None}], None, b'[1,{"a":null}]'),
        ("text", "json", b'"text"'),
        (base64.b64encode(b"\x00\xff").decode(), "bytes", b"\x00\xff"),
        ({"encoding": "base64", "content": "AP8="}, "bytes", b"\x00\xff"),
        (ROWS, "csv", b'id,name\r\n1,"a,b"\r\n2,\r\n'),
        ({"rows": ROWS, "row_count": 2}, "csv", b'id,name\r\n1,"a,b"\r\n2,\r\n'),
        ([{"a": [1]}, {"b": True}], "csv", b"a,b\r\n[1],\r\n,true\r\n"),
    ],
)
def test_content_is_written_in_its_format(
    calls: ObjectCalls, content: Any, form: str | None, data: bytes
) -> None:
    assert calls.data(calls.ok(action="put", content=content, format=form)) == data


def test_rows_can_be_parquet_and_back(calls: ObjectCalls) -> None:
    put = calls.ok(action="put", key="rows", content=ROWS, format="parquet")
    assert calls.data(put)[:4] == b"PAR1"
    got = calls.ok(action="get", key="rows", format="parquet")
    assert is_table_reference(dict(got))
    assert got["length"] == 2
    assert table_rows(calls.data(got)) == ROWS


@pytest.mark.parametrize("form", ["csv", "json", "parquet"])
def test_a_table_is_written_from_its_reference(calls: ObjectCalls, tmp_path: Path, form: str) -> None:
    rows = [{"id": number, "name": f"row {number}"} for number in range(2_500)]
    put = calls.ok(action="put", content=calls.table(rows), format=form)
    data = calls.data(put)
    if form == "json":
        assert json.loads(data) == rows
    elif form == "csv":
        assert data.splitlines()[2_500].replace(b'"', b"") == b"2499,row 2499"
    else:
        (tmp_path / "t").write_bytes(data)
        assert pq.read_table(tmp_path / "t").to_pylist() == rows


def test_an_empty_table_is_an_empty_list(calls: ObjectCalls) -> None:
    empty = calls.ok(action="put", content=[{"id": 1}], format="parquet")
    table = calls.ok(action="get", ref=empty, format="parquet")
    assert is_table_reference(dict(table))
    none = calls.object(calls.data(calls.table([])), ARROW_MEDIA_TYPE, type="list", length=0)
    assert calls.data(calls.ok(action="put", content=none, format="json")) == b"[]"


def test_an_object_is_kept_as_it_is_and_not_copied(calls: ObjectCalls) -> None:
    picture = calls.object(b"\x00" * 100_000, "image/png")
    put = calls.ok(action="put", key="picture", content=picture)
    assert (put["key"], put["media_type"]) == (picture["key"], "image/png")
    got = calls.ok(action="get", key="picture", execution_id=OTHER)
    assert got["media_type"] == "image/png"
    files = {path.stat().st_ino for path in calls.folder.rglob(f"*{picture['hash']}*") if path.is_file()}
    assert len(files) == 1, "three names of the same file"


def test_a_stored_value_is_written_as_users_know_it(calls: ObjectCalls) -> None:
    table = calls.table(ROWS)
    value = {"$noetl": "mine", "table": table}
    stored = calls.object(encode_value(escape(value)), JSON_MEDIA_TYPE)
    assert json.loads(calls.data(calls.ok(action="put", content=stored))) == {"$noetl": "mine", "table": ROWS}
    plain = calls.object(b'{"a":1}', JSON_MEDIA_TYPE)
    assert calls.data(calls.ok(action="put", content=plain)) == b'{"a":1}'
    assert calls.data(calls.ok(action="put", content={"a": plain, "t": table}, format="json")) == (
        b'{"a":{"a":1},"t":[{"id":1,"name":"a,b"},{"id":2,"name":null}]}'
    )


def test_names_can_be_listed_replaced_and_deleted(calls: ObjectCalls) -> None:
    for name in ("a/1", "a/2", "b"):
        calls.ok(action="put", key=name, content=name)
    listed = calls.ok(action="list", key="a/")
    assert [artifact["key"] for artifact in listed] == ["a/1", "a/2"]
    assert listed[0].keys() == {"key", "store", "size", "media_type", "hash", "created_at"}
    assert len(calls.ok(action="list")) == 3
    calls.ok(action="put", key="a/1", content="new")
    assert calls.ok(action="get", key="a/1", format="text") == "new"
    put = calls.ok(action="put", key="a/2", content="again")
    assert calls.ok(action="delete", ref=put) == {"key": "a/2", "deleted": True}
    assert calls.ok(action="delete", key="a/2") == {"key": "a/2", "deleted": False}
    assert calls.error(action="get", key="a/2") == ("not_found", "there is no artifact `a/2`")
    bodies = list((calls.folder / ".results").glob("artifact-*/*"))
    assert len(bodies) == 2, "those that were replaced or deleted are gone"


def test_another_store_can_be_named(calls: ObjectCalls) -> None:
    calls.ok(action="put", key="x", content="here")
    calls.ok(action="put", key="x", content="there", store="archive")
    assert calls.ok(action="get", key="x", format="text", store="archive") == "there"
    assert calls.ok(action="get", key="x", format="text", store="auto") == "here"
    assert [artifact["store"] for artifact in calls.ok(action="list", store="archive")] == ["archive"]
    kind, message = calls.error(action="list", store="nowhere")
    assert kind == "not_found"
    assert "no result store `nowhere`" in message


def test_a_reference_can_be_read_by_its_key(calls: ObjectCalls) -> None:
    stored = calls.object(b'{"a": 1}')
    assert calls.ok(action="get", ref=stored["key"], format="json") == {"a": 1}
    assert calls.ok(action="get", ref=stored)["key"] == stored["key"]


@pytest.mark.parametrize(
    ("inputs", "kind", "words"),
    [
        ({"action": "put", "content": {"a": 1}, "format": "text"}, "input", "writes text, not a mapping"),
        ({"action": "put", "content": [1], "format": "csv"}, "input", "mappings, not a list of other values"),
        ({"action": "put", "content": True, "format": "csv"}, "input", "mappings, not true or false"),
        ({"action": "put", "content": "no!", "format": "bytes"}, "input", "base64"),
        ({"action": "put", "content": "x", "key": ""}, "input", "`key` is empty"),
        ({"action": "put", "content": "x", "key": "k" * 300}, "input", "name of an artifact"),
        ({"action": "put"}, "input", "`content` is missing"),
        ({"action": "get"}, "input", "`key` or `ref` is missing"),
        ({"action": "get", "ref": {"$noetl": "ref", "key": "x"}}, "input", "`ref` is a reference"),
        ({"action": "get", "ref": f"{OTHER}/{'0' * 64}"}, "not_found", "not stored by this execution"),
        ({"action": "delete", "ref": StoredReference({"key": "x"})}, "input", "no artifact with a name"),
        ({"action": "go"}, "input", "action"),
    ],
)
def test_what_cannot_be_done_is_an_error(
    calls: ObjectCalls, inputs: dict[str, Any], kind: str, words: str
) -> None:
    actual, message = calls.error(**inputs)
    assert actual == kind
    assert words in message


@pytest.mark.parametrize(
    ("data", "form", "words"),
    [
        (b"{", "json", "it is not json"),
        (b"[NaN]", "json", "it is not json"),
        (b"\xff", "text", "not text in UTF-8"),
        (b"a,b\n1,2\n1\n", "csv", "line 3 has not as many fields as the first"),
        (b"PAR", "parquet", "cannot be read"),
    ],
)
def test_what_is_not_in_the_format_is_an_error(
    calls: ObjectCalls, data: bytes, form: str, words: str
) -> None:
    kind, message = calls.error(action="get", ref=calls.object(data), format=form)
    assert kind == "input"
    assert words in message


def test_csv_is_read_as_rows(calls: ObjectCalls) -> None:
    stored = calls.object(b'\xef\xbb\xbfid,name\n1,"a\nb"\n')
    assert calls.ok(action="get", ref=stored, format="csv") == [{"id": "1", "name": "a\nb"}]


def test_a_long_field_of_csv_is_read(calls: ObjectCalls) -> None:
    rows = [{"text": "x" * 200_000}]
    put = calls.ok(action="put", content=rows, format="csv")
    assert calls.ok(action="get", ref=put, format="csv") == rows


def result_ref(reference: dict[str, Any]) -> dict[str, Any]:
    """As `event.result_ref` gives it."""
    return {key: value for key, value in reference.items() if key != MARKER}


def test_what_an_event_says_of_a_stored_result_can_be_got(calls: ObjectCalls) -> None:
    value: dict[str, Any] = {"n": 3, MARKER: "mine"}
    stored = calls.object(encode_value(escape(value)), JSON_MEDIA_TYPE)
    ref = result_ref(value_reference(stored["key"], value, size=stored["size"], extracted={"n": 3}))
    assert calls.ok(action="get", ref=ref, format="json") == value
    got = calls.ok(action="get", ref=ref)
    assert is_reference(dict(got))
    assert (got["key"], got["type"], got["length"], got["extracted"]) == (
        stored["key"],
        "mapping",
        2,
        {"n": 3},
    )


def test_parts_and_chunks_are_got_as_values(calls: ObjectCalls) -> None:
    chunks = [calls.object(encode_value(items), JSON_MEDIA_TYPE) for items in ([1, 2], [3])]
    parts = [
        list_chunk(chunk["key"], *bounds, 5) for chunk, bounds in zip(chunks, ((0, 2), (2, 3)), strict=True)
    ]
    ref = result_ref(manifest(parts, tail=[4]))
    assert calls.ok(action="get", ref=ref) == calls.ok(action="get", ref=ref, format="json") == [1, 2, 3, 4]
    stored = calls.object(encode_value({"a": [{"b": "deep"}]}), JSON_MEDIA_TYPE)
    part = result_ref(part_reference(stored["key"], ("a", 0)))
    assert calls.ok(action="get", ref=part) == {"b": "deep"}
    kind, message = calls.error(action="get", ref=part, format="csv")
    assert (kind, "no csv" in message) == ("input", True)


def test_the_table_that_an_event_names_is_got_as_one(calls: ObjectCalls) -> None:
    table = calls.table(ROWS)
    got = calls.ok(action="get", ref=result_ref(table))
    assert is_table_reference(dict(got))
    assert table_rows(calls.data(got)) == ROWS


@pytest.mark.parametrize(
    ("ref", "expected"),
    [
        ({"n": 1}, "`event.result_ref`"),
        ({"key": 5}, "`event.result_ref`"),
        ({"chunks": [{"no": "key"}]}, "is not as `event.result_ref` gave it"),
        ({"key": "x/y", "secrets": True}, "holds secrets"),
    ],
)
def test_what_is_no_reference_is_refused(calls: ObjectCalls, ref: Any, expected: str) -> None:
    kind, message = calls.error(action="get", ref=ref)
    assert kind == "input"
    assert expected in message
