"""The list of executions: filters, live rows, keys, and what is done to many at once."""

import re
import uuid

import pytest
from playwright.sync_api import Page, expect

from noetl.ports.http_api import StartExecution
from tests.server.server_process import ServerProcess
from tests.web.conftest import OpenPage


def _start(server: ServerProcess, path: str, label: str, count: int = 1, **workload: object) -> list[str]:
    requests = [StartExecution(path=path, workload=workload, labels={"of": label}) for _ in range(count)]
    return [item.execution_id for item in server.client.start_many(requests).executions]


def _rows(page: Page) -> int:
    return page.locator(".grid-body [role=row]").count()


@pytest.fixture
def label() -> str:
    """Only what this test has started."""
    return uuid.uuid4().hex[:8]


def test_many_rows_are_a_few_elements(server: ServerProcess, open_page: OpenPage, label: str) -> None:
    _start(server, "shop/nothing", label, 230)
    page = open_page(f"/executions?label=of%3D{label}")
    table = page.get_by_role("table", name="Executions")
    expect(page.get_by_text("100 executions so far")).to_be_visible()
    body = page.locator(".grid-body")
    for count in ("200 executions so far", "230 executions"):
        body.evaluate("element => element.scrollTop = element.scrollHeight")
        expect(page.get_by_text(count, exact=True)).to_be_visible()
    expect(table).to_have_attribute("aria-rowcount", "231")
    body.evaluate("element => element.scrollTop = element.scrollHeight")
    expect(page.locator("[aria-rowindex='231']")).to_be_visible()
    assert page.evaluate("document.querySelectorAll('*').length") < 1_500


def test_the_filter_is_the_url(server: ServerProcess, open_page: OpenPage, label: str) -> None:
    _start(server, "shop/prices", label, shop="bad")
    _start(server, "shop/prices", label)
    page = open_page(f"/executions?label=of%3D{label}")
    expect(page.get_by_text("2 executions", exact=True)).to_be_visible()
    page.get_by_label("Status").select_option("failed")
    expect(page.get_by_text("1 execution", exact=True)).to_be_visible()
    assert "status=failed" in page.url
    page.reload()
    expect(page.get_by_label("Status")).to_have_value("failed")
    expect(page.get_by_text("1 execution", exact=True)).to_be_visible()
    page.get_by_label("Search", exact=True).fill("no price for bad")
    page.get_by_label("Search", exact=True).press("Enter")
    expect(page.get_by_text("1 execution", exact=True)).to_be_visible()
    page.get_by_label("Search", exact=True).fill("nothing like it")
    page.get_by_label("Search", exact=True).press("Enter")
    expect(page.get_by_text("None matches")).to_be_visible()


def test_what_starts_appears_without_reloading(
    server: ServerProcess, open_page: OpenPage, label: str
) -> None:
    _start(server, "shop/prices", label)
    page = open_page(f"/executions?label=of%3D{label}")
    expect(page.get_by_text("1 execution", exact=True)).to_be_visible()
    held = _start(server, "shop/hold", label)[0]
    row = page.get_by_role("row").filter(has=page.get_by_role("link", name="shop/hold"))
    expect(row).to_contain_text("running")
    server.client.cancel(held)
    expect(row).to_contain_text("cancelled")


def test_new_rows_wait_while_somebody_points_at_the_list(
    server: ServerProcess, open_page: OpenPage, label: str
) -> None:
    _start(server, "shop/prices", label, 3)
    page = open_page(f"/executions?label=of%3D{label}")
    expect(page.get_by_text("3 executions", exact=True)).to_be_visible()
    page.locator(".grid-body [role=row]").nth(1).hover()
    _start(server, "shop/hold", label)
    expect(page.get_by_role("button", name="Show 1 new one")).to_be_visible()
    assert _rows(page) == 3
    page.get_by_role("button", name="Show 1 new one").click()
    expect(page.get_by_role("link", name="shop/hold")).to_be_visible()


def test_keys_walk_along_the_rows_and_open_one(
    server: ServerProcess, open_page: OpenPage, label: str
) -> None:
    first, second = _start(server, "shop/prices", label, 2)
    page = open_page(f"/executions?label=of%3D{label}")
    expect(page.get_by_text("2 executions", exact=True)).to_be_visible()
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(page.locator(".grid-row.active")).to_have_attribute("aria-rowindex", "3")
    page.keyboard.press("x")
    expect(page.get_by_text("1 execution chosen")).to_be_visible()
    page.keyboard.press("o")
    expect(page).to_have_url(re.compile(f"/executions/({first}|{second})"))
    page.go_back()
    expect(page.get_by_role("table", name="Executions")).to_be_visible()


def test_chosen_executions_are_cancelled_together(
    server: ServerProcess, open_page: OpenPage, label: str
) -> None:
    _start(server, "shop/hold", label, 2)
    page = open_page(f"/executions?label=of%3D{label}")
    expect(page.get_by_text("2 executions", exact=True)).to_be_visible()
    page.get_by_label("Choose all rows that are loaded").check()
    page.get_by_role("button", name="Cancel…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("noetl executions cancel")
    dialog.get_by_role("button", name="Cancel 2 executions").click()
    expect(page.get_by_text("2 executions cancelled")).to_be_visible()
    expect(page.locator(".grid-body").get_by_text("cancelled")).to_have_count(2)


def test_chosen_executions_get_a_signal_with_what_it_brings(
    server: ServerProcess, open_page: OpenPage, label: str
) -> None:
    started = _start(server, "shop/hold", label, 2)
    page = open_page(f"/executions?label=of%3D{label}")
    expect(page.get_by_text("2 executions", exact=True)).to_be_visible()
    page.get_by_label("Choose all rows that are loaded").check()
    page.get_by_role("button", name="Signal…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("go")
    dialog.get_by_label("Payload").fill('{"by": "many"}')
    dialog.get_by_role("button", name="Signal 2 executions").click()
    expect(page.get_by_text("2 executions signalled")).to_be_visible()
    for execution_id in started:
        assert server.client.wait(execution_id, timeout=30).result == {"by": "many"}


def test_all_that_match_are_counted_before_they_are_retried(
    server: ServerProcess, open_page: OpenPage, label: str
) -> None:
    for execution_id in _start(server, "shop/prices", label, 2, shop="bad"):
        server.client.wait(execution_id, timeout=30)
    page = open_page(f"/executions?label=of%3D{label}&status=failed")
    expect(page.get_by_text("2 executions", exact=True)).to_be_visible()
    page.get_by_role("button", name="All that match the filter").click()
    page.get_by_role("button", name="Retry all that match…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("2 executions can be retried")
    expect(dialog).to_contain_text(f"noetl executions retry --where status=failed,label=of={label}")
    dialog.get_by_role("button", name="Retry 2 executions").click()
    expect(page.get_by_text("2 executions retried")).to_be_visible()


def test_what_is_refused_does_not_keep_the_others(
    server: ServerProcess, open_page: OpenPage, label: str
) -> None:
    for execution_id in _start(server, "shop/nothing", label) + _start(
        server, "shop/prices", label, shop="bad"
    ):
        server.client.wait(execution_id)
    page = open_page(f"/executions?label=of%3D{label}")
    expect(page.get_by_text("2 executions", exact=True)).to_be_visible()
    page.get_by_label("Choose all rows that are loaded").check()
    page.get_by_role("button", name="Retry…").click()
    page.get_by_role("dialog").get_by_role("button", name="Retry 2 executions").click()
    expect(page.get_by_text("1 execution retried")).to_be_visible()
    expect(page.get_by_text("1 execution not retried.")).to_be_visible()


def test_a_view_is_saved_under_a_name(open_page: OpenPage) -> None:
    page = open_page("/executions?path=shop%2F&status=failed")
    page.get_by_role("button", name="Save view").click()
    page.get_by_label("Name").fill("shop failures")
    page.get_by_label("Name").press("Enter")
    page.get_by_role("navigation", name="Views").get_by_role("link", name="All", exact=True).click()
    expect(page.get_by_label("Status")).to_have_value("")
    page.get_by_role("navigation", name="Views").get_by_role("link", name="shop failures").click()
    expect(page.get_by_label("Status")).to_have_value("failed")
    expect(page.get_by_label("Path")).to_have_value("shop/")
    page.get_by_role("button", name="Forget view").click()
    expect(page.get_by_role("link", name="shop failures")).to_have_count(0)


COPY = """element => {
  const clipboardData = new DataTransfer();
  element.dispatchEvent(new ClipboardEvent("copy", {clipboardData, bubbles: true, cancelable: true}));
  return clipboardData.getData("text/plain");
}"""


def test_a_copy_of_a_time_is_utc(server: ServerProcess, open_page: OpenPage, label: str) -> None:
    (execution_id,) = _start(server, "shop/prices", label)
    started = server.client.show(execution_id).started_at
    page = open_page(f"/executions?label=of%3D{label}")
    copied = page.locator(".grid-body time").first.evaluate(COPY)
    assert copied == started[:23] + "Z"


def test_times_are_in_the_zone_that_was_chosen(
    server: ServerProcess, open_page: OpenPage, label: str
) -> None:
    _start(server, "shop/prices", label)
    page = open_page(f"/executions?label=of%3D{label}")
    expect(page.get_by_text("Times in Europe/Berlin")).to_be_visible()
    time = page.locator(".grid-body time").first
    expect(time).to_have_attribute("title", re.compile(r"\+0[12]:00 Europe/Berlin\n.*Z$"))
    page.get_by_role("button", name="Time zone: Europe/Berlin").click()
    page.get_by_label("Search a time zone").fill("kolk")
    page.get_by_role("button", name=re.compile("Kolkata")).click()
    expect(time).to_have_attribute("title", re.compile(r"\+05:30 Asia/"))
    page.reload()
    expect(time).to_have_attribute("title", re.compile(r"\+05:30 Asia/"))
