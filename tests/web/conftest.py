"""A server with the page and a browser, which all tests of a process share."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal, TypeAlias

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    Request,
    expect,
    sync_playwright,
)

from noetl.web.assets import PAGE
from tests.server.server_process import ServerProcess, server_process
from tests.web.shop_playbooks import PLAYBOOKS

BROWSERS = (
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
)
collect_ignore_glob = ["test_*.py"] if os.environ.get("NOETL_TEST_BROWSER") == "no" else []

expect.set_options(timeout=60_000)  # for a machine that is busy with other things
OpenPage = Callable[..., Page]
Theme: TypeAlias = Literal["light", "dark"]


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """With playbooks, and nothing run yet. Tests run what they need, and look for that."""
    assert (PAGE / "index.html").is_file(), "the page is not built: scripts/web builds it"
    folder: Path = tmp_path_factory.mktemp("page")
    with server_process(folder, "--allow-local") as process:
        for text in PLAYBOOKS.values():
            process.client.register(text)
        yield process


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Its driver keeps an event loop in this thread: what runs one of its own must come before, or after."""
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    assert program is not None, "no Chromium is installed: scripts/test says how to get one"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()


class Watch:
    """What must never happen on a page: scripts that fail, the policy broken, requests to elsewhere."""

    def __init__(self, url: str) -> None:
        self.faults: list[str] = []
        self._url = url

    def follow(self, context: BrowserContext) -> None:
        context.on("console", self._on_console)
        context.on("weberror", lambda error: self.faults.append(f"error: {error.error}"))
        context.on("request", self._on_request)

    def _on_console(self, message: ConsoleMessage) -> None:
        # Chromium writes a line for each answer that is no success; whether that is right, a test says itself.
        if message.type == "error" and not message.text.startswith("Failed to load resource"):
            self.faults.append(f"console: {message.text}")

    def _on_request(self, request: Request) -> None:
        if not request.url.startswith((self._url, "data:", "blob:")):
            self.faults.append(f"request to elsewhere: {request.url}")


@pytest.fixture
def open_page(server: ServerProcess, browser: Browser) -> Iterator[OpenPage]:
    """Opens a path as who has the token (the administrator's), in a browser of its own; empty: as nobody."""
    watch = Watch(server.url)
    contexts: list[BrowserContext] = []

    def open_path(
        path: str,
        *,
        token: str | None = None,
        width: int = 1280,
        height: int = 800,
        theme: Theme = "light",
        touch: bool = False,
    ) -> Page:
        context = browser.new_context(
            base_url=server.url, viewport={"width": width, "height": height}, color_scheme=theme, has_touch=touch, timezone_id="Europe/Berlin", locale="en-GB"
        )  # fmt: skip
        contexts.append(context)
        watch.follow(context)
        secret = server.token if token is None else token
        if secret:
            headers = {"Origin": server.url, "Sec-Fetch-Site": "same-origin"}
            assert context.request.post("/api/session", data={"token": secret}, headers=headers).ok
        page = context.new_page()
        page.goto(path)
        return page

    yield open_path
    for context in contexts:
        context.close()
    assert watch.faults == []


@pytest.fixture
def page(open_page: OpenPage) -> Page:
    """At home, as the administrator."""
    return open_page("/")
