"""Writing a playbook in the page."""

import re

import pytest
from playwright.sync_api import Dialog, Page, expect

from tests.server.server_process import ServerProcess
from tests.web.conftest import OpenPage

DRAFT = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: drafted, path: shop/drafted}
workload: {greeting: hello}
workflow:
- step: start
  tool: {kind: noop, args: {}}
"""


@pytest.fixture
def editor(open_page: OpenPage) -> Page:
    page = open_page("/edit")
    expect(page.locator(".cm-content")).to_be_focused()
    return page


def _write(page: Page, text: str) -> None:
    """As a person pastes it: keys would be completed and indented."""
    page.locator(".cm-content").focus()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(text)


def test_problems_are_those_of_validate_and_lead_to_their_place(server: ServerProcess, editor: Page) -> None:
    text = DRAFT.replace("- step: start", "- step: start\n  whem: x")
    _write(editor, text)
    expected = server.client.validate(text).problems[0]
    row = editor.get_by_role("region", name="Problems").get_by_role("button").first
    expect(row).to_contain_text(f"{expected.line}:{expected.column}")
    expect(row).to_contain_text(expected.code)
    expect(row).to_contain_text(expected.message)
    expect(editor.locator(".cm-lintRange-error").first).to_have_text("whem")
    expect(editor.get_by_role("button", name="Save version")).to_be_disabled()
    row.click()
    expect(editor.locator(".cm-activeLine")).to_contain_text("whem")


def test_the_net_follows_the_text(editor: Page) -> None:
    _write(
        editor, DRAFT + "  next: {arcs: [{step: finish}]}\n- step: finish\n  tool: {kind: noop, args: {}}\n"
    )
    net = editor.get_by_role("group", name="Net of the draft")
    expect(net.get_by_role("button", name=re.compile("finish"))).to_be_visible()


def test_a_draft_runs_and_is_saved_as_a_version(server: ServerProcess, editor: Page) -> None:
    _write(editor, DRAFT)
    expect(editor.get_by_text("draft, not saved")).to_be_visible()
    editor.get_by_role("button", name="Save version").click()
    expect(editor.get_by_text("Saved as shop/drafted@1")).to_be_visible()
    expect(editor).to_have_url(f"{server.url}/edit/shop/drafted")
    expect(editor.get_by_text("version 1", exact=True)).to_be_visible()
    expect(editor.locator(".cm-content")).to_be_focused()
    _write(editor, DRAFT.replace("hello", "good morning"))
    editor.keyboard.press("Control+s")
    expect(editor.get_by_text("Saved as shop/drafted@2")).to_be_visible()
    editor.goto("/playbooks/shop/drafted?tab=versions")
    differences = editor.get_by_label("Differences")
    expect(differences.locator(".removed")).to_contain_text("hello")
    expect(differences.locator(".added")).to_contain_text("good morning")


def test_what_is_not_saved_is_not_left_by_a_slip(editor: Page) -> None:
    _write(editor, DRAFT)
    expect(editor.get_by_text("draft, not saved")).to_be_visible()
    messages: list[str] = []

    def stay(dialog: Dialog) -> None:
        messages.append(dialog.message)
        dialog.dismiss()

    editor.on("dialog", stay)
    editor.get_by_role("link", name="Executions").click()
    assert len(messages) == 1
    expect(editor.locator(".cm-content")).to_contain_text("drafted")


def test_back_asks_before_it_leaves_what_is_not_saved(server: ServerProcess, open_page: OpenPage) -> None:
    page = open_page("/playbooks")
    page.get_by_role("link", name="New playbook").click()
    expect(page.locator(".cm-content")).to_be_focused()
    _write(page, DRAFT)
    expect(page.get_by_text("draft, not saved")).to_be_visible()
    page.once("dialog", lambda dialog: dialog.dismiss())
    page.evaluate("history.back()")
    expect(page).to_have_url(f"{server.url}/edit")
    expect(page.locator(".cm-content")).to_contain_text("drafted")
    page.once("dialog", lambda dialog: dialog.accept())
    page.evaluate("history.back()")
    expect(page.get_by_role("heading", name="Playbooks", level=1)).to_be_visible()


def test_the_server_says_why_a_text_cannot_be_saved(open_page: OpenPage) -> None:
    page = open_page("/edit/no/such/playbook")
    expect(page.get_by_role("alert")).to_contain_text("not_found")


def test_a_playbook_may_be_called_new(server: ServerProcess, open_page: OpenPage) -> None:
    server.client.register(DRAFT.replace("shop/drafted", "new"))
    page = open_page("/playbooks/new")
    page.get_by_role("link", name="Edit").click()
    expect(page.get_by_text("version 1", exact=True)).to_be_visible()
    expect(page.locator(".cm-content")).to_contain_text("path: new}")


def test_completion_knows_the_keys_of_the_place(editor: Page) -> None:
    _write(editor, DRAFT)
    editor.keyboard.press("Control+End")
    editor.keyboard.type("exec")
    editor.keyboard.press("Control+Space")
    choice = editor.locator(".cm-tooltip-autocomplete li").first
    expect(choice).to_contain_text("executor")
    choice.click()
    expect(editor.locator(".cm-activeLine")).to_contain_text("executor")
