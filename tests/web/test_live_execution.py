"""An execution while it runs: it is followed without a reload, and steered."""

import re
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from noetl.ports.http_api import StartExecution
from tests.plane.plane_processes import WorkerProcess
from tests.server.server_process import ServerProcess, server_process
from tests.web.conftest import OpenPage
from tests.web.page_playbooks import GATED, ORDERS, SAVING


@pytest.fixture
def gated(server: ServerProcess) -> str:
    """Waits for the signal `go`, later for `end`."""
    server.client.register(GATED)
    return server.client.start(StartExecution(path="page/gated")).execution_id


def _status(page: Page, status: str) -> None:
    expect(page.locator(".execution-title [role=status]")).to_have_text(status)


def _card(page: Page, step: str, state: str) -> None:
    label = re.compile(f"^{step}, {state}")
    expect(page.locator(f".net-card[data-step={step}]")).to_have_attribute("aria-label", label)


def _confirm(page: Page, verb: str) -> str:
    """Does it, and gives the command that the dialog named."""
    dialog = page.get_by_role("dialog")
    command = dialog.locator(".command code").inner_text()
    dialog.get_by_role("button", name=verb, exact=True).click()
    expect(dialog).to_have_count(0)
    return command


def test_a_run_is_followed_without_a_reload_and_nothing_moves(
    server: ServerProcess, open_page: OpenPage, gated: str
) -> None:
    page = open_page(f"/executions/{gated}?step=middle")
    _card(page, "start", "waiting")
    _card(page, "middle", "not reached")
    expect(page.get_by_role("tabpanel")).to_contain_text("middle did not run")
    page.evaluate(
        """() => {
          window.moved = [];
          const parent = (node) => (node instanceof Element ? node : node?.parentElement);
          const moved = (entry) => entry.sources.map((source) => parent(source.node)).filter(
            // What is told about the step, and what is under way, has become another text.
            (element) => element && !element.closest(".details-body, .summary"));
          const seen = (list) => list.getEntries().forEach((entry) =>
            window.moved.push(...moved(entry).map((element) => element.parentElement.outerHTML.slice(0, 300))));
          new PerformanceObserver(seen).observe({type: "layout-shift"});
        }"""
    )
    loads = page.evaluate("performance.timeOrigin")
    server.client.signal(gated, "go")
    _card(page, "middle", "completed")
    _card(page, "last", "waiting")
    expect(page.get_by_role("tabpanel")).to_contain_text("middle ran")
    expect(page.get_by_role("list", name="Steps in time").get_by_role("listitem")).to_have_count(3)
    server.client.signal(gated, "end")
    _status(page, "completed")
    assert page.evaluate("performance.timeOrigin") == loads
    assert page.evaluate("window.moved") == []
    assert "step=middle" in page.url


def test_what_comes_while_news_are_read_is_read_afterwards(
    server: ServerProcess, open_page: OpenPage, gated: str
) -> None:
    page = open_page(f"/executions/{gated}")
    witness = page.context.new_page()
    witness.goto(f"/executions/{gated}")
    _card(page, "start", "waiting")
    _card(witness, "start", "waiting")
    held: list[Route] = []

    def hold(route: Route) -> None:
        if held:
            route.continue_()
        else:
            held.append(route)

    page.route("**/index?after=*", hold)
    with page.expect_request("**/index?after=*"):
        server.client.signal(gated, "go")
    _card(witness, "last", "waiting")
    early = held[0].fetch()
    server.client.signal(gated, "end")
    _status(witness, "completed")
    # What the witness has heard, this tab has heard once it has drawn.
    page.bring_to_front()
    page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    held[0].fulfill(response=early)
    _card(page, "last", "completed")


def test_who_looks_at_an_event_stays_there(server: ServerProcess, open_page: OpenPage, gated: str) -> None:
    page = open_page(f"/executions/{gated}")
    _card(page, "start", "waiting")
    page.get_by_role("button", name="live").click()
    held = page.get_by_role("slider", name="Event").input_value()
    server.client.signal(gated, "go")
    expect(page.get_by_role("slider", name="Event")).not_to_have_attribute("max", held)
    expect(page.get_by_role("slider", name="Event")).to_have_value(held)
    _card(page, "start", "waiting")
    page.get_by_role("button", name="live").click()
    _card(page, "last", "waiting")


def test_what_is_under_way_lasts_until_now(server: ServerProcess, open_page: OpenPage, gated: str) -> None:
    page = open_page("/")
    row = page.get_by_role("button", name=re.compile("^start, waiting, 2 h"))
    page.clock.set_fixed_time(datetime.now() + timedelta(hours=2))
    page.goto(f"/executions/{gated}")
    expect(row).to_be_visible()
    page.get_by_role("slider", name="Event").press("ArrowLeft")
    expect(page.get_by_role("button", name=re.compile("^start, .*ms"))).to_be_visible()
    page.get_by_role("button", name="live").click()
    expect(row).to_be_visible()
    server.client.signal(gated, "go")
    expect(page.get_by_role("button", name=re.compile("^start, completed, .*m?s"))).to_be_visible()


FAR = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: far, path: page/far}
executor: {spec: {pool: page-far}}
workload: {seconds: 600}
workflow:
- step: start
  tool: {kind: shell, command: "sleep {{ workload.seconds }}"}
"""


def test_a_step_that_no_worker_takes_says_why_until_one_does(
    server: ServerProcess, open_page: OpenPage, tmp_path: Path
) -> None:
    client = server.client
    client.register(FAR)
    first = client.start(StartExecution(path="page/far", priority=10)).execution_id
    second = client.start(StartExecution(path="page/far", workload={"seconds": 0})).execution_id
    page = open_page(f"/executions/{second}?step=start")
    _card(page, "start", "ready for a worker")
    why, line = page.get_by_role("tabpanel"), page.locator(".summary")
    expect(line).to_contain_text("ready start no worker serves the pool page-far")
    expect(why).to_contain_text("start is waiting")
    expect(why).to_contain_text("It waits for a worker.")
    expect(why).to_contain_text("No worker serves the pool page-far.")
    expect(page.get_by_role("button", name=re.compile("^start, ready, "))).to_be_visible()
    expect(why.get_by_role("link", name="See the queue")).to_have_attribute("href", "/workers")
    token = (server.home / "worker.token").read_text().strip()
    worker = WorkerProcess(server.url, tmp_path, "--pool", "page-far", "--slots", "1", NOETL_TOKEN=token)
    try:
        # It takes the other one first; no event of this one tells that it is there.
        expect(line).to_contain_text("all workers of the pool page-far are busy")
        client.cancel(first)
        _status(page, "completed")
        _card(page, "start", "completed")
    finally:
        worker.stop()


def test_signal_pause_resume_and_cancel(open_page: OpenPage, gated: str) -> None:
    page = open_page(f"/executions/{gated}")
    page.get_by_role("button", name="Pause").click()
    assert _confirm(page, "Pause") == f"noetl executions pause {gated}"
    _status(page, "paused")
    page.get_by_role("button", name="Resume").click()
    assert _confirm(page, "Resume") == f"noetl executions resume {gated}"
    _status(page, "running")
    page.get_by_role("button", name="Signal").click()
    expect(page.get_by_label("Name")).to_have_value("go")
    page.get_by_label("Payload").fill("{")
    expect(page.get_by_role("button", name="Send")).to_be_disabled()
    page.get_by_label("Payload").fill('{"by": "page"}')
    page.get_by_role("button", name="Send").click()
    _card(page, "middle", "completed")
    page.get_by_role("button", name="Cancel").click()
    assert _confirm(page, "Cancel the execution") == f"noetl executions cancel {gated}"
    _status(page, "cancelled")


def test_a_retry_says_what_it_reopens(server: ServerProcess, open_page: OpenPage) -> None:
    server.client.register(ORDERS)
    request = StartExecution(path="page/orders", workload={"broken": True})
    execution_id = server.client.start(request).execution_id
    before = server.client.wait(execution_id).events
    page = open_page(f"/executions/{execution_id}")
    page.get_by_role("button", name="Retry report").click()
    expect(page.get_by_role("dialog")).to_contain_text("1 run reopened: report")
    assert _confirm(page, "Retry") == f"noetl executions retry {execution_id}"
    slider = page.get_by_role("slider", name="Event")
    expect(slider).not_to_have_attribute("max", str(before))
    _status(page, "failed")


def test_a_fork_says_which_effects_happen_again(server: ServerProcess, open_page: OpenPage) -> None:
    server.client.register(SAVING)
    execution_id = server.client.start(StartExecution(path="page/saving")).execution_id
    assert server.client.wait(execution_id).status == "failed"
    page = open_page(f"/executions/{execution_id}?at=8")
    page.get_by_role("button", name="Fork here").click()
    dialog = page.get_by_role("dialog")
    preview = dialog.get_by_role("region", name="What the fork would do")
    expect(preview).to_contain_text("events copied")
    expect(preview).to_contain_text(
        re.compile("save copy shell line [0-9]+ (may )?changes? something outside")
    )
    dialog.get_by_label("Workload, laid over").fill("{broken")
    expect(dialog.get_by_role("button", name="Fork at event 8")).to_be_disabled()
    dialog.get_by_label("Workload, laid over").fill('{"broken": false}')
    expect(dialog.locator(".command code")).to_contain_text("--set broken=false")
    dialog.get_by_role("button", name="Fork at event 8").click()
    _status(page, "completed")
    assert execution_id not in page.url
    page.get_by_role("button", name="Compare").click()
    expect(page.get_by_role("region", name="First difference")).to_be_visible()


def test_eight_tabs_follow_with_one_stream(server: ServerProcess, open_page: OpenPage, gated: str) -> None:
    first = open_page(f"/executions/{gated}")
    pages = [first, *(first.context.new_page() for _ in range(7))]
    for page in pages[1:]:
        page.goto(f"/executions/{gated}")
    for page in pages:
        _card(page, "start", "waiting")
    server.client.signal(gated, "go")
    for page in pages:
        _card(page, "last", "waiting")
    # The tab that had the stream goes: another one goes on for all.
    first.close()
    server.client.signal(gated, "end")
    for page in pages[1:]:
        _status(page, "completed")


def test_a_tab_that_goes_takes_nothing_from_the_others(
    server: ServerProcess, open_page: OpenPage, gated: str
) -> None:
    first = open_page(f"/executions/{gated}")
    second, third = (first.context.new_page() for _ in range(2))
    for page in (second, third):
        page.goto(f"/executions/{gated}")
    for page in (first, second, third):
        _card(page, "start", "waiting")
    # It tells the others that it goes; the one that has the stream stays.
    second.goto("about:blank")
    server.client.signal(gated, "go")
    for page in (first, third):
        _card(page, "last", "waiting")


def test_a_restart_of_the_server_leaves_no_gap_and_nothing_double(browser: Browser, tmp_path: Path) -> None:
    with server_process(tmp_path) as first:
        first.client.register(GATED)
        execution_id = first.client.start(StartExecution(path="page/gated")).execution_id
        port = first.url.rsplit(":", 1)[1]
        context = browser.new_context(base_url=first.url)
        headers = {"Origin": first.url, "Sec-Fetch-Site": "same-origin"}
        assert context.request.post("/api/session", data={"token": first.token}, headers=headers).ok
        page = context.new_page()
        page.goto(f"/executions/{execution_id}?view=events")
        _card(page, "start", "waiting")
        assert first.stop() == 0
    with server_process(tmp_path, "--port", port) as second:
        second.client.signal(execution_id, "go")
        _card(page, "last", "waiting")
        second.client.signal(execution_id, "end")
        _status(page, "completed")
        events = second.client.events(execution_id).events
        expect(page.get_by_text(f"{len(events)} events", exact=True)).to_be_visible()
        names = [event["name"] for event in events]
        page.get_by_label("Search events").fill("StepScheduled")
        expect(page.get_by_role("option")).to_have_count(names.count("StepScheduled"))
        context.close()
