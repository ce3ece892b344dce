"""Answering what waits for a person."""

import pytest
from playwright.sync_api import Locator, Page, expect

from noetl.ports.http_api import StartExecution
from tests.server.server_process import ServerProcess
from tests.web.conftest import OpenPage
from tests.web.shop_playbooks import APPROVAL, SEATS


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
    answer = {"decision": "approve", "reason": "loyal customer", "amount": 12.5}
    (received,) = (
        event for event in server.client.events(waiting).events if event["name"] == "SignalReceived"
    )
    assert received["data"]["payload"] == answer


LISTING = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: listing, path: shop/listing}
workflow:
- step: ask
  tool:
    kind: wait
    signal: listed
    schema: {type: object, properties: {rows: {type: array, title: Rows}}}
"""


def test_half_a_json_text_is_not_sent_as_what_was_there_before(
    server: ServerProcess, open_page: OpenPage
) -> None:
    server.client.register(LISTING)
    execution_id = server.client.start(StartExecution(path="shop/listing")).execution_id
    page = open_page("/inbox")
    card = _card(page, execution_id)
    rows = card.get_by_label("Rows")
    rows.fill("[1")
    card.get_by_role("button", name="Send the answer").click()
    expect(rows).to_be_focused()
    expect(card.get_by_role("status")).to_contain_text("No JSON yet")
    assert server.client.show(execution_id).status == "running"
    rows.fill("[1, 2]")
    card.get_by_role("button", name="Send the answer").click()
    assert server.client.wait(execution_id, timeout=30).result == {"rows": [1, 2]}


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


def test_for_me_is_what_i_may_answer(server: ServerProcess, open_page: OpenPage) -> None:
    server.client.register(APPROVAL.replace("signal: decided", "signal: decided\n    assignee: [inbox-ada]"))
    started = [
        server.client.start(StartExecution(path=path)).execution_id for path in ("shop/approval", "shop/hold")
    ]
    token = server.client.create_token("inbox-bert", "operator").token
    page = open_page("/inbox", token=token)
    of_ada, of_anybody = (_card(page, execution_id) for execution_id in started)
    expect(of_ada).to_contain_text("Only inbox-ada or an admin may answer.")
    expect(of_anybody).to_be_visible()
    page.get_by_role("button", name="For me").click()
    expect(of_ada).to_have_count(0)
    expect(of_anybody).to_be_visible()
    page.reload()
    expect(of_anybody).to_be_visible()
    expect(of_ada).to_have_count(0)
    page.get_by_role("button", name="All", exact=True).click()
    expect(of_ada).to_be_visible()
    for execution_id in started:
        server.client.cancel(execution_id)


def test_an_answer_reaches_the_wait_that_it_was_written_for(
    server: ServerProcess, open_page: OpenPage
) -> None:
    server.client.register(SEATS)
    ids = [server.client.start(StartExecution(path="shop/seats")).execution_id for _ in range(3)]
    page = open_page("/inbox")
    first, second, third = (_card(page, execution_id) for execution_id in ids)
    expect(first).to_have_count(3)
    expect(second).to_have_count(3)
    expect(third).to_have_count(3)

    def card(cards: Locator, guest: str) -> Locator:
        return cards.filter(has=page.get_by_role("heading", name=f"Where does {guest} sit?"))

    for guest, seat in (("cleo", 3), ("ada", 1), ("bert", 2)):
        card(first, guest).get_by_label("Seat").fill(str(seat))
    # What is written elsewhere stays while cards go.
    card(second, "bert").get_by_label("Seat").fill("22")
    card(second, "bert").get_by_role("button", name="Send the answer").click()
    expect(second).to_have_count(2)
    for guest in ("cleo", "bert", "ada"):
        card(first, guest).get_by_role("button", name="Send the answer").click()
        expect(card(first, guest)).to_have_count(0)
    seats = server.client.wait(ids[0], timeout=30).result
    assert seats == [{"seat": 1}, {"seat": 2}, {"seat": 3}]
    (received,) = (
        event for event in server.client.events(ids[1]).events if event["name"] == "SignalReceived"
    )
    assert received["data"]["payload"] == {"seat": 22}
    # Waits are called alike in both: a link leads to that of its execution.
    waits = server.client.waits(execution_id=ids[1]).waits
    page.goto(f"/inbox?wait={ids[1]}/{waits[0].wait}")
    expect(page.locator(".wait.chosen")).to_have_count(1)
    expect(page.locator(".wait.chosen").locator(f"a[href$='{ids[1]}']").first).to_be_visible()
    for execution_id in ids[1:]:
        server.client.cancel(execution_id)


def test_more_waits_than_fit_are_shown_when_asked_for(server: ServerProcess, open_page: OpenPage) -> None:
    label = {"of": "many-waits"}
    started = server.client.start_many([StartExecution(path="shop/hold", labels=label)] * 101)
    page = open_page("/inbox")
    expect(page.get_by_text("100 waits or more, the oldest first")).to_be_visible()
    page.get_by_role("button", name="Show more").click()
    expect(_card(page, str(started.executions[-1].execution_id))).to_be_visible()
    expect(page.get_by_role("button", name="Show more")).to_have_count(0)
    server.client.bulk("cancel", {"labels": label})
    expect(page.get_by_text("of=many-waits")).to_have_count(0)
