"""Every page, in both themes and three widths: nothing that axe finds, nothing cut, nothing that moves."""

import pytest
from playwright.sync_api import Page, expect

from noetl.ports.http_api import StartExecution
from tests.server.server_process import ServerProcess
from tests.web import axe
from tests.web.conftest import OpenPage
from tests.web.shop_playbooks import NOTHING

LONG = "shop/refunds-of-the-northern-warehouses-with-a-name-that-does-not-end/nightly-reconciliation"
PAGES = {
    "/": "Home",
    "/executions": "Executions",
    "/playbooks": "Playbooks",
    "/playbooks/shop/prices": "shop/prices",
    "/playbooks/shop/prices?step=start": "shop/prices",
    "/playbooks/shop/prices?tab=source": "shop/prices",
    "/playbooks/shop/prices?tab=versions": "shop/prices",
    "/playbooks/shop/prices?tab=runs": "shop/prices",
    "/playbooks/shop/prices?tab=durations": "shop/prices",
    "/run/shop/prices": "Run shop/prices",
    "/edit/shop/prices": "shop/prices",
    "/inbox": "Inbox",
    "/workers": "Workers",
    "/credentials": "Credentials",
    "/tokens": "Tokens",
    "/audit": "Audit",
    "/nowhere": "There is no such page",
    "/edit": "New playbook",
    f"/playbooks/{LONG}": LONG,
    f"/playbooks/{LONG}?tab=versions": LONG,
    f"/playbooks/{LONG}?step=a_step_whose_name_is_as_long_as_some_people_like_theirs": LONG,
    f"/run/{LONG}": f"Run {LONG}",
    f"/edit/{LONG}": LONG,
    "/executions/nothing": "Execution nothing",
    "/playbooks/shop/missing": "shop/missing",
}
SQUEEZED = """() => {
  const head = document.querySelector("h1");
  const style = getComputedStyle(head);
  const range = document.createRange();
  range.selectNodeContents(head);
  const text = [...range.getClientRects()].reduce((sum, box) => sum + box.width, 0);
  const room = document.querySelector("main").clientWidth - 24;
  const lines = Math.round(head.getBoundingClientRect().height / parseFloat(style.lineHeight));
  return lines > Math.ceil(text / Math.min(room, 500)) + 2 ? `the head has ${lines} lines` : "";
}"""
"""A head that has too little room beside its buttons."""
BROKEN_WORDS = """() => [...document.querySelectorAll("td, .badge, .status, .count, nav a")]
  .filter(cell => cell.checkVisibility() && cell.childElementCount === 0 && /^\\w{2,12}$/.test(cell.textContent))
  .filter(cell => { const range = document.createRange(); range.selectNodeContents(cell); return range.getClientRects().length > 1; })
  .map(cell => `broken: ${cell.textContent}`).join(", ")"""
"""Short words that had to be broken for want of room."""


@pytest.fixture(scope="module", autouse=True)
def _something_to_see(server: ServerProcess) -> None:
    client = server.client
    client.set_credential("shop-database", "static", {"user": "u", "password": "axe-secret"})
    for shop in ("north", "bad"):
        started = client.start(
            StartExecution(path="shop/prices", workload={"shop": shop}, labels={"team": "pricing"})
        )
        client.wait(started.execution_id, timeout=30)
    client.start(StartExecution(path="shop/hold"))
    name = "a_step_whose_name_is_as_long_as_some_people_like_theirs"
    text = NOTHING.replace("shop/nothing", LONG).replace("step: start", f"step: {name}")
    client.register(text)
    client.register(text.replace("- step:", f"- desc: {'It is described at length. ' * 5}\n  step:"))
    client.create_token("a-robot-with-a-name-that-is-too-long-for-the-column-of-a-table", "operator")


def _settle(page: Page, heading: str) -> None:
    expect(page.get_by_role("heading", name=heading, level=1)).to_be_visible()
    expect(page.locator(".loading")).to_have_count(0)
    if "/edit/" in page.url:
        expect(page.locator(".cm-content")).to_be_visible()


def test_axe_finds_nothing_on_any_page_in_either_theme(open_page: OpenPage) -> None:
    page = open_page("/")
    violations: dict[str, list[str]] = {}
    for path, heading in PAGES.items():
        page.goto(path)
        _settle(page, heading)
        violations[path] = axe.violations_in_both_themes(page)
    page.goto("/")
    _settle(page, "Home")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    violations["the help"] = axe.violations_in_both_themes(page)
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    expect(page.get_by_role("dialog")).to_be_visible()
    violations["the palette"] = axe.violations_in_both_themes(page)
    assert {path: texts for path, texts in violations.items() if texts} == {}


def test_axe_finds_nothing_at_the_login(open_page: OpenPage) -> None:
    page = open_page("/login", token="")
    expect(page.get_by_label("Token")).to_be_visible()
    assert axe.violations_in_both_themes(page) == []


@pytest.mark.parametrize("width", [360, 1024])
def test_nothing_is_wider_than_the_window_nor_moves(open_page: OpenPage, width: int) -> None:
    page = open_page("/login", width=width, touch=width < 640)
    wide: dict[str, str] = {}
    for path, heading in PAGES.items():
        page.goto(path)
        page.evaluate(
            "new PerformanceObserver(list => { for (const e of list.getEntries()) if (!e.hadRecentInput) globalThis.shift = (globalThis.shift ?? 0) + e.value }).observe({type: 'layout-shift', buffered: true})"
        )
        _settle(page, heading)
        beyond = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        shift = page.evaluate(
            "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(globalThis.shift ?? 0))))"
        )
        small = page.evaluate(axe.SMALL_TARGETS)
        squeezed = page.evaluate(SQUEEZED) or page.evaluate(BROKEN_WORDS)
        if beyond > 0 or shift > 0.001 or small or squeezed:
            wide[path] = f"{beyond} pixels beyond, shift {shift}, small targets {small}, {squeezed}"
    assert wide == {}


def test_no_secret_is_on_any_page(server: ServerProcess, open_page: OpenPage) -> None:
    page = open_page("/credentials")
    bodies: list[str] = []
    page.on(
        "response",
        lambda response: (
            bodies.append(response.text())
            if "/api/" in response.url and "stream" not in response.url
            else None
        ),
    )
    page.reload()
    expect(page.get_by_text("shop-database")).to_be_visible()
    seen = page.content() + "".join(bodies)
    assert "axe-secret" not in seen
    assert server.token not in seen
