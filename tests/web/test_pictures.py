"""The pictures of the documentation are made from the page: a picture that shows something else fails here.

`NOETL_PICTURES=write scripts/test tests/web/test_pictures.py` makes them again.
"""

import os
import re
from collections import Counter
from html import unescape
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from noetl.ports.http_api import StartExecution
from tests.server.server_process import ServerProcess
from tests.web.page_playbooks import ORDERS

RECORDER = (Path(__file__).parent / "page_picture.js").read_text()
PICTURES = Path(__file__).parents[2] / "docs" / "pictures"
TIMES = re.compile(r"^\+|\b(µs|ms|s|min|ago|now)\b|began|^#+(:#+)*$")


@pytest.fixture(scope="module")
def failed(server: ServerProcess) -> str:
    server.client.register(ORDERS)
    started = server.client.start(StartExecution(path="page/orders", workload={"broken": True}))
    server.client.wait(started.execution_id)
    return started.execution_id


def _open(browser: Browser, server: ServerProcess, path: str, width: int, height: int) -> Page:
    context = browser.new_context(base_url=server.url, viewport={"width": width, "height": height})
    context.add_init_script(RECORDER)
    headers = {"Origin": server.url, "Sec-Fetch-Site": "same-origin"}
    assert context.request.post("/api/session", data={"token": server.token}, headers=headers).ok
    page = context.new_page()
    page.goto(path)
    return page


def _texts(svg: str) -> Counter[str]:
    """All that is written on it; without times, numbers and ids, which differ each time."""
    written = re.findall("<text [^>]*>([^<]*)</text>", svg)
    texts = (re.sub(r"\b[0-9a-f]{8}\b|\d+", "#", unescape(line)) for line in written)
    return Counter(text for text in texts if not TIMES.search(text))


@pytest.mark.parametrize(
    ("name", "query"),
    [("execution.svg", "?step=report"), ("execution-why-not.svg", "?step=big&at=21")],
)
def test_a_picture_shows_the_page_as_it_is(
    browser: Browser, server: ServerProcess, failed: str, name: str, query: str
) -> None:
    page = _open(browser, server, f"/executions/{failed}{query}", 1280, 760)
    expect(page.get_by_role("tabpanel")).to_contain_text(re.compile("report failed|big did not run"))
    expect(page.locator(".loading")).to_have_count(0)
    expect(page.get_by_role("heading", name="page/orders@1")).to_be_visible()
    page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    svg = page.evaluate("pagePicture()")
    page.context.close()
    if os.environ.get("NOETL_PICTURES") == "write":
        (PICTURES / name).write_text(svg)
    assert _texts(svg) == _texts((PICTURES / name).read_text())
