"""A server that ends and starts again under an open page."""

from pathlib import Path

from playwright.sync_api import Browser, expect

from noetl.ports.http_api import StartExecution
from tests.server.server_process import server_process
from tests.web.shop_playbooks import HOLD


def test_the_page_says_that_it_is_stale_and_goes_on_by_itself(tmp_path: Path, browser: Browser) -> None:
    with server_process(tmp_path) as first:
        first.client.register(HOLD)
        first.client.start(StartExecution(path="shop/hold", labels={"of": "before"}))
        context = browser.new_context(base_url=first.url)
        headers = {"Origin": first.url, "Sec-Fetch-Site": "same-origin"}
        assert context.request.post("/api/session", data={"token": first.token}, headers=headers).ok
        page = context.new_page()
        page.goto("/executions")
        expect(page.get_by_text("of=before")).to_be_visible()
        port = first.url.rpartition(":")[2]
        first.stop()
    expect(page.get_by_text("The server does not answer")).to_be_visible(timeout=15_000)
    expect(page.get_by_text("of=before")).to_be_visible()
    with server_process(tmp_path, "--port", port) as second:
        second.client.start(StartExecution(path="shop/hold", labels={"of": "after"}))
        expect(page.get_by_text("of=after")).to_have_count(1, timeout=20_000)
        expect(page.get_by_text("The server does not answer")).to_have_count(0)
        expect(page.locator(".grid-body [role=row]")).to_have_count(2)
    context.close()
