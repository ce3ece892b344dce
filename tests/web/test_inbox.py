"""Answering what waits for a person."""

import pytest
from playwright.sync_api import Locator, Page, expect

from noetl.ports.http_api import StartExecution
from tests.server.server_process import ServerProcess
from tests.web.conftest import OpenPage
from tests.web.shop_playbooks import APPROVAL


@pytest.fixture
def waiting(server: ServerProcess) -> str:
    server.client.register(APPROVAL)
    return server.client.start(StartExecution(path="shop/approval")).execution_id


def _card(page: Page, execution_id: str) -> Locator:
    return page.get_by_role("article").filter(has=page.locator(f"a[href$='{execution_id}']"))


def test_a_question_is_answered_on_a_phone(server: ServerProcess, open_page: OpenPage, waiting: str) -> None:
    page = open_page("/inbox", width=360, height=740, touch=True)
    card = _card(page, waiting)
    expect(card.get_by_role("heading", name="Approve the refund of order 17?")).to_be_visible()
    expect(card).to_contain_text("The customer sent it back after 20 days.")
    card.get_by_role("button", name="Send the answer").tap()
    expect(card).to_contain_text("Decision is needed")
    expect(card).to_contain_text("Reason is needed")
    card.get_by_label("Decision").select_option("approve")
    card.get_by_label("Reason").fill("loyal customer")
    card.get_by_label("Amount").fill("501")
    card.get_by_role("button", name="Send the answer").tap()
    expect(card).to_contain_text("Amount must be 500 or less")
    card.get_by_label("Amount").fill("12.5")
    card.get_by_role("button", name="Send the answer").tap()
    expect(card).to_have_count(0)
    detail = server.client.wait(waiting, timeout=30)
    assert detail.status == "completed"


def test_the_inbox_follows_what_others_ask_and_answer(server: ServerProcess, open_page: OpenPage) -> None:
    page = open_page("/inbox")
    expect(page.get_by_role("heading", name="Inbox")).to_be_visible()
    execution_id = server.client.start(StartExecution(path="shop/hold")).execution_id
    card = _card(page, execution_id)
    expect(card).to_contain_text("ask waits for go")
    server.client.signal(execution_id, "go")
    expect(card).to_have_count(0)


def test_who_may_only_look_sees_no_form(server: ServerProcess, open_page: OpenPage, waiting: str) -> None:
    token = server.client.create_token("inbox-viewer", "viewer").token
    page = open_page("/inbox", token=token)
    card = _card(page, waiting)
    expect(card).to_contain_text("Your role may look, not answer.")
    expect(card.get_by_role("button", name="Send the answer")).to_have_count(0)
