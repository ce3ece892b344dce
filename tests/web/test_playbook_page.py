"""A playbook: its net, its versions and what differs between them, its runs and how long they take."""

import re

import pytest
from playwright.sync_api import expect

from noetl.ports.http_api import StartExecution
from tests.server.server_process import ServerProcess
from tests.web.conftest import OpenPage
from tests.web.shop_playbooks import PRICES

PATH = "shop/editions"
FIRST = PRICES.replace("path: shop/prices", f"path: {PATH}")


@pytest.fixture(scope="module")
def executions(server: ServerProcess) -> list[str]:
    """One that completed and one that failed, of the second of three versions."""
    client = server.client
    client.register(FIRST)
    client.register(FIRST.replace("limit: 10", "limit: 20").replace("  ratio: 0.5\n", ""))
    ids = []
    for shop in ("north", "bad"):
        ids.append(client.start(StartExecution(path=PATH, workload={"shop": shop})).execution_id)
        client.wait(ids[-1])
    client.register(FIRST.replace("limit: 10", "limit: 30"))
    return ids


def test_two_versions_are_compared_line_by_line(open_page: OpenPage, executions: list[str]) -> None:
    page = open_page(f"/playbooks/{PATH}?tab=versions")
    difference = page.get_by_label("Differences")
    expect(page.get_by_text("2 lines added, 1 line removed")).to_be_visible()
    expect(difference.locator(".removed")).to_have_text(["-  limit: 20\n"])
    expect(difference.locator(".added")).to_have_text(["+  limit: 30\n", "+  ratio: 0.5\n"])
    page.get_by_label("from version").select_option("1")
    expect(page.get_by_text("1 line added, 1 line removed")).to_be_visible()
    expect(difference.locator(".removed")).to_have_text(["-  limit: 10\n"])
    expect(page).to_have_url(re.compile("with=1"))
    page.get_by_role("link", name="2", exact=True).click()
    expect(page.get_by_role("heading", name=f"{PATH}@2")).to_be_visible()
    expect(page.get_by_text("1 line added, 2 lines removed")).to_be_visible()
    page.go_back()
    expect(page.get_by_text("1 line added, 1 line removed")).to_be_visible()


def test_a_version_is_deleted_after_a_question(
    server: ServerProcess, open_page: OpenPage, executions: list[str]
) -> None:
    server.client.register(FIRST.replace("limit: 10", "limit: 40"))
    newest = server.client.versions(PATH).versions[0].version
    page = open_page(f"/playbooks/{PATH}@1?tab=versions")
    row = page.get_by_role("row").filter(has=page.get_by_role("link", name=str(newest), exact=True))
    row.get_by_role("button", name=f"Delete version {newest}").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text(f"noetl catalog delete {PATH}@{newest}")
    dialog.get_by_role("button", name="Delete the version").click()
    expect(page.get_by_text(f"Version {newest} of {PATH} deleted")).to_be_visible()
    expect(row).to_have_count(0)


def test_a_playbook_that_is_called_as_a_view_is_shown_and_edited(
    server: ServerProcess, open_page: OpenPage
) -> None:
    path = "shop/prices/versions"
    server.client.register(PRICES.replace("path: shop/prices", f"path: {path}"))
    page = open_page(f"/playbooks/{path}")
    expect(page.get_by_role("group", name=f"Net of {path}").get_by_role("button")).to_have_count(3)
    page.get_by_role("link", name="Source").click()
    expect(page.get_by_label("Source")).to_contain_text(f"path: {path},")
    page.get_by_role("link", name="Edit").click()
    expect(page.locator(".cm-content")).to_contain_text(f"path: {path},")


def test_a_path_may_have_characters_that_mean_something_in_an_address(
    server: ServerProcess, open_page: OpenPage
) -> None:
    path = "shop/50% off? #1 & more"
    server.client.register(PRICES.replace("path: shop/prices", f'path: "{path}"'))
    page = open_page("/playbooks")
    page.get_by_role("link", name=path).click()
    expect(page.get_by_role("group", name=f"Net of {path}").get_by_role("button")).to_have_count(3)
    page.reload()
    expect(page.get_by_role("heading", name=path)).to_be_visible()
    page.get_by_role("link", name="Run", exact=True).click()
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.locator(".execution-title").get_by_role("link", name=f"{path}@1")).to_be_visible()


def test_the_net_leads_to_the_lines_of_a_step(open_page: OpenPage, executions: list[str]) -> None:
    page = open_page(f"/playbooks/{PATH}")
    net = page.get_by_role("group", name=f"Net of {PATH}")
    net.get_by_role("button", name=re.compile("^report")).first.click()
    card = page.get_by_role("complementary")
    expect(card.get_by_role("heading", name="report")).to_be_visible()
    card.get_by_role("link", name=re.compile("^line [0-9]+")).click()
    expect(page.get_by_label("Source").locator(".chosen")).to_have_text("- step: report\n")


def test_runs_and_durations_are_those_of_the_playbook(open_page: OpenPage, executions: list[str]) -> None:
    page = open_page(f"/playbooks/{PATH}?tab=runs")
    expect(page.get_by_text("1 completed")).to_be_visible()
    expect(page.get_by_text("1 failed")).to_be_visible()
    for execution_id in executions:
        expect(page.locator(f"a[href='/executions/{execution_id}']")).to_be_visible()
    page.get_by_role("link", name="Durations").click()
    row = page.get_by_role("row").filter(has_text="start")
    expect(row.get_by_role("cell")).to_contain_text(["start", "2", "1"])
    page.set_viewport_size({"width": 360, "height": 740})
    region = page.get_by_role("region", name="Duration by step")
    assert region.evaluate("element => element.scrollWidth - element.clientWidth") == 0
