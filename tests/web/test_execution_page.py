"""One execution: what failed and why, what was not reached and why not, and the same at any event."""

import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from noetl.ports.http_api import StartExecution
from tests.cli.command_line import run
from tests.server.server_process import ServerProcess
from tests.web.conftest import OpenPage
from tests.web.page_playbooks import ORDERS


@pytest.fixture(scope="module")
def failed(server: ServerProcess) -> str:
    """Three orders, no big ones, and a report that failed twice."""
    server.client.register(ORDERS)
    return _ended(server, broken=True)


@pytest.fixture(scope="module")
def completed(server: ServerProcess, failed: str) -> str:
    return _ended(server)


def _ended(server: ServerProcess, **workload: Any) -> str:
    started = server.client.start(StartExecution(path="page/orders", workload=workload))
    server.client.wait(started.execution_id)
    return started.execution_id


def _details(page: Page) -> Any:
    return page.get_by_role("tabpanel")


def test_a_failure_says_what_where_and_with_what(open_page: OpenPage, failed: str) -> None:
    page = open_page(f"/executions/{failed}")
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("report (total, attempt 2)")
    expect(alert).to_contain_text("no total for the orders")
    expect(alert).to_contain_text('{"broken":true,"count":3}')
    expect(alert.get_by_role("link", name=re.compile("line [0-9]+"))).to_have_attribute(
        "href", re.compile(r"/playbooks/page/orders@1\?tab=source&line=\d+")
    )
    expect(page.get_by_role("heading", name="page/orders@1")).to_be_visible()
    alert.get_by_role("button", name="report").click()
    expect(_details(page)).to_contain_text("report failed")
    page.get_by_role("tab", name="Attempts").click()
    attempts = _details(page).locator("details")
    expect(attempts).to_have_count(2)
    expect(attempts.nth(0)).to_contain_text("retry")
    expect(attempts.nth(1)).to_contain_text("raise ValueError")


def test_a_step_that_nothing_came_to_says_why_not(open_page: OpenPage, completed: str) -> None:
    page = open_page(f"/executions/{completed}")
    page.get_by_role("button", name="big, not reached").click()
    details = _details(page)
    expect(details).to_contain_text("big did not run")
    expect(details).to_contain_text("event.loop.total >= workload.limit")
    expect(details.locator(".why-reads")).to_contain_text(re.compile(r"event\.loop\.total\s*3"))
    expect(details.locator(".why-reads")).to_contain_text(re.compile(r"workload\.limit\s*10"))


def test_the_tabs_of_the_details_are_walked_with_arrows(open_page: OpenPage, completed: str) -> None:
    page = open_page(f"/executions/{completed}?step=report")
    why, data, attempts = (page.get_by_role("tab", name=name) for name in ("Why", "Data", "Attempts"))
    why.press("ArrowRight")
    expect(data).to_be_focused()
    expect(data).to_have_attribute("aria-selected", "true")
    data.press("ArrowLeft")
    expect(why).to_be_focused()
    why.press("ArrowLeft")
    expect(attempts).to_be_focused()


def test_an_ended_execution_is_forked_from_its_last_event_that_leads_on(
    server: ServerProcess, open_page: OpenPage, completed: str
) -> None:
    page = open_page(f"/executions/{completed}")
    page.get_by_role("button", name="Fork here").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("region", name="What the fork would do")).to_contain_text("events copied")
    dialog.get_by_role("button", name="Fork at event").click()
    expect(page.locator(".execution-title").get_by_role("link", name="forked: compare")).to_be_visible()
    expect(page.locator(".execution-title [role=status]")).to_have_text("completed")


ABSENT = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: absent, path: page/absent}
workflow:
- step: start
  tool: {kind: noop, args: {}}
  next: {arcs: [{step: rare, when: "{{ workload.wanted | default(false) }}"}]}
- step: rare
  tool: {kind: noop, args: {}}
"""


def test_a_guard_that_read_nothing_says_so(server: ServerProcess, open_page: OpenPage) -> None:
    execution_id = server.client.start(StartExecution(playbook=ABSENT)).execution_id
    server.client.wait(execution_id)
    page = open_page(f"/executions/{execution_id}?step=rare")
    expect(_details(page).locator(".why-reads")).to_have_text("workload.wantedis not there")


def test_every_panel_shows_what_replay_says(
    server: ServerProcess, open_page: OpenPage, completed: str, tmp_path: Path
) -> None:
    page = open_page(f"/executions/{completed}?step=report&tab=data")
    last = server.client.show(completed).events
    for at in (1, last // 3, last // 2, last - 1):
        page.get_by_role("slider", name="Event").fill(str(at))
        expect(page.locator(".slider-text")).to_contain_text(f"{at}/{last}")
        replayed = run(
            "executions", "replay", completed, "--at", str(at), "-o", "json", cwd=tmp_path, env=_env(server)
        )
        state = replayed.json
        for step in ("start", "big", "report"):
            status = state["steps"].get(step, {}).get("status")
            label = re.compile(f"^{step}, {status or '(not reached|waiting)'}")
            expect(page.locator(f".net-card[data-step={step}]")).to_have_attribute("aria-label", label)
        expect(page.locator(".timeline-row")).to_have_count(len(state["steps"]))
        if at < last - 1:
            expect(_details(page)).to_contain_text("report has not run at this event")
        expect(page).to_have_url(re.compile(f"[?&]at={at}(&|$)"))
    expect(_details(page).locator(".data-part", has_text="ctx")).to_contain_text("total: 30")


def _env(server: ServerProcess) -> dict[str, str]:
    return {"NOETL_SERVER": server.url, "NOETL_HOME": str(server.home)}


def test_keys_walk_through_the_events(open_page: OpenPage, completed: str) -> None:
    page = open_page(f"/executions/{completed}?at=5")
    position = page.locator(".slider-number")
    expect(position).to_have_text(re.compile("^5/"))
    page.keyboard.press("]")
    expect(position).to_have_text(re.compile("^6/"))
    page.keyboard.press("[")
    page.keyboard.press("[")
    expect(position).to_have_text(re.compile("^4/"))
    page.keyboard.press("l")
    expect(page.get_by_role("button", name="latest")).to_have_attribute("aria-pressed", "true")
    net = page.get_by_role("group", name="Net of the execution")
    net.get_by_role("button", name=re.compile("^start,")).focus()
    page.keyboard.press("ArrowDown")
    focused = page.locator(":focus")
    expect(focused).to_have_attribute("data-step", re.compile("big|report"))
    page.keyboard.press("Enter")
    expect(page.get_by_role("region", name=re.compile("^Step (big|report)"))).to_be_visible()
    page.get_by_role("tab", name="Why").focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("tab", name="Data")).to_be_focused()


def test_keys_lead_from_error_to_error_and_the_end_is_followed(
    server: ServerProcess, open_page: OpenPage, failed: str
) -> None:
    events = server.client.events(failed).events
    errors = [event["seq"] for event in events if event["status"] == "error"]
    assert len(errors) > 3
    page = open_page(f"/executions/{failed}?at=1")
    slider = page.get_by_role("slider", name="Event")
    expect(slider).to_have_value("1")
    for seq in errors[:3]:
        page.keyboard.press("}")
        expect(slider).to_have_value(str(seq))
    page.keyboard.press("{")
    expect(slider).to_have_value(str(errors[1]))
    page.keyboard.press("{")
    page.keyboard.press("{")
    expect(slider).to_have_value(str(errors[0]))
    latest = page.get_by_role("button", name="latest")
    expect(latest).to_have_attribute("aria-pressed", "false")
    slider.press("End")
    expect(latest).to_have_attribute("aria-pressed", "true")
    expect(page).not_to_have_url(re.compile("[?&]at="))
    slider.press("ArrowLeft")
    expect(page).to_have_url(re.compile(f"[?&]at={len(events) - 1}(&|$)"))


def test_the_outline_does_what_the_picture_does(open_page: OpenPage, completed: str) -> None:
    page = open_page(f"/executions/{completed}?outline=1")
    tree = page.get_by_role("tree", name="Steps")
    expect(tree.get_by_role("treeitem")).to_have_count(3)
    tree.focus()
    page.keyboard.press("End")
    page.keyboard.press("Enter")
    expect(page.get_by_role("region", name="Step report")).to_be_visible()
    expect(tree.locator("[aria-selected=true]")).to_contain_text("completed")


def test_an_address_leads_back_to_the_same_view(open_page: OpenPage, completed: str) -> None:
    page = open_page(f"/executions/{completed}")
    page.get_by_role("button", name="report, completed").first.click()
    page.get_by_role("button", name="start, completed").first.click()
    page.get_by_role("tab", name="Logs").click()
    expect(_details(page)).to_contain_text("priced order 1")
    page.reload()
    expect(_details(page)).to_contain_text("priced order 1")
    page.go_back()
    expect(page.get_by_role("region", name="Step report")).to_be_visible()
    page.go_back()
    expect(page.get_by_role("region", name="The execution")).to_be_visible()


def test_events_are_searched_and_lead_to_their_moment(open_page: OpenPage, completed: str) -> None:
    page = open_page(f"/executions/{completed}?view=events")
    page.get_by_label("Search events").fill("iterationcompleted start")
    expect(page.get_by_role("option")).to_have_count(3)
    page.get_by_role("option").nth(1).click()
    expect(page.locator(".event-body")).to_contain_text("LoopIterationCompleted")
    expect(page.locator(".slider-text")).to_contain_text("LoopIterationCompleted")


def test_the_console_evaluates_at_the_event(open_page: OpenPage, completed: str) -> None:
    page = open_page(f"/executions/{completed}?view=console")
    page.get_by_label("Expression").fill("ctx.total + workload.count")
    page.get_by_role("button", name="Evaluate").click()
    answers = page.get_by_role("log", name="Answers")
    expect(answers.locator(".number").first).to_have_text("33")
    expect(answers).to_contain_text("noetl executions eval")
    page.get_by_label("Expression").fill("ctx.total +")
    page.get_by_role("button", name="Evaluate").click()
    expect(answers.get_by_role("alert")).to_contain_text("invalid_request")


def test_secrets_are_nowhere_on_the_page(open_page: OpenPage, completed: str) -> None:
    page = open_page(f"/executions/{completed}?step=start&view=events")
    for tab, text in (
        ("Data", "workload"),
        ("Logs", "priced order"),
        ("Attempts", "iterations"),
        ("Why", "start ran"),
    ):
        page.get_by_role("tab", name=tab).click()
        expect(_details(page)).to_contain_text(text)
        assert "page-secret-4711" not in page.content()


def test_a_viewer_sees_and_may_do_nothing(server: ServerProcess, open_page: OpenPage, failed: str) -> None:
    viewer = server.client.create_token("execution-viewer", "viewer").token
    page = open_page(f"/executions/{failed}", token=viewer)
    expect(page.get_by_role("button", name="Export")).to_be_visible()
    for name in ("Retry", "Fork", "Cancel", "Signal", "Pause"):
        expect(page.get_by_role("button", name=name)).to_have_count(0)


@pytest.mark.parametrize("width", [360, 1024, 1440])
def test_nothing_is_cut_at_any_width(open_page: OpenPage, failed: str, width: int) -> None:
    page = open_page(f"/executions/{failed}?step=report", width=width, height=760, touch=width == 360)
    expect(_details(page)).to_contain_text("report failed")
    expect(page.get_by_role("alert")).to_be_visible()
    overflow = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert overflow <= 0
    if width == 360:
        page.get_by_role("button", name="Time", exact=True).click()
        expect(page.get_by_role("list", name="Steps in time")).to_be_visible()
        page.get_by_role("button", name="Events", exact=True).click()
        expect(page.get_by_role("listbox", name="Events")).to_be_visible()


def test_times_are_in_the_chosen_zone(open_page: OpenPage, completed: str) -> None:
    page = open_page(f"/executions/{completed}")
    title = page.locator(".execution-began time").get_attribute("title")
    assert title is not None
    assert "Europe/Berlin" in title
    assert title.endswith("Z")


def test_two_executions_are_compared_from_their_first_difference(
    open_page: OpenPage, completed: str, failed: str
) -> None:
    page = open_page(f"/compare/{completed}/{failed}")
    first = page.get_by_role("region", name="First difference")
    expect(first).to_contain_text("broken")
    steps = page.get_by_role("region", name="Steps")
    expect(steps).to_contain_text("report")
    expect(steps).to_contain_text("no total for the orders")
    expect(page.get_by_role("region", name="Values")).to_contain_text("workload.broken")
    first.get_by_role("link", name=re.compile("^#")).first.click()
    expect(page.get_by_role("slider", name="Event")).to_have_value("1")
