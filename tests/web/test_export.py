"""An exported execution: one file that shows what the page showed, at any event, without a server."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from noetl.ports.http_api import StartExecution
from tests.server.server_process import ServerProcess
from tests.web.conftest import OpenPage
from tests.web.page_playbooks import MANY, ORDERS, PARENT, PARTS

OpenFile = Callable[[Page], Page]


@pytest.fixture
def open_file(browser: Browser, tmp_path: Path) -> Iterator[OpenFile]:
    """Exports what a page shows, and opens the file in a browser that must ask nobody for anything."""
    contexts: list[BrowserContext] = []
    faults: list[str] = []

    def open_exported(page: Page) -> Page:
        with page.expect_download() as download:
            page.get_by_role("button", name="Export").click()
        file = tmp_path / "exported.html"
        download.value.save_as(file)
        assert "page-secret-4711" not in file.read_text()
        context = browser.new_context(viewport={"width": 1280, "height": 800})
        contexts.append(context)
        context.on("weberror", lambda error: faults.append(str(error.error)))
        context.on("request", lambda request: _check_address(request.url, faults))
        offline = context.new_page()
        offline.goto(file.as_uri())
        return offline

    yield open_exported
    for context in contexts:
        context.close()
    assert faults == []


def _check_address(url: str, faults: list[str]) -> None:
    if not url.startswith(("file:", "data:")):
        faults.append(url)


def _ended(server: ServerProcess, path: str) -> str:
    started = server.client.start(StartExecution(path=path))
    server.client.wait(started.execution_id)
    return started.execution_id


@pytest.fixture(scope="module")
def completed(server: ServerProcess) -> str:
    server.client.register(ORDERS)
    return _ended(server, "page/orders")


def test_an_export_is_read_without_a_server(open_page: OpenPage, open_file: OpenFile, completed: str) -> None:
    offline = open_file(open_page(f"/executions/{completed}"))
    offline.get_by_role("button", name="big, not reached").click()
    expect(offline.get_by_role("tabpanel")).to_contain_text("big did not run")
    offline.get_by_role("button", name="start, completed").first.click()
    offline.get_by_role("tab", name="Logs").click()
    expect(offline.get_by_role("log").get_by_text("priced order")).to_have_count(3)
    for name in ("Retry", "Fork here", "Compare"):
        expect(offline.get_by_role("button", name=name)).to_have_count(0)


def test_an_export_has_why_and_values_at_every_event(
    server: ServerProcess, open_page: OpenPage, open_file: OpenFile, completed: str
) -> None:
    last = server.client.show(completed).events
    page = open_page(f"/executions/{completed}?step=report&tab=data&at=6")
    offline = open_file(page)
    # It opens as the page looked.
    expect(offline.locator(".slider-number")).to_have_text(f"6/{last}")
    panel = offline.get_by_role("tabpanel")
    expect(panel).to_contain_text("report has not run at this event")
    for at in range(1, last + 1):
        offline.get_by_role("slider", name="Event").fill(str(at))
        expect(offline.locator(".slider-number")).to_have_text(f"{at}/{last}")
        expect(panel.locator(".data[aria-busy=false]")).to_be_visible()
        if at >= 6:
            expect(panel.locator(".data-part", has_text="workload")).to_contain_text("limit: 10")
    expect(panel.locator(".data-part", has_text="ctx")).to_contain_text("total: 30")
    offline.get_by_role("slider", name="Event").fill(str(last - 1))
    offline.get_by_role("tab", name="Attempts").click()
    expect(panel.locator("details").first).to_contain_text("total")


def test_an_export_has_the_first_rows_of_values_that_are_kept_apart(
    server: ServerProcess, open_page: OpenPage, open_file: OpenFile
) -> None:
    server.client.register(PARTS)
    execution_id = _ended(server, "page/parts")
    offline = open_file(open_page(f"/executions/{execution_id}?step=start&tab=data"))
    value = offline.get_by_role("tabpanel").locator(".stored").first
    value.get_by_role("button", name="Show 100 rows").click()
    expect(value).to_contain_text("rows 1\u2013100 of 250")
    expect(value.locator("tbody tr").last).to_contain_text("row 99 of those")
    expect(offline.get_by_role("link", name="Download")).to_have_count(0)
    value.get_by_role("button", name="Next").click()
    expect(value.get_by_role("alert")).to_contain_text("The file has the first rows")


def test_an_exported_child_opens_in_place(
    server: ServerProcess, open_page: OpenPage, open_file: OpenFile, completed: str
) -> None:
    server.client.register(PARENT)
    execution_id = server.client.start(StartExecution(path="page/parent")).execution_id
    page = open_page(f"/executions/{execution_id}")
    expect(page.locator(".net-card[data-step=talk]")).to_have_attribute(
        "aria-label", re.compile("^talk, waiting")
    )
    offline = open_file(page)
    rows = offline.get_by_role("list", name="Steps in time")
    rows.get_by_role("button", name="Open start").click()
    rows.get_by_role("button", name="Open orders").click()
    expect(rows.get_by_role("listitem")).to_have_count(6)
    rows.get_by_role("button", name=re.compile("^report, completed")).click()
    expect(offline.get_by_role("heading", name="page/parent")).to_be_visible()
    server.client.cancel(execution_id)


def test_an_export_of_a_large_execution_says_at_which_events_it_has_values(
    server: ServerProcess, open_page: OpenPage, open_file: OpenFile
) -> None:
    server.client.register(MANY.replace("2500", "400").replace("page/many", "page/hundreds"))
    execution_id = _ended(server, "page/hundreds")
    last = server.client.show(execution_id).events
    assert last > 500
    offline = open_file(open_page(f"/executions/{execution_id}?step=start&at=7"))
    panel = offline.get_by_role("tabpanel")
    expect(panel).to_contain_text("start is running")
    offline.get_by_role("slider", name="Event").fill("8")
    near = panel.get_by_role("alert")
    expect(near).to_contain_text("why and values at some: 7 and ")
    offline.get_by_role("slider", name="Event").fill(str(last))
    expect(panel).to_contain_text("start ran")
