"""Large values, long logs, children: opened in place, and never more than is looked at."""

import re

import pytest
from playwright.sync_api import Page, expect

from noetl.ports.http_api import StartExecution
from tests.server.server_process import ServerProcess
from tests.web.conftest import OpenPage
from tests.web.page_playbooks import LARGEST, ORDERS, PARENT, PARTS


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
    expect(value).to_contain_text("rows 1\u2013100 of 20\u202f000")
    expect(value.locator("tbody tr")).to_have_count(100)
    value.get_by_role("button", name="Next").click()
    expect(value).to_contain_text("rows 101\u2013200 of 20\u202f000")
    expect(value.locator("tbody tr")).to_have_count(100)
    expect(value.locator("tbody tr").first).to_contain_text("100")
    value.get_by_role("button", name="Previous").click()
    expect(value).to_contain_text("rows 1\u2013100 of")
    expect(value.get_by_role("button", name="Previous")).to_be_disabled()
    assert page.evaluate("document.querySelectorAll('*').length") < 3_000


@pytest.mark.timeout(180)
def test_a_result_as_large_as_a_task_may_have_stays_on_the_server(
    server: ServerProcess, open_page: OpenPage
) -> None:
    """Sixty megabytes, of which a page is read."""
    server.client.register(LARGEST)
    started = server.client.start(StartExecution(path="page/largest"))
    assert server.client.wait(started.execution_id, timeout=120).status == "completed"
    page = open_page("/")
    received: list[int] = []
    page.on("response", lambda response: received.append(int(response.headers.get("content-length", 0))))
    page.goto(f"/executions/{started.execution_id}?step=start&tab=data")
    value = page.get_by_role("tabpanel").locator(".stored").first
    expect(value).to_contain_text("kept apart, 58.8 MiB")
    value.get_by_role("button", name="Show 100 rows").click()
    expect(value).to_contain_text("rows 1\u2013100 of 60\u202f000", timeout=30_000)
    value.get_by_role("button", name="Next").click()
    expect(value.locator("tbody tr").first).to_contain_text("100", timeout=30_000)
    assert sum(received) < 1_000_000
    assert page.evaluate("document.querySelectorAll('*').length") < 3_000
    assert page.evaluate("performance.memory.usedJSHeapSize") < 50_000_000


def test_a_list_that_is_stored_in_parts_is_paged_like_any_other(
    server: ServerProcess, open_page: OpenPage
) -> None:
    server.client.register(PARTS)
    started = server.client.start(StartExecution(path="page/parts"))
    server.client.wait(started.execution_id)
    page = open_page("/")
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url) if "/results/" in request.url else None)
    page.goto(f"/executions/{started.execution_id}?step=start&tab=data")
    value = page.get_by_role("tabpanel").locator(".stored").first
    value.get_by_role("button", name="Show 100 rows").click()
    expect(value).to_contain_text("rows 1\u2013100 of 250")
    first = len(requests)
    assert 1 < first < 60
    rows = value.locator("tbody tr")
    expect(rows).to_have_count(100)
    value.get_by_role("button", name="Next").click()
    expect(value).to_contain_text("rows 101\u2013200 of 250")
    expect(rows.first).to_contain_text("row 100 of those")
    value.get_by_role("button", name="Next").click()
    expect(value).to_contain_text("rows 201\u2013250 of 250")
    expect(rows).to_have_count(50)
    expect(rows.last).to_contain_text("row 249 of those")
    expect(value.get_by_role("button", name="Next")).to_be_disabled()
    # None was read twice, and none before it was asked for.
    assert len(requests) < 3 * first


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


def test_a_tall_net_is_below_its_buttons(open_page: OpenPage, parent: str) -> None:
    page = open_page(f"/executions/{parent}", width=360, height=740)
    card = page.locator(".net-card[data-step=start]").bounding_box()
    choice = page.get_by_role("button", name="Outline").bounding_box()
    assert card is not None
    assert choice is not None
    assert card["y"] >= choice["y"] + choice["height"]


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
