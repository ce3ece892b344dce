"""What every page has: search and commands, keys, theme, links, and the stream that all tabs share."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, Request, expect

from noetl.ports.http_api import StartExecution
from tests.server.server_process import ServerProcess
from tests.web.conftest import OpenPage

DOCUMENT = Path(__file__).parents[2] / "docs" / "page.md"


def test_search_finds_pages_playbooks_and_executions(server: ServerProcess, page: Page) -> None:
    expect(page.get_by_role("navigation", name="Pages")).to_be_visible()
    page.keyboard.press("/")
    box = page.get_by_role("combobox", name="Search pages, playbooks and executions")
    expect(box).to_be_focused()
    box.fill("shop/pri")
    expect(page.get_by_role("option").first).to_contain_text("shop/prices")
    box.press("Enter")
    expect(page).to_have_url(f"{server.url}/playbooks/shop/prices")
    page.keyboard.press("Control+k")
    page.get_by_role("combobox").fill("dark")
    page.keyboard.press("Enter")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")


def test_the_theme_is_kept_and_there_before_the_first_paint(page: Page) -> None:
    page.get_by_role("button", name="Theme").click()
    page.get_by_role("button", name="Dark").click()
    dark = page.evaluate("getComputedStyle(document.body.parentElement).backgroundColor")
    page.route("**/assets/main-*.js", lambda route: route.abort())
    page.reload(wait_until="commit")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    assert page.evaluate("getComputedStyle(document.body.parentElement).backgroundColor") == dark


def test_what_the_server_did_not_answer_is_asked_again(open_page: OpenPage) -> None:
    page = open_page("/workers")
    page.route("**/api/catalog?*", lambda route: route.abort())
    page.get_by_role("link", name="Playbooks", exact=True).click()
    problem = page.get_by_role("alert")
    expect(problem).to_contain_text("the server does not answer")
    page.unroute("**/api/catalog?*")
    problem.get_by_role("button").click()
    expect(problem).to_have_count(0)
    expect(page.get_by_role("table", name="Playbooks")).to_be_visible()


def test_all_tabs_have_the_theme_that_was_chosen_in_one(page: Page) -> None:
    other = page.context.new_page()
    other.goto("/")
    page.get_by_role("button", name="Theme").click()
    page.get_by_role("button", name="Dark").click()
    expect(other.locator("html")).to_have_attribute("data-theme", "dark")


def test_an_address_that_is_none_says_so(open_page: OpenPage) -> None:
    page = open_page("/executions/%E0%A4%A/of/nothing")
    expect(page.get_by_role("heading", name="There is no such page")).to_be_visible()


@pytest.mark.parametrize(
    ("key", "heading"),
    [
        ("h", "Home"),
        ("e", "Executions"),
        ("p", "Playbooks"),
        ("i", "Inbox"),
        ("w", "Workers"),
        ("c", "Credentials"),
        ("t", "Tokens"),
        ("a", "Audit"),
    ],
)
def test_two_keys_go_to_a_page(open_page: OpenPage, key: str, heading: str) -> None:
    page = open_page("/playbooks" if key != "p" else "/")
    expect(page.get_by_role("navigation", name="Pages")).to_be_visible()
    page.keyboard.type(f"g{key}")  # at once: the second key is waited for a second only
    title = page.get_by_role("heading", name=heading, level=1)
    expect(title).to_be_visible()
    expect(page).to_have_title(f"{heading} · NoETL")


def test_keys_do_nothing_while_somebody_types(page: Page) -> None:
    page.goto("/playbooks")
    field = page.get_by_label("Search", exact=True)
    field.focus()
    page.keyboard.type("ge?/")
    expect(field).to_have_value("ge?/")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.get_by_role("heading", name="Playbooks")).to_be_visible()


def test_the_help_says_what_the_documentation_says(page: Page) -> None:
    expect(page.get_by_role("navigation", name="Pages")).to_be_visible()
    page.keyboard.press("?")
    dialog = page.get_by_role("dialog", name="Keyboard")
    expect(dialog).to_be_visible()
    keys = dialog.locator("dt").evaluate_all(
        "all => all.map(dt => [[...dt.children].map(k => k.textContent).join(' '), dt.nextSibling.textContent])"
    )
    keyboard = DOCUMENT.read_text().partition("## Keyboard")[2]
    rows = re.findall(r"^\| `(.+?)` \| (.+?) \|$", keyboard, re.MULTILINE)
    assert [list(row) for row in rows] == keys
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)


def test_everything_is_reached_by_keyboard_alone(server: ServerProcess, page: Page) -> None:
    expect(page.get_by_role("navigation", name="Pages")).to_be_visible()
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Executions")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Executions", level=1)).to_be_focused()
    page.go_back()
    expect(page.get_by_role("heading", name="Home", level=1)).to_be_focused()
    assert page.url == f"{server.url}/"


def test_a_path_that_is_no_page_says_so(open_page: OpenPage) -> None:
    page = open_page("/nowhere")
    expect(page.get_by_role("heading", name="There is no such page")).to_be_visible()
    page.get_by_role("link", name="Go home").click()
    expect(page.get_by_role("heading", name="Home", level=1)).to_be_visible()


def test_eight_tabs_share_one_stream(server: ServerProcess, open_page: OpenPage) -> None:
    first = open_page("/executions")
    server.client.start(StartExecution(path="shop/hold", labels={"of": "the-first"}))
    expect(first.get_by_text("of=the-first")).to_be_visible()
    streams: list[str] = []

    def note_stream(request: Request) -> None:
        if "/api/stream" in request.url and request.frame.page != first:
            streams.append(request.url)

    first.context.on("request", note_stream)
    tabs = [first.context.new_page() for _ in range(7)]
    for tab in tabs:
        tab.goto("/executions")
    for tab in tabs:
        expect(
            tab.get_by_role("table", name="Executions").or_(tab.get_by_text("Nothing was run yet"))
        ).to_be_visible()
    assert streams == []
    label = "eight-tabs"
    server.client.start(StartExecution(path="shop/hold", labels={"of": label}))
    for tab in (first, *tabs):
        expect(tab.get_by_text(f"of={label}")).to_be_visible()
    # The tab that reads goes, and another one goes on.
    first.close()
    server.client.start(StartExecution(path="shop/hold", labels={"of": "after-the-first"}))
    for tab in tabs:
        expect(tab.get_by_text("of=after-the-first")).to_be_visible()
    assert len(streams) == 1
