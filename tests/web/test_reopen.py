"""Retry and redrive on the page: with the same document, a newer version, or one that is repaired there."""

import re

from playwright.sync_api import Page, expect

from noetl.ports.http_api import StartExecution
from tests.server.server_process import LOOPING, REPAIRED_LOOPING, ServerProcess
from tests.web.conftest import OpenPage
from tests.web.page_playbooks import SAVING

THEN = """\
- step: after
  tool: {kind: noop, args: {}}
"""


def _failed(server: ServerProcess, name: str) -> str:
    server.client.register(SAVING.replace("saving", name))
    execution_id = server.client.start(StartExecution(path=f"page/{name}")).execution_id
    assert server.client.wait(execution_id).status == "failed"
    return execution_id


def _completed(page: Page) -> None:
    expect(page.locator(".execution-title").get_by_role("status")).to_contain_text("completed")


def test_a_retry_goes_on_with_a_newer_version(server: ServerProcess, open_page: OpenPage) -> None:
    execution_id = _failed(server, "newer")
    server.client.register(SAVING.replace("saving", "newer").replace("3 if", "0 if") + THEN)
    page = open_page(f"/executions/{execution_id}")
    page.get_by_role("button", name="Retry save").click()
    dialog = page.get_by_role("dialog")
    again = dialog.get_by_role("region", name="What runs again")
    expect(again).to_contain_text("1 run reopened: save")
    expect(again).to_contain_text("may change something outside: save · copy")
    dialog.get_by_label("Playbook", exact=True).select_option(label="version 2, the newest")
    expect(dialog.locator(".command code")).to_have_text(f"noetl executions retry {execution_id} --version 2")
    expect(again).to_contain_text("1 run reopened: save")
    dialog.get_by_role("button", name="Retry").click()
    _completed(page)
    expect(page.get_by_role("heading", name="page/newer@2")).to_be_visible()
    expect(page.locator(".net-card[data-step=after]")).to_have_attribute("aria-label", "after, not reached")


def test_a_retry_goes_on_with_what_is_edited_and_keeps_it_as_a_version(
    server: ServerProcess, open_page: OpenPage
) -> None:
    execution_id = _failed(server, "edited")
    page = open_page(f"/executions/{execution_id}")
    page.get_by_role("button", name="Retry save").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Playbook", exact=True).select_option(label="an edited one, saved as a version")
    text = dialog.get_by_label("Edited playbook")
    expect(text).to_have_value(re.compile("exit"))
    button = dialog.get_by_role("button", name="Save version and retry")
    text.fill(SAVING.replace("saving", "edited").replace("kind: shell", "kind: shel"))
    expect(dialog.get_by_role("alert")).to_contain_text("invalid_playbook")
    expect(button).to_be_disabled()
    text.fill(SAVING.replace("saving", "elsewhere").replace("3 if", "0 if"))
    expect(dialog.get_by_role("alert")).to_contain_text("the execution runs page/edited")
    expect(button).to_be_disabled()
    text.fill(SAVING.replace("saving", "edited").replace("3 if", "0 if"))
    button.click()
    _completed(page)
    expect(page.get_by_role("heading", name="page/edited@2")).to_be_visible()


def test_an_operator_chooses_a_version_and_edits_nothing(server: ServerProcess, open_page: OpenPage) -> None:
    execution_id = _failed(server, "operated")
    operator = server.client.create_token("reopen-operator", "operator").token
    page = open_page(f"/executions/{execution_id}", token=operator)
    page.get_by_role("button", name="Retry save").click()
    expect(page.get_by_role("dialog").get_by_role("region", name="What runs again")).to_be_visible()
    expect(page.get_by_role("dialog").get_by_label("Playbook", exact=True).locator("option")).to_have_count(1)


def test_failed_iterations_are_redriven(server: ServerProcess, open_page: OpenPage) -> None:
    server.client.register(LOOPING)
    execution_id = server.client.start(StartExecution(path="examples/looping")).execution_id
    server.client.wait(execution_id)
    server.client.register(REPAIRED_LOOPING)
    page = open_page(f"/executions/{execution_id}")
    page.get_by_role("button", name="Redrive").click()
    dialog = page.get_by_role("dialog")
    again = dialog.get_by_role("region", name="What runs again")
    expect(again).to_contain_text("1 iteration runs again")
    expect(again).to_contain_text("Runs again behind it: total")
    dialog.get_by_label("Playbook", exact=True).select_option(label="version 2, the newest")
    expect(again).to_be_visible()
    dialog.get_by_role("button", name="Redrive").click()
    expect(page.locator(".summary")).to_contain_text('{"sum":6}')
    expect(page.get_by_role("button", name="Redrive")).to_have_count(0)
