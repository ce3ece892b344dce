"""Large values, long logs, children: opened in place, and never more than is looked at."""

import re

import pytest
from playwright.sync_api import Page, expect

from noetl.ports.http_api import StartExecution
from tests.server.server_process import ServerProcess
from tests.web.conftest import OpenPage
from tests.web.page_playbooks import ORDERS, PARENT


@pytest.fixture(scope="module")
def parent(server: ServerProcess) -> str:
    """Has run a child and made a large list, and waits for the signal `go`."""
    server.client.register(ORDERS)
    server.client.register(PARENT)
    return server.client.start(StartExecution(path="page/parent")).execution_id


def _card(page: Page, step: str, state: str) -> None:
    expect(page.locator(f".net-card[data-step={step}]")).to_have_attribute(
        "aria-label", re.compile(f"^{step}, {state}")
    )


def test_a_large_value_is_read_a_hundred_rows_at_a_time(open_page: OpenPage, parent: str) -> None:
    page = open_page(f"/executions/{parent}?step=rows&tab=data")
    _card(page, "talk", "waiting")
    value = page.get_by_role("tabpanel").locator(".stored")
    value.get_by_role("button", name="Show 100 rows").click()
    expect(value).to_contain_text("100 of 20\u202f000 rows")
    expect(value.locator("tbody tr")).to_have_count(100)
    value.get_by_role("button", name="Next 100 rows").click()
    expect(value).to_contain_text("200 of 20\u202f000 rows")
    assert page.evaluate("document.querySelectorAll('*').length") < 3_000


def test_a_child_opens_in_place_and_leads_to_its_page(open_page: OpenPage, parent: str) -> None:
    page = open_page(f"/executions/{parent}")
    _card(page, "talk", "waiting")
    rows = page.get_by_role("list", name="Steps in time")
    expect(rows.get_by_role("listitem")).to_have_count(3)
    rows.get_by_role("button", name="Open start").click()
    rows.get_by_role("button", name="Open orders").click()
    expect(rows.get_by_role("listitem")).to_have_count(6)
    rows.get_by_role("button", name=re.compile("^report, completed")).click()
    expect(page.get_by_role("heading", name="page/orders@1")).to_be_visible()
    expect(page.get_by_role("region", name="Step report")).to_be_visible()
    page.get_by_role("link", name="parent").click()
    expect(page.get_by_role("heading", name="page/parent@1")).to_be_visible()


def test_the_axis_leads_to_the_event_of_that_time(open_page: OpenPage, parent: str) -> None:
    page = open_page(f"/executions/{parent}")
    _card(page, "talk", "waiting")
    axis = page.locator(".timeline-axis")
    axis.click(position={"x": 175, "y": 12})
    expect(page.locator(".slider-number")).to_have_text(re.compile("^[1-9]/"))
    _card(page, "rows", "not reached")


def test_the_log_is_that_of_the_event(open_page: OpenPage, parent: str) -> None:
    page = open_page(f"/executions/{parent}?tab=logs")
    _card(page, "talk", "waiting")
    log = page.get_by_role("log", name="Log")
    expect(log.get_by_text("line 299")).to_be_visible()
    page.get_by_role("slider", name="Event").fill("3")
    expect(page.get_by_role("tabpanel")).to_contain_text("has written nothing up to this event")


def test_who_scrolls_up_in_the_log_reads_in_peace(
    server: ServerProcess, open_page: OpenPage, parent: str
) -> None:
    page = open_page(f"/executions/{parent}?tab=logs")
    log = page.get_by_role("log", name="Log")
    expect(log.get_by_text("line 299")).to_be_visible()
    log.evaluate("element => element.scrollTop = 400")
    follow = page.get_by_role("button", name="Follow the end")
    expect(follow).to_be_visible()
    top = log.evaluate("element => element.scrollTop")
    server.client.signal(parent, "go")
    _card(page, "more", "completed")
    assert log.evaluate("element => element.scrollTop") == top
    follow.click()
    expect(log.get_by_text("the last line")).to_be_visible()
    expect(log.get_by_text("the last line")).to_have_count(1)
