"""Ten thousand events and a thousand steps: few elements, little memory, and every event a moment away."""

import re

import pytest
from playwright.sync_api import Page, expect

from noetl.ports.http_api import StartExecution
from tests.server.server_process import ServerProcess
from tests.web.conftest import OpenPage
from tests.web.page_playbooks import MANY, thousand_steps

MOST_ELEMENTS = 3_000
MOST_HEAP = 50_000_000
DRAG = """last => new Promise(done => {
  const slider = document.querySelector("input[type=range]");
  let moves = 0;
  const move = () => {
    slider.value = ++moves;
    slider.dispatchEvent(new Event("input", {bubbles: true}));
    moves < last ? setTimeout(move) : done();
  };
  move();
})"""


def _ended(server: ServerProcess, text: str, path: str) -> str:
    server.client.register(text)
    execution_id = server.client.start(StartExecution(path=path)).execution_id
    assert server.client.wait(execution_id).status == "completed"
    return execution_id


def _weigh(page: Page) -> None:
    assert page.evaluate("document.querySelectorAll('*').length") <= MOST_ELEMENTS
    assert page.evaluate("performance.memory.usedJSHeapSize") <= MOST_HEAP


@pytest.mark.timeout(120)
def test_ten_thousand_events_are_a_few_elements(server: ServerProcess, open_page: OpenPage) -> None:
    execution_id = _ended(server, MANY, "page/many")
    last = server.client.show(execution_id).events
    assert last > 10_000
    page = open_page(f"/executions/{execution_id}?view=events&step=start&tab=attempts")
    expect(page.get_by_role("tabpanel").locator("details")).to_have_count(100)
    page.get_by_role("slider", name="Event").fill("5000")
    expect(page.locator(".event-row.chosen .event-seq")).to_have_text("5000")
    expect(page.locator(".net-card[data-step=start]")).to_have_attribute("aria-label", "start, running")
    page.evaluate(DRAG, 400)
    expect(page.locator(".event-row.chosen .event-seq")).to_have_text("400")
    expect(page).to_have_url(re.compile("[?&]at=400(&|$)"))
    page.go_back()
    page.go_forward()
    expect(page.get_by_role("slider", name="Event")).to_have_value("400")
    page.get_by_label("Search events").fill("StepDone end")
    expect(page.get_by_role("option")).to_have_count(1)
    _weigh(page)


@pytest.mark.timeout(120)
def test_a_thousand_steps_are_one_canvas(server: ServerProcess, open_page: OpenPage) -> None:
    execution_id = _ended(server, thousand_steps(), "page/thousand")
    page = open_page(f"/executions/{execution_id}")
    net = page.get_by_role("group", name="Net of the execution")
    expect(net.get_by_role("button", name="start, completed")).to_be_visible()
    page.get_by_role("button", name="latest").click()
    page.get_by_role("button", name="Show all").first.click()
    net.focus()
    for _ in range(30):
        page.keyboard.press("+")
    expect(net.get_by_role("button").first).to_be_visible()
    page.get_by_role("button", name="Outline").click()
    tree = page.get_by_role("tree", name="Steps")
    tree.focus()
    page.keyboard.press("End")
    page.keyboard.press("Enter")
    expect(page.get_by_role("region", name="Step chain_19_49")).to_be_visible()
    page.get_by_role("button", name="Net", exact=True).click()
    expect(net.get_by_role("button", name="chain_19_49, completed")).to_be_visible()
    _weigh(page)
