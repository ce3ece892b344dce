"""Where the net and the time were moved to stands in the address: it survives a reload, and Back leads to it."""

import re
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Locator, Page, expect

from noetl.ports.http_api import StartExecution
from tests.server.server_process import ServerProcess
from tests.web.conftest import OpenPage
from tests.web.page_playbooks import ORDERS

ZOOMED = re.compile(r"[?&]zoom=")


@pytest.fixture(scope="module")
def ended(server: ServerProcess) -> str:
    server.client.register(ORDERS)
    started = server.client.start(StartExecution(path="page/orders"))
    server.client.wait(started.execution_id)
    return started.execution_id


def _card(page: Page, step: str = "start") -> Locator:
    return page.locator(f".net-card[data-step={step}]")


def _width(page: Page) -> float:
    bounds = _card(page).bounding_box()
    assert bounds is not None
    return bounds["width"]


def _pixels(width: float) -> re.Pattern[str]:
    """A length in CSS that begins with as many whole pixels."""
    return re.compile(rf"^{int(width)}(\.|px)")


def _entries(page: Page) -> int:
    length = page.evaluate("history.length")
    assert isinstance(length, int)
    return length


def test_a_zoomed_net_is_the_same_after_a_reload_and_makes_no_entries(
    open_page: OpenPage, ended: str
) -> None:
    page = open_page(f"/executions/{ended}")
    expect(_card(page)).to_be_visible()
    entries, width = _entries(page), _width(page)
    for _ in range(3):
        page.get_by_role("group", name="Zoom", exact=True).get_by_role("button", name="Zoom in").click()
    expect(page).to_have_url(re.compile(r"zoom=1\.95"))  # of the last click: each is written after a rest
    assert _entries(page) == entries
    zoomed = _card(page).bounding_box()
    assert zoomed is not None
    assert zoomed["width"] > width * 1.5
    page.reload()
    expect(_card(page)).to_be_visible()
    again = _card(page).bounding_box()
    assert again is not None
    assert dict(again) == pytest.approx(dict(zoomed), abs=2)
    page.get_by_role("group", name="Zoom", exact=True).get_by_role("button", name="Show all").click()
    expect(page).not_to_have_url(ZOOMED)
    assert _width(page) == pytest.approx(width, abs=1)


def test_a_dragged_net_says_in_the_address_what_is_in_its_middle(open_page: OpenPage, ended: str) -> None:
    page = open_page(f"/executions/{ended}?zoom=1,0,0")
    before = _card(page).bounding_box()
    window = page.locator(".net-window").bounding_box()
    assert before is not None
    assert window is not None
    page.mouse.move(window["x"] + 20, window["y"] + window["height"] - 20)
    page.mouse.down()
    page.mouse.move(window["x"] + 60, window["y"] + window["height"] - 50, steps=4)
    page.mouse.up()
    expect(page).to_have_url(re.compile(r"zoom=1%2C-40%2C30"))
    after = _card(page).bounding_box()
    assert after is not None
    assert (after["x"] - before["x"], after["y"] - before["y"]) == pytest.approx((40, -30), abs=1)


def test_back_and_forward_lead_to_where_the_net_stood(open_page: OpenPage, ended: str) -> None:
    page = open_page(f"/executions/{ended}")
    expect(_card(page)).to_be_visible()
    fitted = _width(page)
    zoom_in = page.get_by_role("group", name="Zoom", exact=True).get_by_role("button", name="Zoom in")
    zoom_in.click()
    # It is drawn with the next frame.
    expect(_card(page)).not_to_have_css("width", _pixels(fitted))
    larger = _width(page)
    # At once after the zoom: it is written before the choice makes an entry of its own.
    _card(page).click()
    expect(page).to_have_url(re.compile("step=start"))
    zoom_in.click()
    expect(page).to_have_url(re.compile(r"zoom=1\.5"))
    expect(_card(page)).not_to_have_css("width", _pixels(larger))
    largest = _width(page)
    assert fitted < larger < largest
    page.go_back()
    expect(page.get_by_role("region", name="The execution")).to_be_visible()
    expect(_card(page)).to_have_css("width", _pixels(larger))
    page.go_forward()
    expect(_card(page)).to_have_css("width", _pixels(largest))


def test_a_step_that_comes_into_view_by_its_choice_is_there_after_a_reload(
    open_page: OpenPage, ended: str
) -> None:
    page = open_page(f"/executions/{ended}?zoom=3,-400,0")
    page.get_by_role("button", name=re.compile("^report, completed, ")).click()
    expect(page).to_have_url(re.compile("step=report"))
    expect(_card(page, "report")).to_be_in_viewport()
    expect(page).not_to_have_url(re.compile("-400"))
    page.reload()
    expect(_card(page, "report")).to_be_in_viewport()


@pytest.mark.parametrize("text", ["1", "a,b,c", "1,2,NaN", "1,99999999,-99999999", "0,0,0", "1e9,0,0"])
def test_a_zoom_that_means_nothing_still_shows_something_of_the_net(
    open_page: OpenPage, ended: str, text: str
) -> None:
    page = open_page(f"/executions/{ended}?zoom={text}")
    expect(page.get_by_role("region", name="Net")).to_be_visible()
    page.get_by_role("group", name="Zoom", exact=True).get_by_role("button", name="Show all").click()
    expect(_card(page)).to_be_in_viewport()


def test_the_net_of_a_playbook_is_in_the_address_too(open_page: OpenPage, ended: str) -> None:
    page = open_page("/playbooks/page/orders@1?zoom=2,0,0")
    expect(_card(page)).to_be_visible()
    width = _width(page)
    page.get_by_role("button", name="Show all").click()
    expect(page).not_to_have_url(ZOOMED)
    assert _width(page) < width


def test_a_part_of_the_time_is_the_same_after_a_reload(open_page: OpenPage, ended: str) -> None:
    page = open_page(f"/executions/{ended}")
    tools = page.get_by_role("group", name="Zoom in time")
    entries = _entries(page)
    tools.get_by_role("button", name="Zoom in").click()
    expect(page).to_have_url(re.compile("range="))
    assert _entries(page) == entries
    (text,) = parse_qs(urlsplit(page.url).query)["range"]
    page.reload()
    expect(tools.get_by_role("button", name="Show all")).to_be_enabled()
    assert parse_qs(urlsplit(page.url).query)["range"] == [text]
    tools.get_by_role("button", name="Show all").click()
    expect(page).not_to_have_url(re.compile("range="))
    expect(tools.get_by_role("button", name="Show all")).to_be_disabled()
