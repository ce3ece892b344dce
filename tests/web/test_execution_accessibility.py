"""The page of an execution in both themes: nothing that axe finds, targets that a finger hits."""

import pytest
from playwright.sync_api import expect

from noetl.ports.http_api import StartExecution
from tests.server.server_process import ServerProcess
from tests.web import axe
from tests.web.conftest import OpenPage
from tests.web.page_playbooks import GATED, ORDERS


@pytest.fixture(scope="module")
def failed(server: ServerProcess) -> str:
    server.client.register(ORDERS)
    started = server.client.start(StartExecution(path="page/orders", workload={"broken": True}))
    server.client.wait(started.execution_id)
    return started.execution_id


@pytest.fixture(scope="module")
def running(server: ServerProcess) -> str:
    server.client.register(GATED)
    return server.client.start(StartExecution(path="page/gated")).execution_id


def test_axe_finds_nothing_in_any_view_in_either_theme(
    open_page: OpenPage, failed: str, running: str
) -> None:
    page = open_page("/")
    violations: dict[str, list[str]] = {}
    views = [f"?step=report&tab={tab}" for tab in ("why", "data", "logs", "attempts")]
    views += ["?view=events&at=9", "?view=console&outline=1"]
    for address in [*(f"/executions/{failed}{view}" for view in views), f"/executions/{running}"]:
        page.goto(address)
        expect(page.get_by_role("slider", name="Event")).to_be_visible()
        expect(page.locator(".loading")).to_have_count(0)
        violations[address] = axe.violations_in_both_themes(page)
    page.get_by_role("button", name="Fork here").click()
    expect(page.get_by_role("dialog")).to_be_visible()
    violations["fork"] = axe.violations_in_both_themes(page)
    page.goto(f"/compare/{failed}/{running}")
    expect(page.get_by_role("region", name="First difference")).to_be_visible()
    violations["compare"] = axe.violations_in_both_themes(page)
    assert {address: texts for address, texts in violations.items() if texts} == {}


def test_fingers_hit_everything_on_a_phone(open_page: OpenPage, failed: str) -> None:
    page = open_page(f"/executions/{failed}?step=report", width=360, height=740, touch=True)
    expect(page.get_by_role("tabpanel")).to_contain_text("report failed")
    assert page.evaluate(axe.SMALL_TARGETS) == []
