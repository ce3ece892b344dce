"""What an `http` task sends."""

import base64
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from msgspec import structs

from noetl.tools.http import pool
from tests.tools.http_calls import answer, call, error_of, outcome_of, run, sent_request


@pytest.mark.parametrize("method", ["GET", "get", "POST", "put", "PATCH", "DELETE", "HEAD", "options"])
def test_the_method_is_the_one_that_is_asked_for(method: str) -> None:
    assert sent_request(call(method=method)).method == method.upper()


@pytest.mark.parametrize(
    ("url", "params", "target"),
    [
        ("/a", {"q": "x y", "n": 1, "on": True, "off": False}, "/a?q=x+y&n=1&on=true&off=false"),
        ("/a", {"tag": ["x", 2, None]}, "/a?tag=x&tag=2"),
        ("/a", {"none": None, "empty": []}, "/a"),
        ("/a?b=1", {"b": 2, "c": "&="}, "/a?b=1&b=2&c=%26%3D"),
        ("/a%2Fb?c=%2B", None, "/a%2Fb?c=%2B"),
        ("/ü", {"ö": "ä"}, "/%C3%BC?%C3%B6=%C3%A4"),
    ],
)
def test_parameters_go_into_the_query(url: str, params: Any, target: str) -> None:
    assert sent_request(call(url, params=params)).target == target


@pytest.mark.parametrize(
    ("inputs", "content_type", "body"),
    [
        ({"json": {"a": [1, "ü", None]}}, "application/json", '{"a":[1,"ü",null]}'),
        ({"json": None}, "application/json", "null"),
        ({"json": False}, "application/json", "false"),
        ({"body": "plain ü"}, "text/plain; charset=utf-8", "plain ü"),
        ({"body": [1]}, "application/json", "[1]"),
        ({"form": {"a": "x y", "b": [1, True]}}, "application/x-www-form-urlencoded", "a=x+y&b=1&b=true"),
        ({"body": "<a/>", "headers": {"content-type": "text/xml"}}, "text/xml", "<a/>"),
        ({"json": {}, "headers": {"CONTENT-TYPE": "application/a+json"}}, "application/a+json", "{}"),
    ],
)
def test_a_body_is_sent_with_its_type(inputs: dict[str, Any], content_type: str, body: str) -> None:
    seen = sent_request(call(method="POST", **inputs))
    assert seen.headers.getall("content-type") == [content_type]
    assert seen.body.decode() == body


def test_a_request_without_a_body_has_none() -> None:
    seen = sent_request(call())
    assert seen.body == b""
    assert "content-type" not in seen.headers


def test_headers_are_sent_whatever_their_case() -> None:
    seen = sent_request(
        call(headers={"x-number": 1, "X-Flag": True, "accept": "text/csv", "USER-AGENT": "mine"})
    )
    assert [seen.headers.getall(name) for name in ("x-number", "x-flag", "accept", "user-agent")] == [
        ["1"], ["true"], ["text/csv"], ["mine"],
    ]  # fmt: skip


def test_a_header_that_is_null_is_left_out() -> None:
    seen = sent_request(call(headers={"X-Trace": None, "User-Agent": None, "X-Empty": ""}))
    assert "x-trace" not in seen.headers
    assert seen.headers["user-agent"].startswith("noetl/")
    assert seen.headers["x-empty"] == ""


@pytest.mark.parametrize("header", [{"Content-Length": 50}, {"transfer-encoding": "chunked"}])
def test_the_length_of_a_body_is_told_as_it_is(header: dict[str, Any]) -> None:
    seen = sent_request(call(method="POST", headers=header, body="abc", timeout=5.0))
    assert (seen.body, seen.headers["content-length"]) == (b"abc", "3")


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_a_request_that_changes_something_carries_the_key_of_its_visit(method: str) -> None:
    assert sent_request(call(method=method)).headers["Idempotency-Key"] == "key-of-this-visit"
    own = sent_request(call(method=method, headers={"idempotency-key": "mine"}))
    assert own.headers.getall("Idempotency-Key") == ["mine"]


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS"])
def test_a_request_that_only_reads_has_no_such_key(method: str) -> None:
    assert "Idempotency-Key" not in sent_request(call(method=method)).headers


def test_a_cookie_is_kept_for_the_next_call_of_the_same_run_alone() -> None:
    first = answer(headers={"Set-Cookie": "session=abc; Path=/"})
    other_execution = structs.replace(call(), execution_id="another")
    calls = call(), call(), call(headers={"Cookie": "own=1"}), call(run_id="r2"), other_execution
    _, seen = run(first, *calls)
    assert [request.headers.get("Cookie") for request in seen] == [
        None,
        "session=abc",
        "own=1; session=abc",
        None,
        None,
    ]


def test_a_cookie_goes_where_it_may_and_until_it_is_over() -> None:
    async def handler(request: web.Request) -> web.Response:
        response = web.Response()
        if request.path == "/login":
            response.set_cookie("inner", "a", path="/inner")
            response.set_cookie("safe", "b", secure=True)
            response.set_cookie("old", "c", max_age=0)
        elif request.path == "/logout":
            response.del_cookie("inner", path="/inner")
        return response

    paths = ("/login", "/outer", "/inner/x", "/logout", "/inner/x")
    _, seen = run(handler, *(call(path) for path in paths))
    assert [sent.headers.get("Cookie") for sent in seen] == [None, None, "inner=a", None, None]


def test_a_login_that_redirects_keeps_its_cookie() -> None:
    async def handler(request: web.Request) -> web.Response:
        if request.path == "/login":
            raise web.HTTPFound("/home", headers={"Set-Cookie": "session=abc; Path=/"})
        return web.json_response(request.cookies.get("session"))

    (login, later), _ = run(handler, call("/login", method="POST", form={"user": "u"}), call("/home"))
    assert (login.result["data"], later.result["data"]) == ("abc", "abc")


def test_the_cookies_of_the_runs_that_used_them_last_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "_MAX_JARS", 2)
    first = answer(headers={"Set-Cookie": "session=abc; Path=/"})
    _, seen = run(first, *(call(run_id=run_id) for run_id in ("a", "b", "a", "c", "a", "b")))
    assert [request.headers.get("Cookie") for request in seen] == [
        None,
        None,
        "session=abc",
        None,
        "session=abc",
        None,
    ]


def basic(pair: str) -> str:
    return "Basic " + base64.b64encode(pair.encode()).decode()


@pytest.mark.parametrize(
    ("auth", "header", "value"),
    [
        ({"type": "bearer", "token": "t"}, "Authorization", "Bearer t"),
        ({"kind": "bearer", "value": "t"}, "Authorization", "Bearer t"),
        ({"type": "basic", "username": "u", "password": "p:ü"}, "Authorization", basic("u:p:ü")),
        ({"kind": "env", "value": "t"}, "Authorization", "Bearer t"),
        ({"kind": "vault", "username": "u", "password": "p"}, "Authorization", basic("u:p")),
        ({"kind": "oauth2", "client_id": "c", "access_token": "t"}, "Authorization", "Bearer t"),
        ({"type": "api_key", "value": "k"}, "X-API-Key", "k"),
        ({"type": "api_key", "value": "k", "header": "X-Token"}, "X-Token", "k"),
    ],
)
def test_a_request_signs_in(auth: dict[str, str], header: str, value: str) -> None:
    assert sent_request(call(auth=auth)).headers.getall(header) == [value]


def test_a_key_in_the_query_is_not_shown() -> None:
    auth = {"type": "api_key", "value": "secret", "query": "key"}
    ((outcome,), (seen,)) = run(answer(status=404), call("/a?b=1", auth=auth))
    assert seen.target == "/a?b=1&key=secret"
    assert outcome.result["url"].endswith("/a?b=1&key=***")
    assert "secret" not in repr(outcome)


def test_the_user_in_an_address_signs_in_and_is_not_shown() -> None:
    async def handler(request: web.Request) -> web.Response:
        return web.json_response(request.headers["Authorization"], status=500)

    def with_user(request: web.Request) -> str:
        return f"http://user:secret@{request.host}/"

    async def lead(request: web.Request) -> web.Response:
        if "Authorization" in request.headers:
            return await handler(request)
        raise web.HTTPFound(with_user(request))

    outcome = outcome_of(lead)
    assert outcome.result["data"] == basic("user:secret")
    assert "secret" not in repr(outcome)


@pytest.mark.parametrize(
    ("auth", "message"),
    [
        ("shop_api", "there is no credential `shop_api` here: give `auth` as a mapping"),
        ({"token": "secret"}, "`auth.type` must be one of `bearer`, `basic`, `api_key`, `oauth2`"),
        (
            {"kind": "static", "x": "secret"},
            "the credential has no `token`, `value` or `password` to sign in",
        ),
        (
            {"type": "oauth2", "client_id": "c"},
            "no credential of type `oauth2`: Object missing required field `access_token`",
        ),
        ({"type": "bearer", "token": "t", "tokn": "t"}, "`auth` of type `bearer` has no field `tokn`"),
        ({"type": "bearer"}, "no credential of type `bearer`: Object missing required field `token`"),
        ({"type": "basic", "username": "u", "password": 1}, "of type `basic`: Expected `str`, got `int`"),
        ({"type": "api_key", "value": "secret", "heder": "x"}, "has no field `heder`"),
        ({"type": "api_key", "value": "secret", "header": "x", "query": "y"}, "an API key goes into one"),
    ],
)
def test_a_credential_that_cannot_be_used_is_told(auth: Any, message: str) -> None:
    error = error_of(answer(), call(auth=auth))
    assert error.kind == "credential"
    assert message in error.message
    assert "secret" not in error.message


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"url": "example.com"}, "`example.com` is not an HTTP address: begin it with `https://`"),
        ({"url": "ftp://example.com"}, "is not an HTTP address"),
        ({"url": "http://"}, "`url` names no host"),
        ({"url": "http:///path"}, "`url` names no host"),
        ({"url": "http://a b/"}, "`url` names no host"),
        ({"url": "http://a:99999/"}, "`url` is no address: Port out of range"),
        ({"url": "http://[::1"}, "`url` is no address: Invalid IPv6 URL"),
        ({"url": 7}, "Expected `str`, got `int` - at `$.url`"),
        ({"method": "FETCH"}, "Invalid enum value 'FETCH' - at `$.method`"),
        ({"headers": {"a b": "c"}}, "`a b` is not the name of a header"),
        ({"headers": {"a": "b\r\nc: d"}}, "the header `a` holds a line break"),
        ({"auth": {"type": "bearer", "token": "a\nb"}}, "the header `Authorization` holds a line break"),
        ({"params": {"a": {"b": 1}}}, "`params.a` must be text, a number or a list of such values"),
        ({"form": {"a": [[1]]}}, "`form.a` must be text"),
        ({"json": {}, "body": "a"}, "`body` cannot stand beside `json`: a request has one body"),
        ({"auth": {"type": "bearer", "token": "t"}, "headers": {"authorization": "x"}}, "drop one of them"),
        ({"url": "http://u:p@h/", "headers": {"authorization": "x"}}, "`url` holds a user"),
    ],
)
def test_inputs_that_cannot_be_sent_are_told_before_anything_is(inputs: dict[str, Any], message: str) -> None:
    ((outcome,), seen) = run(answer(), call(**{"url": "/", **inputs}))
    assert outcome.error is not None
    assert (outcome.error.kind, outcome.error.retryable, seen) == ("input", False, [])
    assert message in outcome.error.message


def test_knobs_that_cannot_be_kept_are_told() -> None:
    assert "`spec.proxy` is no HTTP address" in error_of(answer(), call(spec={"proxy": "socks5://p"})).message
    assert error_of(answer(), call(spec={"verify": "none.pem"})).kind == "not_found"
    assert error_of(answer(), call(spec={"verify": __file__})).kind == "input"
    assert "Invalid enum value 'text'" in error_of(answer(), call(spec={"save_as": "text"})).message


async def parts(request: web.Request) -> web.Response:
    """The parts of a form, as JSON."""
    fields: list[list[str | None]] = []
    for name, part in (await request.post()).items():
        if isinstance(part, web.FileField):
            fields.append([name, part.filename, part.content_type, part.file.read().decode()])
        else:
            assert isinstance(part, str)
            fields.append([name, None, None, part])
    return web.json_response(fields)


def test_files_are_uploaded_beside_the_fields_of_a_form(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("a,b\n1,2\n")
    files = {
        "path": "data.csv",
        "typed": {"path": str(tmp_path / "data.csv"), "content_type": "text/csv", "filename": "other.csv"},
        "text": {"content": "ü", "filename": "a.txt"},
        "value": {"content": {"a": 1}},
    }
    headers = {"Content-Type": "multipart/form-data"}  # which lacks what only the form can say
    upload = call(method="POST", files=files, form={"n": [1, 2]}, headers=headers, folder=tmp_path)
    outcome = outcome_of(parts, upload)
    assert outcome.result["data"] == [
        ["n", None, None, "1"],
        ["n", None, None, "2"],
        ["path", "data.csv", "application/octet-stream", "a,b\n1,2\n"],
        ["typed", "other.csv", "text/csv", "a,b\n1,2\n"],
        ["text", "a.txt", "text/plain; charset=utf-8", "ü"],
        ["value", "value", "application/json", '{"a":1}'],
    ]


def test_a_file_is_sent_again_where_a_redirect_asks_for_it(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("content")

    async def handler(request: web.Request) -> web.Response:
        if request.path == "/":
            raise web.HTTPTemporaryRedirect("/end")
        return await parts(request)

    outcome = outcome_of(handler, call(method="POST", files={"f": "a.txt"}, folder=tmp_path))
    assert outcome.result["data"] == [["f", "a.txt", "application/octet-stream", "content"]]


@pytest.mark.parametrize(
    ("upload", "kind"),
    [
        ({"path": "none"}, "not_found"),
        ({"path": "."}, "input"),
        ({}, "input"),
    ],
)
def test_a_file_that_cannot_be_sent_is_named(tmp_path: Path, upload: dict[str, Any], kind: str) -> None:
    error = error_of(answer(), call(method="POST", files={"report": upload}, folder=tmp_path))
    assert error.kind == kind
    assert "file `report`" in error.message


def test_the_environment_names_no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert outcome_of(answer()).status == "ok"
