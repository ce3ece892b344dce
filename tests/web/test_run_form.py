"""Starting from the form."""

import re

from playwright.sync_api import Page, expect

from noetl.ports.http_api import StartExecution
from tests.server.server_process import ServerProcess
from tests.web.conftest import OpenPage
from tests.web.shop_playbooks import PRICES


def _started(page: Page) -> str:
    """The id of the execution that the page has gone to."""
    expect(page).to_have_url(re.compile(r"/executions/[0-9a-f-]{36}"))
    match = re.search(r"/executions/([0-9a-f-]{36})", page.url)
    assert match is not None
    return match[1]


def test_an_execution_starts_with_what_the_form_says(server: ServerProcess, open_page: OpenPage) -> None:
    page = open_page("/run/shop/prices")
    page.get_by_label("shop text").fill("south")
    page.get_by_label("limit integer").fill("21")
    page.get_by_label("dry").check()
    page.get_by_role("button", name="Add an item").click()
    page.get_by_role("textbox", name="Item 3").fill("c")
    page.get_by_label("timeout integer").fill("5")
    page.get_by_label("Labels").fill("team=pricing")
    expect(page.get_by_text("noetl execute shop/prices --payload")).to_be_visible()
    page.get_by_role("button", name="Run", exact=True).click()
    detail = server.client.wait(_started(page), timeout=30)
    assert detail.workload == {
        "shop": "south",
        "limit": 21,
        "ratio": 0.5,
        "dry": True,
        "tags": ["a", "b", "c"],
        "source": {"url": "https://example.org/prices", "timeout": 5},
    }
    assert detail.labels == {"team": "pricing"}


def test_what_is_no_number_is_said_at_its_field(open_page: OpenPage) -> None:
    page = open_page("/run/shop/prices")
    page.get_by_label("limit integer").fill("many")
    expect(page.get_by_text("limit must be a number")).to_be_visible()
    expect(page.get_by_role("button", name="Run", exact=True)).to_be_disabled()


def test_keys_mean_nothing_while_a_text_is_written(server: ServerProcess, open_page: OpenPage) -> None:
    page = open_page("/run/shop/prices")
    page.get_by_role("button", name="JSON").click()
    field = page.get_by_label("The whole workload")
    field.fill("")
    field.press_sequentially('{"ge": "g?/"}')
    expect(field).to_have_value('{"ge": "g?/"}')
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page).to_have_url(f"{server.url}/run/shop/prices")


def test_half_a_json_text_starts_nothing(server: ServerProcess, open_page: OpenPage) -> None:
    text = PRICES.replace("path: shop/prices", "path: shop/listed").replace("tags: [a, b]", "tags: [{a: 1}]")
    server.client.register(text)
    page = open_page("/run/shop/listed")
    field = page.get_by_label("tags")
    field.fill('[{"a": 2')
    for name in ("Run", "Dry run"):
        page.get_by_role("button", name=name, exact=True).click()
        expect(field).to_be_focused()
    assert server.client.list(path="shop/listed").executions == []
    field.fill('[{"a": 2}]')
    page.get_by_role("button", name="Run", exact=True).click()
    assert server.client.wait(_started(page), timeout=30).workload["tags"] == [{"a": 2}]


def test_json_and_form_are_two_views_of_one_workload(open_page: OpenPage) -> None:
    page = open_page("/run/shop/prices")
    page.get_by_label("limit integer").fill("7")
    page.get_by_role("button", name="JSON").click()
    text = page.get_by_label("The whole workload")
    expect(text).to_have_value(re.compile('"limit": 7'))
    text.fill('{"limit": 8')
    expect(page.get_by_text("No JSON yet")).to_be_visible()
    expect(page.get_by_role("button", name="Run", exact=True)).to_be_disabled()
    text.fill('{"limit": 8, "shop": "west"}')
    page.get_by_role("button", name="Form").click()
    expect(page.get_by_label("shop text")).to_have_value("west")


def test_a_dry_run_records_nothing(server: ServerProcess, open_page: OpenPage) -> None:
    page = open_page("/run/shop/prices")
    before = len(server.client.list(path="shop/prices", limit=1_000).executions)
    page.get_by_role("button", name="Dry run").click()
    expect(page.get_by_role("region", name="Dry run")).to_contain_text("It would start")
    assert len(server.client.list(path="shop/prices", limit=1_000).executions) == before


def test_inputs_of_a_former_execution_are_taken_over(server: ServerProcess, open_page: OpenPage) -> None:
    request = StartExecution(path="shop/prices", workload={"limit": 77})
    execution_id = server.client.start(request).execution_id
    page = open_page(f"/run/shop/prices?from={execution_id}")
    expect(page.get_by_label("limit integer")).to_have_value("77")
    page.get_by_role("button", name="Back to the defaults").click()
    expect(page.get_by_label("limit integer")).to_have_value("10")
    page.get_by_role("button", name="Use its inputs").first.click()
    expect(page.get_by_label("limit integer")).to_have_value("77")


def test_a_draft_runs_without_being_saved(server: ServerProcess, open_page: OpenPage) -> None:
    page = open_page("/edit/shop/prices")
    expect(page.locator(".cm-content")).to_be_focused()
    page.get_by_role("button", name="Run draft…").click()
    page.get_by_role("dialog").get_by_label("limit integer").fill("3")
    page.get_by_role("dialog").get_by_role("button", name="Run", exact=True).click()
    detail = server.client.wait(_started(page), timeout=30)
    assert (detail.status, detail.workload["limit"], detail.version) == ("completed", 3, None)
