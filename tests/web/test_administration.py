"""Tokens, credentials, the audit and workers: what an administrator does with them."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from noetl.client.http_client import Client
from noetl.client.server_requests import ServerError
from tests.server.server_process import ServerProcess, server_process
from tests.web.conftest import OpenPage

USES_CREDENTIAL = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: uses, path: admin/uses}
keychain:
- {name: ware, kind: credential, credential: admin-warehouse}
workflow:
- step: load
  tool: {name: ask, kind: noop, args: {user: "{{ keychain.ware.user }}"}}
"""


def test_a_token_is_made_shown_once_and_revoked(server: ServerProcess, open_page: OpenPage) -> None:
    page = open_page("/tokens")
    page.get_by_role("button", name="New token").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("page-made")
    dialog.get_by_label("Role").select_option("operator")
    dialog.get_by_label("Valid for").select_option("30 days")
    expect(dialog).to_contain_text("noetl token create page-made --role operator --expires 30d")
    dialog.get_by_role("button", name="Make it").click()
    token = page.get_by_role("dialog", name="Token page-made").locator(".command code").inner_text()
    made = Client(server.url, token)
    assert (made.me().name, made.me().role) == ("page-made", "operator")
    page.get_by_role("button", name="I have it").click()
    row = page.get_by_role("row").filter(has_text="page-made")
    expect(row).to_contain_text("valid")
    expect(row).to_contain_text("in 29 d")
    assert token not in page.content()
    row.get_by_role("button", name="Revoke…").click()
    expect(page.get_by_role("dialog")).to_contain_text("noetl token revoke page-made")
    page.get_by_role("button", name="Revoke it").click()
    expect(row).to_contain_text("revoked")
    with pytest.raises(ServerError) as refused:
        made.me()
    assert refused.value.code == "unauthenticated"


def test_a_credential_says_who_uses_it_before_it_is_deleted(
    server: ServerProcess, open_page: OpenPage
) -> None:
    server.client.set_credential("admin-warehouse", "static", {"user": "admin-secret-user"})
    server.client.register(USES_CREDENTIAL)
    page = open_page("/credentials")
    row = page.get_by_role("row").filter(has_text="admin-warehouse")
    expect(row).to_contain_text("static")
    expect(row.get_by_role("link", name="admin/uses")).to_have_attribute("href", re.compile("admin/uses@1$"))
    assert "admin-secret-user" not in page.content()
    row.get_by_role("button", name="Delete admin-warehouse").click()
    expect(page.get_by_role("dialog")).to_contain_text("1 task of registered playbooks name")
    page.get_by_role("button", name="Delete it").click()
    expect(row).to_contain_text("not stored")


def test_the_audit_has_what_was_just_done_and_by_whom(server: ServerProcess, open_page: OpenPage) -> None:
    token = server.client.create_token("page-auditee", "viewer").token
    with pytest.raises(ServerError):
        Client(server.url, token).register(USES_CREDENTIAL)
    page = open_page("/audit")
    row = page.get_by_role("row").filter(has_text="page-auditee").first
    expect(row).to_contain_text("register_playbook")
    expect(row).to_contain_text("refused, 403")


def test_a_worker_is_drained_and_leaves(tmp_path: Path, browser: Browser) -> None:
    with server_process(tmp_path) as server:
        context = browser.new_context(base_url=server.url)
        headers = {"Origin": server.url, "Sec-Fetch-Site": "same-origin"}
        assert context.request.post("/api/session", data={"token": server.token}, headers=headers).ok
        page = context.new_page()
        page.goto("/workers")
        card = page.get_by_role("article").filter(has_text="embedded")
        expect(card).to_contain_text("free")
        card.get_by_role("button", name="Drain…").click()
        expect(page.get_by_role("dialog")).to_contain_text("noetl worker stop embedded")
        page.get_by_role("button", name="Drain it").click()
        expect(card.get_by_text("drains").or_(page.get_by_text("No worker is connected"))).to_be_visible()
        assert all(worker.slots == 0 for worker in server.client.workers().workers)
        context.close()
