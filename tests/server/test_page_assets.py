"""How the built page is served."""

import asyncio
from collections.abc import MutableMapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from noetl.web.assets import CONTENT_SECURITY_POLICY, PageRoute

INDEX = '<!doctype html><base href="/"><script type="module" src="assets/main-ABC.js"></script>'


def _health(_request: Request) -> Response:
    return PlainTextResponse("ok")


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes


class PageServer:
    """Asks the application itself: what is served depends on no socket."""

    def __init__(self, folder: Path) -> None:
        route = PageRoute(("/api", "/healthz"), folder)
        self._application = Starlette(routes=[Route("/healthz", _health, methods=["GET"]), route])

    def ask(self, path: str, method: str = "GET", **headers: str) -> Answer:
        messages: list[MutableMapping[str, Any]] = []

        async def receive() -> MutableMapping[str, Any]:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: MutableMapping[str, Any]) -> None:
            messages.append(message)

        pairs = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
        scope = {
            "type": "http",
            "method": method,
            "path": unquote(path),
            "query_string": b"",
            "headers": pairs,
        }
        asyncio.run(self._application(scope, receive, send))
        start, *parts = messages
        named = {name.decode(): value.decode() for name, value in start["headers"]}
        return Answer(start["status"], named, b"".join(part["body"] for part in parts))


@pytest.fixture
def pages(tmp_path: Path) -> PageServer:
    (tmp_path / "assets").mkdir()
    (tmp_path / "index.html").write_text(INDEX)
    (tmp_path / "secret.txt").write_text("no")
    (tmp_path / "assets" / "main-ABC.js").write_text("export {}")
    (tmp_path / "assets" / "main-ABC.js.gz").write_bytes(b"packed")
    return PageServer(tmp_path)


@pytest.mark.parametrize(
    "path", ["/", "/executions/01a1", "/playbooks/shop/prices@3", "/apiary", "/secret.txt"]
)
def test_every_place_of_the_page_is_its_index(pages: PageServer, path: str) -> None:
    answer = pages.ask(path)
    assert (answer.status, answer.body.decode()) == (200, INDEX)
    assert answer.headers["content-security-policy"] == CONTENT_SECURITY_POLICY
    assert answer.headers["cache-control"] == "no-cache"
    assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/api", 404),
        ("GET", "/api/nothing", 404),
        ("POST", "/healthz", 405),
        ("POST", "/executions", 404),
    ],
)
def test_what_is_not_the_pages_stays_what_it_was(
    pages: PageServer, method: str, path: str, status: int
) -> None:
    assert pages.ask(path, method).status == status


def test_an_asset_is_good_for_ever_and_packed_for_who_takes_that(pages: PageServer) -> None:
    plain = pages.ask("/assets/main-ABC.js", accept_encoding="identity")
    assert plain.body == b"export {}"
    assert plain.headers["content-type"] == "text/javascript; charset=utf-8"
    assert plain.headers["cache-control"] == "public, max-age=31536000, immutable"
    packed = pages.ask("/assets/main-ABC.js", accept_encoding="br, gzip")
    assert packed.body == b"packed"
    assert (packed.headers["content-encoding"], packed.headers["vary"]) == ("gzip", "Accept-Encoding")


@pytest.mark.parametrize(
    "path", ["/assets/none-ABC.js", "/assets/..%2fsecret.txt", "/assets/main-ABC.js.gz", "/assets/"]
)
def test_an_asset_that_is_not_there_is_not_the_index(pages: PageServer, path: str) -> None:
    assert pages.ask(path).status == 404


@pytest.mark.parametrize(
    ("prefix", "base"),
    [
        ("/flows", "/flows/"),
        ("/a/b/", "/a/b/"),
        ('/"><script>', "/"),
        ("//evil.example", "/"),
        ("flows", "/"),
    ],
)
def test_behind_a_proxy_links_begin_at_its_path(pages: PageServer, prefix: str, base: str) -> None:
    answer = pages.ask("/", x_forwarded_prefix=prefix)
    assert f'<base href="{base}">' in answer.body.decode()


def test_a_page_that_is_not_built_says_so(tmp_path: Path) -> None:
    answer = PageServer(tmp_path).ask("/")
    assert answer.status == 404
    assert "scripts/web builds the page" in answer.body.decode()
