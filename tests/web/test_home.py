"""What needs somebody, at first sight."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from noetl.ports.http_api import StartExecution
from tests.server.server_process import ServerProcess, server_process
from tests.web.conftest import OpenPage
from tests.web.shop_playbooks import HOLD, NOTHING, PRICES


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """One of its own: what is counted here, no other test may start."""
    folder: Path = tmp_path_factory.mktemp("home")
    with server_process(folder) as process:
        yield process


def test_from_nothing_to_the_first_failure_without_reloading(
    server: ServerProcess, open_page: OpenPage
) -> None:
    page = open_page("/")
    expect(page.get_by_text("There is no playbook yet")).to_be_visible()
    expect(page.get_by_role("link", name="Write one")).to_be_visible()
    for text in (PRICES, HOLD, NOTHING):
        server.client.register(text)
    page.reload()
    expect(page.get_by_role("link", name="Run", exact=True)).to_have_count(3)
    for shop in ("bad; ask, or not", "bad; ask, or not", "bad, is there?"):
        server.client.start(StartExecution(path="shop/prices", workload={"shop": shop}))
    held = server.client.start(StartExecution(path="shop/hold")).execution_id
    row = page.get_by_role("listitem").filter(has_text=re.compile("shop/prices .2"))
    expect(row).to_contain_text("no price for bad")
    expect(page.get_by_role("listitem").filter(has_text="Waits for the signal go")).to_be_visible()
    expect(page.get_by_role("link", name="Inbox 1")).to_be_visible()
    expect(page.locator(".tile").filter(has_text="running")).to_contain_text("1")
    other = page.get_by_role("listitem").filter(has_text="no price for bad, is there?")
    expect(other).to_be_visible()
    row.get_by_role("button", name="Retry…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("2 executions can be retried.")
    expect(dialog).to_contain_text(
        "q=ValueError: no price for bad; ask, or not,status=failed,path=shop/prices,error_kind=python"
    )
    dialog.get_by_role("button", name="Retry 2 executions").click()
    expect(page.get_by_text("2 executions retried")).to_be_visible()
    row.get_by_role("link", name="Why").click()
    expect(page).to_have_url(re.compile("/executions/[0-9a-f-]{36}"))
    page.go_back()
    server.client.signal(held, "go")
    expect(page.get_by_role("listitem").filter(has_text="Waits for the signal go")).to_have_count(0)
