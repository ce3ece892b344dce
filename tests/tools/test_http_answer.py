"""What an `http` task gives for what it is answered."""

import asyncio
import gzip
import json
import resource
from datetime import UTC, datetime
from typing import Any

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from noetl.model.json import Json
from noetl.model.normalisation import normalise
from noetl.model.timestamp import LAST_MOMENT
from noetl.tools.http.response import decode_body, is_binary, parse_retry_after
from noetl.tools.http.tool import HttpTool
from tests.tools.http_calls import answer, at, call, data_of, error_of, outcome_of, run, serving


@pytest.mark.spec("000 §5 (2)")
def test_a_result_says_what_came_back() -> None:
    outcome = outcome_of(answer(text='{"a": 1}', content_type="application/json", status=201), call("/x?b=1"))
    assert outcome.status == "ok"
    result = outcome.result
    assert (result["status"], result["status_code"], result["data"]) == (201, 201, {"a": 1})
    assert result["url"].endswith("/x?b=1")
    assert result["elapsed_ms"] > 0
    assert result["headers"]["content-type"] == "application/json; charset=utf-8"
    assert outcome.helpers == {"http": {"status": 201, "headers": result["headers"]}}


def test_headers_have_lower_case_names_and_hide_credentials() -> None:
    async def handler(_request: web.Request) -> web.Response:
        response = web.Response(headers={"X-One": "1", "Set-Cookie": "session=secret", "Cookie": "secret"})
        response.headers.add("X-Many", "a")
        response.headers.add("X-Many", "b")
        response.headers.add("Set-Cookie", "other=secret")
        response.headers.add("Authorization", "Bearer secret")
        return response

    outcome = outcome_of(handler)
    headers = outcome.result["headers"]
    assert (headers["x-one"], headers["x-many"]) == ("1", "a, b")
    assert {headers[name] for name in ("set-cookie", "cookie", "authorization")} == {"***"}
    assert "secret" not in repr(outcome)


def test_a_header_that_is_not_utf_8_is_read_as_latin_1() -> None:
    outcome = outcome_of(b"HTTP/1.1 200 OK\r\nX-Name: caf\xe9\r\nContent-Length: 0\r\n\r\n")
    assert outcome.result["headers"]["x-name"] == "café"


BODIES: list[tuple[str, bytes, Any]] = [
    ("application/json", b'{"a": [1, 2.5, null, "\xc3\xbc"]}', {"a": [1, 2.5, None, "ü"]}),
    ("application/json; charset=latin-1", b'"\xfc"', "ü"),
    ("application/problem+json", b'{"title": "no"}', {"title": "no"}),
    ("text/json", b"[]", []),
    ("Application/JSON", b"\xef\xbb\xbf[1]", [1]),
    ("application/json", b"123456789012345678901234567890", 123456789012345678901234567890),
    ("application/json", b"", None),
    ("text/plain", "grüß".encode(), "grüß"),
    ("text/plain; charset=iso-8859-1", b"gr\xfc\xdf", "grüß"),
    ('text/html; charset="utf-8"', "<p>ü".encode(), "<p>ü"),
    ("text/plain", "\ufeffü".encode(), "ü"),
    ("application/xml", b"<a/>", "<a/>"),
    ("image/svg+xml", b"<svg/>", "<svg/>"),
    ("application/x-ndjson", b'{"a":1}\n{"a":2}\n', '{"a":1}\n{"a":2}\n'),
    ("text/csv", b"", None),
]


@pytest.mark.parametrize(("content_type", "body", "expected"), BODIES)
def test_a_body_is_what_its_content_type_says(content_type: str, body: bytes, expected: Json) -> None:
    outcome = outcome_of(answer(body=body, headers={"Content-Type": content_type}))
    assert outcome.result["data"] == expected
    assert "warning" not in outcome.meta


ODD: list[tuple[str, bytes, str, str]] = [
    ("application/json", b"OK", "OK", "not the JSON that its content type says"),
    ("application/json", b'{"a": 1', '{"a": 1', "not the JSON"),
    ("application/json", b"[NaN]", "[NaN]", "not the JSON"),
    ("application/json", b'"\\ud800"', '"\\ud800"', "not the JSON"),
    ("application/json", b"[" * 200 + b"]" * 200, "[" * 200 + "]" * 200, "lies deeper than 100 levels"),
    ("application/json", b"[" * 99_999, "[" * 99_999, "not the JSON"),
    ("text/plain", b"gr\xfc\xdf", "grüß", "read as latin-1"),
    ("text/plain; charset=utf-8", b"gr\xfc", "gr\ufffd", "not the utf-8 that it says"),
    ("text/plain; charset=klingon", "ü".encode(), "ü", "the charset `klingon` of the body is unknown"),
    ("text/plain; charset=base64", b"YQ==", "YQ==", "the charset `base64` of the body is unknown"),
    (
        "text/plain; charset=unicode_escape",
        b"\\ud800",
        "\\ud800",
        "the charset `unicode_escape` of the body is unknown",
    ),
    ("text/plain; charset=punycode", b"\xfc", "ü", "the charset `punycode` of the body is unknown"),
    ("text/plain; charset=utf-16-le", b"\x00\xd8", "\ufffd", "not the utf-16-le that it says"),
]


@pytest.mark.parametrize(("content_type", "body", "text", "warning"), ODD)
def test_a_body_that_is_not_what_it_says_stays_text_with_a_warning(
    content_type: str, body: bytes, text: str, warning: str
) -> None:
    lines: list[str] = []
    outcome = outcome_of(answer(body=body, headers={"Content-Type": content_type}), call(log=lines.append))
    assert outcome.status == "ok"
    assert outcome.result["data"] == text
    assert warning in outcome.meta["warning"]
    assert lines == [f"warning: {outcome.meta['warning']}"]


def test_a_body_without_a_content_type_is_text_if_it_can_be() -> None:
    assert data_of(b"HTTP/1.1 200 OK\r\n\r\n\xc3\xbc until the end") == "ü until the end"
    odd = data_of(b"HTTP/1.1 200 OK\r\n\r\n\xff\xfe")
    assert (odd["$noetl"], odd["media_type"], odd["size"]) == ("ref", "application/octet-stream", 2)


def packed(body: bytes) -> web.Response:
    headers = {"Content-Encoding": "gzip", "Content-Type": "application/json"}
    return web.Response(body=gzip.compress(body), headers=headers)


@pytest.mark.parametrize(
    "content_type",
    ["application/zip", "application/octet-stream; charset=binary", "application/x+zip", "odd"],
)
def test_what_is_no_text_is_stored_with_its_type(content_type: str) -> None:
    assert is_binary(content_type)
    body = data_of(answer(body=b"\x00\xff", headers={"Content-Type": content_type}))
    assert (body["$noetl"], body["media_type"], body["size"]) == ("ref", content_type, 2)


words = st.sampled_from(
    ["text", "application", "json", "plain", "/", ";", "+", "=", "charset", "utf-16", "idna", " ", '"']
)


@given(body=st.binary(max_size=40), parts=st.lists(words, max_size=8))
def test_any_body_of_any_type_is_a_json_value(body: bytes, parts: list[str]) -> None:
    content = decode_body(body, "".join(parts))
    assert normalise(content.data) == content.data
    assert (content.data is None) <= (not body or body.strip() == b"null")


def test_a_packed_body_is_unpacked_and_bounded_unpacked() -> None:
    async def handler(request: web.Request) -> web.Response:
        return packed(json.dumps("a" * int(request.query["size"])).encode())

    (small, large), _ = run(handler, call("/?size=900"), call("/?size=1000000"), max_body=1000)
    assert small.result["data"] == "a" * 900
    assert large.error is not None
    assert large.error.kind == "limit"


@pytest.mark.parametrize("chunked", [True, False])
def test_a_body_over_the_limit_ends_the_call_and_not_the_tool(chunked: bool) -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        if request.path == "/small":
            return web.Response(text="a" * 100)
        response = web.StreamResponse(headers={"Content-Type": "text/plain"})
        if chunked:
            response.enable_chunked_encoding()
        else:
            response.content_length = 1 << 40
        await response.prepare(request)
        while True:
            await response.write(bytes(65_536))

    (large, small), _ = run(handler, call("/large"), call("/small"), max_body=100)
    assert large.error is not None
    assert (large.error.kind, large.error.retryable) == ("limit", False)
    assert large.error.message == "the body is longer than 100 bytes: `spec.save_as: file` can store it"
    assert small.result["data"] == "a" * 100


def test_a_refusal_with_a_body_over_the_limit_is_a_refusal() -> None:
    outcome = outcome_of(answer(text="a" * 2_000, status=500), max_body=1_000)
    assert outcome.error is not None
    assert (outcome.error.kind, outcome.result["data"]) == ("http_status", None)
    assert "longer than 1,000 bytes" in outcome.meta["warning"]


def test_a_large_body_is_read_whole() -> None:
    rows = [{"n": number, "text": "ü" * 20} for number in range(60_000)]
    assert data_of(answer(body=json.dumps(rows).encode(), content_type="application/json")) == rows


@pytest.mark.parametrize("status", [200, 204, 304])
def test_an_answer_without_a_body_has_no_data(status: int) -> None:
    assert data_of(answer(status=status), call(method="GET" if status != 200 else "HEAD")) is None


def test_the_length_that_head_tells_is_no_body() -> None:
    async def handler(request: web.Request) -> web.Response:
        return web.Response(headers={"Content-Length": str(1 << 40), "Content-Type": "text/plain"})

    outcome = outcome_of(handler, call(method="HEAD"), max_body=10)
    assert outcome.result["headers"]["content-length"] == str(1 << 40)


@pytest.mark.parametrize(
    ("status", "retryable"),
    [(400, False), (401, False), (404, False), (408, True), (409, False), (425, True), (429, True),
     (500, True), (501, True), (503, True), (599, True)],
)  # fmt: skip
def test_a_status_that_is_no_success_is_an_error_that_keeps_the_answer(status: int, retryable: bool) -> None:
    outcome = outcome_of(answer(status=status, reason="No", text="because"), call("/a?key=secret"))
    assert outcome.error is not None
    assert (outcome.error.kind, outcome.error.retryable) == ("http_status", retryable)
    assert outcome.error.message.startswith("GET http://127.0.0.1:")
    assert outcome.error.message.endswith(f"/a?key=***: {status} No: because")
    assert outcome.error.as_value()["status"] == status
    assert outcome.helpers["http"]["status"] == status
    assert (outcome.result["status"], outcome.result["data"]) == (status, "because")


@pytest.mark.parametrize(
    ("status", "success", "ok"),
    [
        (200, None, True),
        (302, None, True),
        (404, [404], True),
        (200, [404], False),
        (404, ["2xx", "4xx"], True),
        (302, ["2xx"], False),
        (204, ["2xx", 404], True),
        (500, [], False),
    ],
)
def test_what_counts_as_success_can_be_said(status: int, success: list[Json] | None, ok: bool) -> None:
    spec: dict[str, Json] = {"success": success, "follow_redirects": False}
    assert (outcome_of(answer(status=status), call(spec=spec)).status == "ok") == ok


NOW = datetime(2030, 1, 31, 9, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("120", 120.0),
        ("0", 0.0),
        ("Thu, 31 Jan 2030 09:00:30 GMT", 30.0),
        ("Thu, 31 Jan 2030 08:00:00 GMT", 0.0),
        ("Thu, 31 Jan 2030 10:00:10 +0100", 0.0 + 10),
        ("9" * 400, LAST_MOMENT / 1e6),
        ("Mon, 01 Jan 99999999999999999999 00:00:00 GMT", None),
        ("soon", None),
        ("-5", None),
        ("²", None),
        ("", None),
        (None, None),
    ],
)
def test_retry_after_is_read_as_seconds(text: str | None, seconds: float | None) -> None:
    assert parse_retry_after(text, NOW) == seconds


def test_an_error_says_when_to_come_back() -> None:
    assert error_of(answer(status=429, headers={"Retry-After": "7"})).retry_after == 7
    assert error_of(answer(status=503)).retry_after is None


async def hops(request: web.Request) -> web.Response:
    """Leads on as often as the path says, then answers with the method it was asked by."""
    left = int(request.match_info["tail"])
    if left:
        raise web.HTTPFound(f"/{left - 1}")
    return web.Response(text=request.method)


def test_redirects_are_followed_to_a_bound() -> None:
    outcome = outcome_of(hops, call("/10", method="POST", json={}))
    assert outcome.result["data"] == "GET"
    assert outcome.result["url"].endswith("/0")
    (late,), seen = run(hops, call("/11"))
    assert late.error is not None
    assert (late.error.kind, late.error.retryable, len(seen)) == ("connection", False, 11)
    assert "it redirects more than 10 times, the last to `/0`" in late.error.message


def test_redirects_in_a_ring_end() -> None:
    async def ring(request: web.Request) -> web.Response:
        raise web.HTTPTemporaryRedirect("/b" if request.path == "/a" else "/a")

    (outcome,), seen = run(ring, call("/a", method="POST", body="x"))
    assert outcome.error is not None
    assert (outcome.error.kind, outcome.error.retryable, len(seen)) == ("connection", False, 11)


def test_redirects_need_not_be_followed() -> None:
    outcome = outcome_of(hops, call("/3", spec={"follow_redirects": False}))
    assert (outcome.result["status"], outcome.result["headers"]["location"]) == (302, "/2")


@pytest.mark.parametrize("location", ["ftp://example.com/", "http://[", "mailto:a@b"])
def test_a_redirect_to_what_is_no_address_is_told(location: str) -> None:
    error = error_of(answer(status=302, headers={"Location": location}))
    assert (error.kind, error.retryable) == ("connection", False)
    assert "it redirects to what is no HTTP address" in error.message


def test_a_connection_is_kept_for_the_next_call() -> None:
    _, seen = run(answer(text="a"), *(call(method="POST", body="b") for _ in range(5)))
    assert len({request.port for request in seen}) == 1


def test_a_thousand_calls_run_at_once_on_one_tool() -> None:
    count = 1_000
    waiting = asyncio.Event()
    here = 0

    async def handler(request: web.Request) -> web.Response:
        nonlocal here
        here += 1
        if here == count:
            waiting.set()
        await waiting.wait()  # so none is answered before all are there
        return web.json_response(int(request.query["n"]))

    async def scenario() -> list[Json]:
        tool = HttpTool()
        async with serving(handler) as server:
            outcomes = []
            for _ in range(2):
                calls = (tool.run(at(server, call("/", params={"n": n}))) for n in range(count))
                outcomes += await asyncio.gather(*calls)
            await tool.close()
        assert len({entry.port for entry in server.seen}) == count  # the second thousand used them again
        return [entry.result["data"] for entry in outcomes]

    assert asyncio.run(scenario()) == [*range(count)] * 2


def test_calls_wait_for_one_another_where_few_files_may_be_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (300, 300))
    most = (300 - 256) // 2
    full = asyncio.Event()
    here = 0

    async def handler(_request: web.Request) -> web.Response:
        nonlocal here
        here += 1
        if here == most:
            full.set()
        await full.wait()
        return web.Response()

    async def scenario() -> tuple[list[str], int]:
        tool = HttpTool()
        async with serving(handler) as server:
            outcomes = await asyncio.gather(*(tool.run(at(server, call())) for _ in range(200)))
            await tool.close()
        return [entry.status for entry in outcomes], len({entry.port for entry in server.seen})

    assert asyncio.run(scenario()) == (["ok"] * 200, most)
